import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { searchSecrets } from './canaries.js'
import { programFile } from './paths.js'

/**
 * The same command without what the test runner loads into every Node that is started under it (its handlers of signals, its start of some
 * 100 ms): a program under test is alone, as it is for its users. The process stays the same.
 */
export function bare(command: readonly string[], nodeOptions?: string): string[] {
  return ['env', '-u', 'NODE_OPTIONS', ...(nodeOptions === undefined ? [] : [`NODE_OPTIONS=${nodeOptions}`]), ...command]
}

/** The address that a program under test says it listens on, away from a terminal; rejects where it ends before. */
export function listening(child: ChildProcessByStdio<null, Readable, null>): Promise<string> {
  let output = ''
  return new Promise((resolve, reject) => {
    child.stdout.on('data', chunk => {
      output += chunk
      const found = /"message":"listening","address":"([^"]+)"/.exec(output)?.[1]
      if (found !== undefined) resolve(found)
    })
    child.once('exit', code => reject(new Error(`it ended with ${code}: ${output}`)))
  })
}

/** Sends a signal to a program that was started `detached`, and to all that it has started; resolves when they are gone, or after 20 seconds. */
export async function endAll(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const send = (what: NodeJS.Signals | 0): boolean => {
    try {
      return process.kill(-(child.pid as number), what)
    } catch {
      return false
    }
  }
  send(signal)
  for (let i = 0; send(0) && i < 2000; i++) await sleep(10)
}

export interface ProgramOptions {
  readonly cwd?: string
  readonly env?: Record<string, string>
  /** Who runs it; ours where it is absent. */
  readonly uid?: number
}

/** The program with these arguments, as it ends by itself; after two minutes it is killed. */
export async function program(
  args: readonly string[],
  { cwd, env, uid }: ProgramOptions = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const [command = '', ...rest] = bare([process.execPath, programFile(), ...args])
  const child = spawn(command, rest, {
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid, gid: uid }),
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 120_000,
    killSignal: 'SIGKILL',
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', chunk => {
    stdout += chunk
  })
  child.stderr.on('data', chunk => {
    stderr += chunk
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  searchSecrets('the command line', stdout + stderr)
  return { code, stdout, stderr }
}
