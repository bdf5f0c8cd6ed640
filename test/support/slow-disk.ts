import { spawnSync } from 'node:child_process'

/** System calls that strace meddles with, and how: `delay_enter=20000` (microseconds), `error=EIO:when=3+`. */
export interface Meddling {
  readonly calls: string
  readonly how: string
}

/**
 * What stands before a program on the command line so that its disk is slow, or fails. The program stays our own child, so that its signals
 * and its end are its own. A text where this machine can not do it: why.
 */
export function disk({ calls, how }: Meddling): readonly string[] | string {
  const command = ['strace', '-D', '-f', '--seccomp-bpf', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${calls}:${how}`]
  const { status, error, stderr } = spawnSync(command[0] as string, [...command.slice(1), 'true'], { encoding: 'utf8' })
  if (error !== undefined) return `strace can not be run: ${error.message}`
  return status === 0 ? command : `strace may not trace here: ${stderr.trim()}`
}
