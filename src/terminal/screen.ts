import { writeSync } from 'node:fs'
import type { ScreenLine, Size } from './dashboard.js'
import { widthOf } from './table.js'

const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l'
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l'
const LOOKS = { title: '\u001b[1m', quiet: '\u001b[2m', bad: '\u001b[31m' } as const

/** q, Q, Ctrl-C, Ctrl-D. */
const ENDS: ReadonlySet<number> = new Set([0x71, 0x51, 0x03, 0x04])

export interface Screen {
  readonly size: Size
  /** The whole screen anew, without a flicker: lines stay where they are, and only what is left of them is cleared. */
  draw(lines: readonly ScreenLine[]): void
  /** The terminal as it was before. Called again, it does nothing. */
  close(): void
}

export interface ScreenOptions {
  readonly output: typeof process.stdout
  readonly input: typeof process.stdin
  readonly color: boolean
  readonly resized: () => void
  /** Somebody has asked for the end: `q`, Ctrl-C. */
  readonly ended: () => void
}

/** A terminal for oneself. However the process ends, but for SIGKILL, the terminal is given back. */
export function openScreen({ output, input, color, resized, ended }: ScreenOptions): Screen {
  let open = true
  const close = (): void => {
    if (!open) return
    open = false
    process.removeListener('exit', close)
    output.removeListener('resize', resized)
    input.removeListener('data', pressed)
    if (input.isTTY) input.setRawMode(false)
    input.pause()
    try {
      // At once: the process may be about to end.
      writeSync(output.fd, LEAVE)
    } catch {
      // The terminal is gone, and needs nothing any more.
    }
  }
  const pressed = (keys: Buffer): void => {
    if (keys.some(key => ENDS.has(key))) ended()
  }
  process.once('exit', close)
  output.on('resize', resized)
  if (input.isTTY) input.setRawMode(true)
  input.on('data', pressed)
  input.resume()
  output.write(ENTER)
  return {
    // A terminal that does not tell is taken for one of the usual size.
    get size() {
      return { columns: output.columns || 80, rows: output.rows || 24 }
    },
    draw(lines) {
      if (!open) return
      const columns = output.columns || 80
      const shown = lines.map(({ text, look }) => {
        const painted = look !== undefined && color ? `${LOOKS[look]}${text}\u001b[0m` : text
        // Behind a full line the cursor stands on its last place still, and would clear it.
        return widthOf(text) < columns ? `${painted}\u001b[K` : painted
      })
      output.write(`\u001b[H${shown.join('\r\n')}${lines.length < (output.rows || 24) ? '\r\n\u001b[J' : ''}`)
    },
    close,
  }
}
