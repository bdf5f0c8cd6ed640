import t, { type Test } from 'tap'
import type { Surface } from '../../src/endpoints/endpoint.js'
import type { UsageRecord } from '../../src/ledger/ledger.js'
import { loadProviders } from '../../src/upstream/kinds.js'
import { chunksIn } from '../support/answer-stream.js'
import { type Answer, gateway, KEY } from '../support/gateway.js'
import { provider as far, json, type Seen } from '../support/provider.js'
import { fixture, fixtureJson } from '../support/sse-split.js'
import { brokenRules } from '../support/stream-rules.js'

/*
 * Every kind of provider on every surface that it has: a server that speaks the kind's wire, the gateway as it runs, a client of OpenAI's wire.
 */

const PATHS: Readonly<Record<Surface, string>> = {
  chat: '/v1/chat/completions',
  completions: '/v1/completions',
  embeddings: '/v1/embeddings',
  moderations: '/v1/moderations',
  rerank: '/v1/rerank',
}
const SURFACES = Object.keys(PATHS) as Surface[]
const DOCUMENTS = ['a', 'b', 'c', 'd']
const BODIES: Readonly<Record<Surface, object>> = {
  chat: { messages: [{ role: 'user', content: 'Hi' }] },
  completions: { prompt: 'Hi' },
  embeddings: { input: 'Hi' },
  moderations: { input: 'Hi' },
  rerank: { query: 'q', documents: DOCUMENTS },
}

type Tokens = readonly [input: number, cached: number, output: number, reasoning: number]

interface Row {
  readonly kind: string
  readonly surface: Surface
  /** Where the server is called, behind its base URL. */
  readonly path: string
  /** What it answers: JSON, or a stream, which is then asked for. */
  readonly answer: object | Buffer
  readonly tokens: Tokens
  readonly more: More
}

interface More {
  /** What the client's request has besides the usual. */
  readonly body?: object
  /** What the server is called with, as far as it is of note. */
  readonly sent?: object
  readonly headers?: Record<string, string>
  /** Where the tokens that are billed come from; default: the provider. */
  readonly source?: UsageRecord['usage_source']
}

function row(kind: string, surface: Surface, path: string, answer: Row['answer'], tokens: Tokens, more: More = {}): Row {
  return { kind, surface, path, answer, tokens, more }
}

function answerOf(name: string): object {
  return fixtureJson(`${name}.provider.json`) as object
}

function streamOf(name: string): Buffer {
  return fixture(`${name}.provider.sse`)
}

const choice = (more: object) => ({ index: 0, logprobs: null, finish_reason: 'stop', ...more })
const completion = (usage: object) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [choice({ message: { role: 'assistant', content: 'Hello', refusal: null } })],
  usage,
})
/** A stream of OpenAI's: usage in a chunk of its own, last. `finish` is what else stands in the chunk that ends the choice. */
function stream(usage: object | null, finish: object = {}): Buffer {
  const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const chunks = [
    { ...base, choices: [choice({ delta: { role: 'assistant', content: '' }, finish_reason: null })] },
    { ...base, choices: [choice({ delta: { content: 'Hello' }, finish_reason: null })] },
    { ...base, choices: [choice({ delta: {} })], ...finish },
    ...(usage === null ? [] : [{ ...base, choices: [], usage }]),
  ]
  return Buffer.from([...chunks.map(chunk => JSON.stringify(chunk)), '[DONE]'].map(data => `data: ${data}\n\n`).join(''))
}
const plain = { prompt_tokens: 19, completion_tokens: 10, total_tokens: 29 }
const TEXT = { id: 'cmpl-1', object: 'text_completion', created: 1, model: 'm', choices: [choice({ text: 'Hello' })], usage: plain }
const VECTORS = {
  object: 'list',
  model: 'm',
  data: [{ object: 'embedding', index: 0, embedding: [0.25, -0.5] }],
  usage: { prompt_tokens: 8, total_tokens: 8 },
}
const GEMINI_VECTORS = { embeddings: [{ values: [0.25, -0.5] }], usageMetadata: { promptTokenCount: 3 } }
const VERDICT = {
  id: 'modr-1',
  model: 'm',
  results: [{ flagged: true, categories: { violence: true }, category_scores: { violence: 0.9 } }],
}
const RANKS = {
  object: 'list',
  model: 'm',
  results: [
    { index: 2, relevance_score: 0.1 },
    { index: 0, relevance_score: 0.9 },
  ],
  usage: { prompt_tokens: 30, total_tokens: 30 },
}

/** Servers that imitate OpenAI's: what each reports of a chat, and what is billed of it. */
const IMITATORS: readonly { kind: string; usage: object; tokens: Tokens; answer?: object; stream?: Buffer; streamTokens?: Tokens }[] = [
  {
    kind: 'openai',
    usage: { ...plain, prompt_tokens_details: { cached_tokens: 4 }, completion_tokens_details: { reasoning_tokens: 2 } },
    tokens: [19, 4, 10, 2],
  },
  { kind: 'azure', usage: plain, tokens: [19, 0, 10, 0] },
  { kind: 'bedrock', usage: plain, tokens: [19, 0, 10, 0] },
  // Its thoughts are in the total alone.
  {
    kind: 'gemini-compat',
    usage: { prompt_tokens: 60, completion_tokens: 20, total_tokens: 125 },
    tokens: [60, 0, 65, 0],
    stream: fixture('gemini-compat/chat-tools.provider.sse'),
  },
  { kind: 'deepseek', usage: { ...plain, prompt_cache_hit_tokens: 12, prompt_cache_miss_tokens: 7 }, tokens: [19, 12, 10, 0] },
  { kind: 'groq', usage: plain, tokens: [19, 0, 10, 0], stream: stream(null, { x_groq: { id: 'req_1', usage: plain } }) },
  {
    kind: 'mistral',
    usage: { ...plain, num_cached_tokens: 5 },
    tokens: [19, 5, 10, 0],
    stream: fixture('mistral/chat-thinking.provider.sse'),
    streamTokens: [12, 8, 28, 0],
  },
  // Its completion_tokens leave reasoning out; its cached tokens may be more than the prompt that they were counted beside.
  {
    kind: 'xai',
    usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 35, completion_tokens_details: { reasoning_tokens: 10 } },
    tokens: [20, 0, 15, 10],
  },
  ...['together', 'fireworks', 'openrouter', 'vllm', 'ollama', 'llamacpp', 'lmstudio'].map(kind => ({
    kind,
    usage: plain,
    tokens: [19, 0, 10, 0] as const,
  })),
]

const imitated = IMITATORS.flatMap(({ kind, usage, tokens, ...its }): Row[] => [
  row(kind, 'chat', '/chat/completions', completion(usage), tokens),
  row(kind, 'chat', '/chat/completions', its.stream ?? stream(usage), its.streamTokens ?? tokens),
  row(kind, 'completions', '/completions', TEXT, [19, 0, 10, 0]),
  row(kind, 'embeddings', '/embeddings', VECTORS, [8, 0, 0, 0]),
  row(kind, 'moderations', '/moderations', VERDICT, [0, 0, 0, 0], { source: 'none' }),
  row(kind, 'rerank', '/rerank', RANKS, [30, 0, 0, 0], { sent: { documents: DOCUMENTS } }),
])

const TWO = ['hello', 'goodbye']
/** Those with a wire of their own. */
const others: readonly Row[] = [
  // Cached input is told beside input_tokens, and belongs to it.
  row('anthropic', 'chat', '/messages', answerOf('anthropic/thinking.answer'), [125, 20, 9, 6]),
  row('anthropic', 'chat', '/messages', streamOf('anthropic/tools.stream'), [450, 400, 58, 0]),
  // Thoughts are output.
  row('gemini', 'chat', '/models/m:generateContent', answerOf('gemini/text.answer'), [8, 0, 32, 30]),
  row('gemini', 'chat', '/models/m:streamGenerateContent?alt=sse', streamOf('gemini/tools.stream'), [60, 32, 65, 45]),
  row('gemini', 'embeddings', '/models/m:batchEmbedContents', GEMINI_VECTORS, [3, 0, 0, 0]),
  // billed_units, not tokens: those count a preamble that is Cohere's own.
  row('cohere', 'chat', '/chat', answerOf('cohere/chat'), [37, 37, 22, 0]),
  row('cohere', 'chat', '/chat', streamOf('cohere/chat-thinking'), [4, 4, 11, 0]),
  row('cohere', 'embeddings', '/embed', answerOf('cohere/embed'), [2, 0, 0, 0], { body: { input: TWO }, sent: { texts: TWO } }),
  // It reports searches, not tokens: the gateway's own estimate is billed, the query once and every document.
  row('cohere', 'rerank', '/rerank', answerOf('cohere/rerank'), [5, 0, 0, 0], { source: 'estimate' }),
  row('jina', 'rerank', '/rerank', answerOf('jina/rerank'), [38, 0, 0, 0], { sent: { return_documents: false } }),
  row('jina', 'embeddings', '/embeddings', VECTORS, [8, 0, 0, 0]),
  row('voyage', 'rerank', '/rerank', answerOf('voyage/rerank'), [26, 0, 0, 0], { body: { top_n: 1 }, sent: { top_k: 1 } }),
  row('voyage', 'embeddings', '/embeddings', answerOf('voyage/embeddings'), [10, 0, 0, 0]),
  row('tei', 'rerank', '/rerank', answerOf('tei/rerank'), [19, 0, 0, 0], {
    sent: { texts: DOCUMENTS },
    headers: { 'x-compute-tokens': '19' },
  }),
  row('tei', 'embeddings', '/v1/embeddings', VECTORS, [8, 0, 0, 0]),
]

const ROWS = [...imitated, ...others]
const nameOf = ({ kind, surface, answer }: Row) => `${kind} ${surface}${answer instanceof Buffer ? ' stream' : ''}`

t.test('every kind, on every surface that it has', async t => {
  const kinds = [...(await loadProviders()).values()].filter(({ kind }) => kind !== 'sandbox')
  const needed = kinds.flatMap(({ kind, wires }) =>
    Object.keys(wires).flatMap(surface => (surface === 'chat' ? [`${kind} chat`, `${kind} chat stream`] : [`${kind} ${surface}`])),
  )
  t.strictSame(ROWS.map(nameOf).sort(), needed.sort(), 'the table has them all')

  let current: Row | undefined
  const server = await far(t, (_, response) => {
    if (current?.answer instanceof Buffer) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(current.answer)
    } else {
      json(response, 200, current?.answer, current?.more.headers)
    }
  })
  const running = await gateway(t, config(`http://127.0.0.1:${server.port}`, [...kinds.map(({ kind }) => kind)]))
  const answers: { row: Row; answer: Answer; seen: Seen | undefined }[] = []
  for (const row of ROWS) {
    current = row
    const { kind, surface, more } = row
    const streaming = row.answer instanceof Buffer ? { stream: true, stream_options: { include_usage: true } } : {}
    const asked = { model: `${kind}/m`, ...BODIES[surface], ...more.body, ...streaming }
    const answer = await running.post(PATHS[surface], asked)
    answers.push({ row, answer, seen: server.seen.splice(0).at(-1) })
  }

  // What a kind has not is refused before anything is held or sent.
  for (const { kind, wires } of kinds) {
    for (const surface of SURFACES.filter(each => wires[each] === undefined)) {
      const { status, json } = await running.post(PATHS[surface], { model: `${kind}/m`, ...BODIES[surface] })
      t.match({ status, ...json.error }, { status: 400, code: 'unsupported_surface', param: 'model' }, `${kind} has no ${surface}`)
      t.match(json.error.message, `${kind}/m does not answer ${PATHS[surface]}`)
    }
  }
  t.strictSame(server.seen, [], 'no provider was asked')

  t.equal(await running.stop(), 0)
  const records = new Map((await running.records()).map(record => [record.id, record]))
  t.equal(records.size, ROWS.length, 'a refusal leaves no record')
  for (const { row, answer, seen } of answers) {
    await t.test(nameOf(row), async t => {
      t.equal(answer.status, 200, answer.text)
      t.equal(seen?.path, `/${row.kind}${row.path}`)
      t.match(seen?.body, row.more.sent ?? {})
      shaped(t, row, answer)
      const record = records.get(answer.headers.get('x-request-id') ?? '')
      const { state, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, usage_source, cost_rial } =
        record ?? ({} as UsageRecord)
      t.strictSame([input_tokens, cached_input_tokens, output_tokens, reasoning_tokens], row.tokens, 'what is billed')
      t.strictSame({ state, usage_source }, { state: 'settled', usage_source: row.more.source ?? 'provider' })
      const [input, cached, output] = row.tokens
      t.equal(cost_rial, BigInt(4 * (input - cached) + cached + 8 * output))
    })
  }
})

/** What a client of OpenAI's wire reads, whoever answers. */
function shaped(t: Test, { kind, surface, answer }: Row, { text, json }: Answer): void {
  const model = `${kind}/m`
  if (answer instanceof Buffer) {
    const chunks = chunksIn(text)
    t.strictSame(brokenRules(chunks), [])
    t.ok(chunks.length > 0 && chunks.every(chunk => chunk.model === model))
    t.match(text, /data: \[DONE\]\n\n$/)
    return
  }
  const shapes: Readonly<Record<Surface, object>> = {
    chat: {
      id: /^chatcmpl-./,
      object: 'chat.completion',
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: String }, finish_reason: /^(stop|tool_calls)$/ }],
      usage: { prompt_tokens: Number, completion_tokens: Number, total_tokens: Number },
    },
    completions: { id: /^cmpl-./, object: 'text_completion', model, choices: [{ index: 0, text: 'Hello', finish_reason: 'stop' }] },
    embeddings: {
      object: 'list',
      model,
      data: [{ object: 'embedding', index: 0, embedding: [Number, Number] }],
      usage: { prompt_tokens: Number },
    },
    moderations: { id: /^modr-/, model, results: [{ flagged: true }] },
    rerank: { object: 'list', model, results: [{ index: Number, relevance_score: Number }], usage: { completion_tokens: 0 } },
  }
  t.match(json, shapes[surface])
  if (surface === 'rerank') {
    t.ok('meta' in json)
    const scores = json.results.map((result: { relevance_score: number }) => result.relevance_score)
    t.strictSame(
      scores,
      [...scores].sort((a, b) => b - a),
      'best first',
    )
  }
}

/** One provider and one model of each kind, all at one server, each below a path of its own. Prices are of 4, 1 and 8 Rial a token. */
function config(url: string, kinds: readonly string[]): string {
  return `
ledger: {path: data/ledger.db, durability: process}
providers:
${kinds.map(kind => `  ${kind}: {kind: ${kind}, base_url: "${url}/${kind}", api_key: k}`).join('\n')}
models:
${kinds.map(kind => `  ${kind}/m: {price: {input: 4000000, cached_input: 1000000, output: 8000000}, max_output_tokens: 256}`).join('\n')}
plans: {p: {}}
accounts: {acme: {opening_balance_rial: 1000000000}}
keys:
  a: {account: acme, plan: p, secret: ${KEY}}
`
}
