import { parseArgs } from 'node:util'
import { UsageError } from '../commands/command.js'
import { didYouMean } from '../config/suggest.js'

/** An option of a verb: what its help says of it, and what a shell completes. */
export interface Flag {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  /** What stands for its value in the help. A shell completes `FILE` with names of files. */
  readonly value?: string
  /** All values that it can have. */
  readonly choices?: readonly string[]
  readonly about: string
}
export type Flags = Readonly<Record<string, Flag>>

export type Given<Spec extends Flags> = {
  readonly [Name in keyof Spec]: Spec[Name]['type'] extends 'boolean' ? boolean : string | undefined
}

/** Which config, and how the answer is printed: what most verbs take. */
export const COMMON = {
  config: { type: 'string', short: 'c', value: 'FILE', about: 'the config (default: gateway.yaml)' },
  json: { type: 'boolean', about: 'JSON for programs' },
  help: { type: 'boolean', short: 'h', about: 'this text' },
} as const satisfies Flags

/** The arguments of a verb. Throws a UsageError that names what is wrong, and what may have been meant. */
export function readFlags<Spec extends Flags>(
  args: readonly string[],
  spec: Spec,
): { readonly flags: Given<Spec>; readonly words: string[] } {
  const options = Object.fromEntries(
    Object.entries(spec).map(([name, { type, short }]) => [name, { type, ...(short === undefined ? {} : { short }) }]),
  )
  const { tokens, positionals } = parseArgs({ args: [...args], options, strict: false, tokens: true, allowPositionals: true })
  const given = new Map<string, string | boolean>()
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const { name, rawName, value } = token
    const flag = spec[name]
    if (flag === undefined || !Object.hasOwn(spec, name)) {
      const known = Object.keys(spec).map(one => `--${one}`)
      throw new UsageError(`there is no option ${rawName}${didYouMean(rawName, known)}`)
    }
    if (flag.type === 'boolean' && value !== undefined) throw new UsageError(`${rawName} takes no value`)
    // `--key --model x`: the next option is no value of this one.
    const swallowed = !token.inlineValue && value?.startsWith('-') === true && value !== '-'
    if (flag.type === 'string' && (value === undefined || value === '' || swallowed)) throw new UsageError(`${rawName} needs a value`)
    if (flag.choices?.includes(value as string) === false)
      throw new UsageError(
        `${rawName}: there is no ${JSON.stringify(value)}${didYouMean(value as string, flag.choices)}: ${flag.choices.join(', ')}`,
      )
    if (given.has(name)) throw new UsageError(`${rawName} stands there twice`)
    given.set(name, value ?? true)
  }
  const flags = Object.fromEntries(
    Object.entries(spec).map(([name, { type }]) => [name, given.get(name) ?? (type === 'boolean' ? false : undefined)]),
  )
  return { flags: flags as Given<Spec>, words: positionals }
}

/** The options as a help lists them, one a line. */
export function optionsHelp(spec: Flags): string {
  const lines = Object.entries(spec).map(([name, { short, value, about }]) => {
    const letter = short === undefined ? '    ' : `-${short}, `
    return { option: `  ${letter}--${name}${value === undefined ? '' : ` ${value}`}`, about }
  })
  const width = Math.max(...lines.map(({ option }) => option.length))
  return lines.map(({ option, about }) => `${option.padEnd(width)}   ${about}`).join('\n')
}

/** The first word as one of those that a verb knows. */
export function subVerb<Name extends string>(word: string | undefined, known: readonly Name[]): Name {
  const found = known.find(name => name === word)
  if (found !== undefined) return found
  if (word === undefined) throw new UsageError(`say what to do: ${known.join(', ')}`)
  throw new UsageError(`there is no ${JSON.stringify(word)} here${didYouMean(word, known)}: ${known.join(', ')}`)
}

/** Throws where there are more words than the verb has a use for. */
export function noMore(words: readonly string[]): void {
  if (words.length > 0) throw new UsageError(`what is ${JSON.stringify(words[0])} to say? Nothing is expected there`)
}
