import { COMMON, type Flags, noMore, optionsHelp, readFlags, subVerb } from '../terminal/flags.js'
import { type Outline, SHELLS } from '../terminal/shells.js'
import { commandOf, verbs } from '../terminal/verbs.js'
import type { Io } from './command.js'

export const summary = 'what a shell needs to complete verbs and options'

export const flags = { help: COMMON.help } as const satisfies Flags

export const words = ['bash', 'zsh', 'fish'] as const

export const usage = `
model-gateway completion bash|zsh|fish

Prints a script for this shell that completes verbs, options and what they can be. To have it in every new one:

bash   model-gateway completion bash > ~/.local/share/bash-completion/completions/model-gateway
zsh    model-gateway completion zsh > "\${fpath[1]}/_model-gateway"
fish   model-gateway completion fish > ~/.config/fish/completions/model-gateway.fish

Or for this one alone: source <(model-gateway completion bash), and likewise in zsh; model-gateway completion fish | source

${optionsHelp(flags)}
`

export async function run(args: string[], io: Io): Promise<number> {
  const {
    words: [first, ...rest],
  } = readFlags(args, flags)
  const shell = subVerb(first, words)
  noMore(rest)
  const outlines = await Promise.all(
    verbs().map(async (verb): Promise<Outline> => {
      const command = await commandOf(verb)
      return { verb, summary: command.summary, flags: command.flags, words: command.words ?? [] }
    }),
  )
  io.stdout(SHELLS[shell](outlines))
  return 0
}
