import { count } from './pieces.js'
import { textOf, words } from './request.js'
import type { Said, Spoken } from './spoken.js'
import { usage } from './usage.js'

/** Every category of OpenAI, and the words that flag it here. */
const CATEGORIES: readonly (readonly [category: string, flags: readonly string[]])[] = [
  ['hate', ['hate', 'hatred']],
  ['hate/threatening', []],
  ['harassment', ['harass', 'harassment', 'bully', 'idiot']],
  ['harassment/threatening', []],
  ['illicit', ['illicit', 'smuggle', 'counterfeit']],
  ['illicit/violent', ['bomb']],
  ['self-harm', ['suicide']],
  ['self-harm/intent', []],
  ['self-harm/instructions', []],
  ['sexual', ['sexual', 'porn']],
  ['sexual/minors', []],
  ['violence', ['violence', 'violent', 'kill', 'murder']],
  ['violence/graphic', ['gore']],
]

/** One result for each input text; one for a list of parts. Reports no usage, as OpenAI does not, unless the options give figures. */
export function moderations({ body, call, options }: Spoken): Said {
  const texts = textsOf(body.input)
  const results = texts.map(text => {
    const found = words(text)
    const flagged = CATEGORIES.filter(([, flags]) => flags.some(word => found.has(word))).map(([category]) => category)
    return {
      flagged: flagged.length > 0,
      categories: each(category => flagged.includes(category)),
      category_scores: each(category => (flagged.includes(category) ? 0.98 : 0.01)),
      category_applied_input_types: each(() => ['text']),
    }
  })
  const used =
    typeof options.usage === 'object'
      ? usage(
          texts.reduce((sum, text) => sum + count(text), 0),
          null,
          options,
        )
      : undefined
  const answer = {
    id: `modr-${call.id}`,
    model: body.model ?? call.model.upstream,
    results,
    ...(used === undefined ? {} : { usage: used }),
  }
  return { kind: 'json', body: answer, tokens: 0 }
}

function textsOf(input: unknown): string[] {
  if (Array.isArray(input) && input.every(one => typeof one === 'string')) return input
  return [textOf(input)]
}

function each<T>(value: (category: string) => T): { [category: string]: T } {
  return Object.fromEntries(CATEGORIES.map(([category]) => [category, value(category)]))
}
