import type { Command } from '../commands/command.js'
import { SRC } from '../paths.js'
import { names } from '../plugin.js'

const FOLDER = new URL('commands/', SRC)

/** What there is to be done, by name: the files of `commands/`. */
export function verbs(): string[] {
  return names(FOLDER).filter(name => name !== 'command')
}

/** One of them; others are not imported for it. */
export async function commandOf(verb: string): Promise<Command> {
  return (await import(new URL(`${verb}.js`, FOLDER).href)) as Command
}
