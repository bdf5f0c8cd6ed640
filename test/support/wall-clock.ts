import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** The wall clock of a program under test: it shows what it is set to, and goes on from there, or stands still. */
export interface WallClock {
  /** For the program's environment. */
  readonly env: Record<string, string>
  /** What it shows, in milliseconds since the epoch. */
  now(): number
  /** A step, in either direction; the program has seen it when this resolves. */
  set(iso: string): Promise<void>
  /** The same, and no time passes from there. */
  stop(iso: string): Promise<void>
}

const PRELOAD = new URL('./set-clock.js', import.meta.url).href

export function wallClock(t: { teardown(fn: () => unknown): unknown }, iso: string): WallClock {
  const folder = mkdtempSync(join(tmpdir(), 'clock-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'clock')
  let offset = 0
  let still: number | null = null
  const write = (text: string, stands = false): void => {
    still = stands ? Date.parse(text) : null
    offset = Date.parse(text) - Date.now()
    writeFileSync(`${file}.new`, still === null ? String(offset) : `=${still}`)
    renameSync(`${file}.new`, file)
  }
  write(iso)
  return {
    env: { NODE_OPTIONS: `--import=${PRELOAD}`, TEST_CLOCK: file },
    now: () => still ?? Date.now() + offset,
    set: async text => {
      write(text)
      await sleep(20)
    },
    stop: async text => {
      write(text, true)
      await sleep(20)
    },
  }
}
