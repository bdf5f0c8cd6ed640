import { existsSync, readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { KnownModels } from '../../src/config/known-models.js'
import { loadKinds } from '../../src/upstream/kinds.js'
import { problems } from './loading.js'

const root = new URL('../../../', import.meta.url)
const folder = new URL('config/models/', root)

/** What each field of a well-known model may be. */
const FIELDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  max_output_tokens: count,
  context: count,
  cap: value => value === 'max_tokens' || value === 'max_completion_tokens',
  parameters: value => names(value) && value.every(name => /^[a-z_]+$/.test(name)),
  surfaces: value => names(value) && value.every(name => ['chat', 'completions', 'rerank', 'moderations', 'embeddings'].includes(name)),
}

for (const file of readdirSync(folder)) {
  t.test(`${file}: known fields only, of the right types`, async t => {
    const text = readFileSync(new URL(file, folder), 'utf8')
    const models = Object.entries(parse(text, { strict: true, uniqueKeys: true }) as Record<string, Record<string, unknown>>)
    t.ok(models.length > 0)
    const wrong = models.flatMap(([model, fields]) =>
      Object.entries(fields).flatMap(([name, value]) =>
        FIELDS[name]?.(value) === true ? [] : [`${model}.${name}: ${JSON.stringify(value)}`],
      ),
    )
    t.strictSame(wrong, [])
    t.match(text, /^#.*\n/, 'says what it is')
  })
}

t.test('each file is named after a kind of provider', async t => {
  const known = readdirSync(folder).filter(file => {
    const name = file.replace(/\.yaml$/, '')
    // Gemini is reached in two ways; its models are the same.
    return [name, `${name}-compat`].some(kind => existsSync(new URL(`src/upstream/providers/${kind}.ts`, root)))
  })
  t.strictSame(known, readdirSync(folder))
})

t.test('each is found by the kind of its provider and its own name, and the kind has its surfaces', async t => {
  const kinds = await loadKinds()
  const known = new KnownModels()
  for (const file of readdirSync(folder)) {
    const kind = file.replace(/\.yaml$/, '')
    for (const [model, fields] of Object.entries(
      parse(readFileSync(new URL(file, folder), 'utf8')) as Record<string, { surfaces?: string[] }>,
    )) {
      t.strictSame(known.of(kind, model), fields)
      t.strictSame(known.of(`${kind}-compat`, model), fields)
      const surfaces = kinds.get(kind)?.surfaces ?? []
      t.strictSame(fields.surfaces?.filter(surface => !surfaces.includes(surface)) ?? [], [], `${kind} ${model}`)
    }
  }
  t.strictSame(known.of('openai', 'unheard-of'), {})
})

t.test('a surface that a kind does not have is refused in the config, by every kind', async t => {
  const kinds = await loadKinds()
  const all = ['chat', 'completions', 'rerank', 'moderations', 'embeddings']
  for (const [kind, { surfaces }] of kinds) {
    const lines = problems(
      `providers: {p: {kind: ${kind}, base_url: "https://x.example"}}\nmodels:\n  p/m:\n    price: {request: 1}\n    surfaces: [${all.join(', ')}]\n`,
      { kinds },
    )
    t.strictSame(
      lines.map(line => line.replace(/^\S+ models\.p\/m\.surfaces\[\d\]: /, '')),
      all
        .filter(surface => !surfaces.includes(surface))
        .map(surface => `the kind "${kind}" has no ${surface} (it has ${surfaces.join(', ')})`),
      kind,
    )
  }
  t.strictSame([...(kinds.get('anthropic')?.surfaces ?? [])], ['chat'])
})

function count(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0
}

function names(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every(name => typeof name === 'string') && new Set(value).size === value.length
}
