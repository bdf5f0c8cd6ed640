import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A terminal of its own, with a shell in it, as a person has one. */
export interface Terminal {
  /** Types, and presses Enter. */
  type(line: string): void
  /** One key, by tmux's name: `C-c`, `q`. */
  press(key: string): void
  /** What is to be seen. */
  screen(): string
  /** Resolves with the screen once it fits. Rejects after two minutes, with the last one. */
  until(fits: RegExp | ((screen: string) => boolean)): Promise<string>
  resize(columns: number, rows: number): void
}

export const noTerminal: string | false = spawnSync('tmux', ['-V']).status === 0 ? false : 'there is no tmux here to make a terminal'

/** Ends with the test. Commands run in `cwd`, without what the test runner loads into every Node. */
export function terminal(t: { teardown(fn: () => unknown): unknown }, cwd: string, columns = 100, rows = 30): Terminal {
  // Short: a socket's path has its bounds.
  const folder = mkdtempSync(join(tmpdir(), 'tmux-'))
  const socket = join(folder, 's')
  const tmux = (...args: string[]): string => {
    const { NODE_OPTIONS: _, TMUX: __, ...env } = process.env
    return execFileSync('tmux', ['-f', '/dev/null', '-S', socket, ...args], {
      encoding: 'utf8',
      env: { ...env, PS1: '$ ', LANG: 'C.UTF-8', TERM: 'xterm-256color' },
    })
  }
  tmux('-u', 'new-session', '-d', '-c', cwd, '-x', String(columns), '-y', String(rows), 'sh')
  t.teardown(() => {
    tmux('kill-server')
    rmSync(folder, { recursive: true })
  })
  const screen = (): string => tmux('capture-pane', '-p')
  return {
    type: line => void tmux('send-keys', line, 'Enter'),
    press: key => void tmux('send-keys', key),
    screen,
    until: async fits => {
      for (const deadline = performance.now() + 120_000; ; ) {
        const seen = screen()
        if (typeof fits === 'function' ? fits(seen) : fits.test(seen)) return seen
        if (performance.now() > deadline) throw new Error(`the screen does not come to ${fits}:\n${seen}`)
        await new Promise(resolve => setTimeout(resolve, 50))
      }
    },
    resize: (x, y) => void tmux('resize-window', '-x', String(x), '-y', String(y)),
  }
}
