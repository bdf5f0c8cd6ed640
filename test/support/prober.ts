import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ROOT } from './paths.js'
import { bare } from './program.js'

export interface Prober {
  /** The slowest answer while `work` was done, in milliseconds; time for which other programs had the processors is left out (Linux). */
  during(work: () => Promise<unknown>): Promise<number>
}

/** Asks process `pid` for `url` all the time, from a process of its own (probe.ts), and tells how long the slowest answer took. Ends with the test. */
export async function prober(t: { teardown(fn: () => unknown): unknown }, url: string, pid: number): Promise<Prober> {
  const [command = '', ...args] = bare([process.execPath, join(ROOT, 'dist/test/support/probe.js'), url, String(pid)])
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })
  // When it ends, its lines do too.
  const ended = once(lines, 'close').then(() => ['it ended'])
  const said = async (): Promise<string> => {
    child.stdin.write('.\n')
    const [line] = await Promise.race([once(lines, 'line'), ended])
    return String(line)
  }
  return {
    during: async work => {
      await said()
      await work()
      const slowest = Number(await said())
      if (Number.isNaN(slowest)) throw new Error('the prober got no answer')
      return slowest
    },
  }
}
