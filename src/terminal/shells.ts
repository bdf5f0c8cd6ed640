import type { Flag, Flags } from './flags.js'

/** One verb, as a shell completes it. */
export interface Outline {
  readonly verb: string
  readonly summary: string
  readonly flags: Flags
  readonly words: readonly string[]
}

/** The script that each shell reads. */
export const SHELLS = { bash, zsh, fish } as const satisfies Record<string, (outlines: readonly Outline[]) => string>

/** Where no verb stands, it is this one. */
const DEFAULT = 'serve'
const GLOBAL: Flags = { version: { type: 'boolean', short: 'v', about: 'the version of this program' } }

function spellings(name: string, { short }: Flag): string[] {
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`]
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** Options whose value is to be completed, by how: `null` is the name of a file, an empty list is nothing at all. */
function valued({ flags }: Outline): { readonly names: readonly string[]; readonly choices: readonly string[] | null }[] {
  return Object.entries(flags).flatMap(([name, flag]) => {
    if (flag.type === 'boolean') return []
    return [{ names: spellings(name, flag), choices: flag.choices ?? (flag.value === 'FILE' ? null : []) }]
  })
}

function bash(outlines: readonly Outline[]): string {
  const cases = outlines.map(outline => {
    const values = valued(outline).map(({ names, choices }) => {
      const does = choices === null ? 'COMPREPLY=($(compgen -f -- "$word")); return' : `offered=${quoted(choices.join(' '))}`
      return `        ${names.join('|')}) ${does} ;;`
    })
    const flags = Object.entries(outline.flags).map(([name]) => `--${name}`)
    return `    ${outline.verb})
      words=${quoted(outline.words.join(' '))} flags=${quoted(flags.join(' '))}
      case $before in
${[...values, '        *) offered=$flags rest=1 ;;'].join('\n')}
      esac ;;`
  })
  return `# model-gateway completion bash
_model_gateway() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} verb=\${COMP_WORDS[1]} words flags offered rest
  COMPREPLY=()
  # Bash takes --format=csv for three words.
  [[ $word == = ]] && word=
  [[ $before == = ]] && before=\${COMP_WORDS[COMP_CWORD - 2]}
  [[ \${COMP_WORDS[COMP_CWORD]} == = ]] && before=\${COMP_WORDS[COMP_CWORD - 1]}
  if ((COMP_CWORD == 1)) && [[ $word != -* ]]; then
    COMPREPLY=($(compgen -W ${quoted(outlines.map(({ verb }) => verb).join(' '))} -- "$word"))
    return
  fi
  [[ $verb == -* ]] && verb=${DEFAULT}
  case $verb in
${cases.join('\n')}
    *) return ;;
  esac
  if [[ $rest ]] && ((COMP_CWORD == 1)); then offered+=${quoted(
    ` ${Object.keys(GLOBAL)
      .map(name => `--${name}`)
      .join(' ')}`,
  )}; fi
  if [[ $rest && $word != -* ]]; then
    if [[ $words ]]; then
      ((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W "$words" -- "$word"))
    fi
    return
  fi
  COMPREPLY=($(compgen -W "$offered" -- "$word"))
}
complete -o default -F _model_gateway model-gateway
`
}

function zsh(outlines: readonly Outline[]): string {
  const argument = (name: string, flag: Flag): string => {
    const about = flag.about.replace(/[[\]:\\]/g, '\\$&')
    const value =
      flag.type === 'boolean'
        ? ''
        : `:${flag.value ?? ''}:${flag.choices ? `(${flag.choices.join(' ')})` : flag.value === 'FILE' ? '_files' : ' '}`
    const names = spellings(name, flag)
    const spelled = names.length === 1 ? quoted(`${names[0]}`) : `{${names.join(',')}}`
    return `'(${names.join(' ')})'${spelled}${quoted(`[${about}]${value}`)}`
  }
  const all = (flags: Flags) => Object.entries(flags).map(([name, flag]) => `        ${argument(name, flag)} \\\n`)
  const cases = outlines.map(({ verb, flags, words }) => {
    const first = words.length === 0 ? `        '*:file:_files'` : `        '1:what:(${words.join(' ')})' '*:file:_files'`
    return `    ${verb})\n      _arguments -s \\\n${all(flags).join('')}${first} ;;`
  })
  const listed = outlines.map(({ verb, summary }) => `    ${quoted(`${verb}:${summary.replaceAll(':', '\\:')}`)}`)
  const serve = outlines.find(({ verb }) => verb === DEFAULT)
  return `#compdef model-gateway
# model-gateway completion zsh
_model_gateway() {
  local curcontext=$curcontext state line
  local -a verbs
  verbs=(
${listed.join('\n')}
  )
  _arguments -C -s \\
${all({ ...serve?.flags, ...GLOBAL }).join('')}        '1: :->verb' '*:: :->rest' && return
  case $state in
    verb) _describe 'verb' verbs ;;
    rest)
      case $line[1] in
${cases.join('\n').replace(/^/gm, '    ')}
      esac ;;
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _model_gateway "$@"; else compdef _model_gateway model-gateway; fi
`
}

function fish(outlines: readonly Outline[]): string {
  const lines = [
    '# model-gateway completion fish',
    'complete -c model-gateway -f',
    ...outlines.map(
      ({ verb, summary }) =>
        `complete -c model-gateway -n __fish_use_subcommand -a ${verb} -d ${quoted(summary).replaceAll(`'\\''`, `\\'`)}`,
    ),
  ]
  const option = (condition: string, name: string, { short, type, value, choices, about }: Flag): string => {
    const does = type === 'boolean' ? '' : choices ? ` -x -a ${quoted(choices.join(' '))}` : value === 'FILE' ? ' -r -F' : ' -x'
    const letter = short === undefined ? '' : ` -s ${short}`
    return `complete -c model-gateway -n ${quoted(condition)} -l ${name}${letter}${does} -d ${quoted(about).replaceAll(`'\\''`, `\\'`)}`
  }
  const serve = outlines.find(({ verb }) => verb === DEFAULT)
  for (const [name, flag] of Object.entries({ ...serve?.flags, ...GLOBAL })) lines.push(option('__fish_use_subcommand', name, flag))
  for (const { verb, flags, words } of outlines) {
    const seen = `__fish_seen_subcommand_from ${verb}`
    if (words.length > 0) {
      const unsaid = `${seen}; and not __fish_seen_subcommand_from ${words.join(' ')}`
      lines.push(`complete -c model-gateway -n ${quoted(unsaid)} -a ${quoted(words.join(' '))}`)
      lines.push(`complete -c model-gateway -n ${quoted(`${seen}; and __fish_seen_subcommand_from ${words.join(' ')}`)} -F`)
    } else lines.push(`complete -c model-gateway -n ${quoted(seen)} -F`)
    for (const [name, flag] of Object.entries(flags)) lines.push(option(seen, name, flag))
  }
  return `${lines.join('\n')}\n`
}
