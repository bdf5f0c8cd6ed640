import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { type Answer, gateway, yaml } from '../support/gateway.js'
import { prober } from '../support/prober.js'

/*
 * One large body, as request or as answer, delays the other requests by no more than 50 ms. What other programs on this machine make a request
 * wait is measured right before, and the best of some rounds counts.
 */

const MIB = 1024 * 1024
/** Near the limit, which is 32 MiB. */
const BYTES = 31 * MIB
const DELAY_MS = 50
const ROUNDS = 8
const QUIET_MS = 500

const CONFIG = `
  sandbox: {kind: sandbox}
models:
  sandbox/echo: {price: free, max_output_tokens: 4096}
`

/** The far end: reads a request without looking into it, and gives the answer of its path. */
async function far(t: Test, answers: Readonly<Record<string, unknown>>): Promise<string> {
  const texts = new Map(Object.entries(answers).map(([path, answer]) => [`/v1${path}`, JSON.stringify(answer)]))
  const server = createServer((request, response) => {
    request.on('error', () => {}).resume()
    request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(texts.get(request.url ?? '')))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

function filled(words: string, bytes = BYTES): string {
  return words.repeat(Math.floor(bytes / Buffer.byteLength(words)))
}

const USAGE = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }
const QUICK = 'The quick brown fox. '
const chat = (model: string, content: string) => ({ model, messages: [{ role: 'user', content }] })
const documents = Array.from({ length: 10_000 }, (_, i) => `${i} ${filled(QUICK, BYTES / 10_000 - 30)}`)
const inputs = Array.from({ length: 2_000 }, (_, i) => `${i} ${filled(QUICK, BYTES / 2_000 - 30)}`)
const vector = Array.from({ length: 1024 }, (_, i) => Math.sin(i))
const ANSWERS = {
  '/chat/completions': {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
    usage: USAGE,
  },
  '/rerank': { results: documents.map((_, index) => ({ index, relevance_score: index / documents.length })), usage: USAGE },
  '/embeddings': {
    object: 'list',
    model: 'm',
    data: inputs.map((_, index) => ({ object: 'embedding', index, embedding: vector })),
    usage: USAGE,
  },
}

/** Not more commas, colons and brackets than a body may have. */
const deep = `{"b":[["${'x'.repeat(280)}",2],{}]},`
const nested = `{"model":"up/m","messages":[{"role":"user","content":"x"}],"metadata":{"a":[${filled(deep)}0]}}`

type Row = readonly [name: string, path: string, body: () => string, check: (answer: Answer) => boolean]
const ROWS: readonly Row[] = [
  ['chat, text', 'chat/completions', () => JSON.stringify(chat('up/m', filled(QUICK))), isChat],
  ['chat, nested', 'chat/completions', () => nested, isChat],
  ['rerank of many documents', 'rerank', () => JSON.stringify({ model: 'up/m', query: 'what', documents }), isRanked],
  [
    'rerank that gives them back',
    'rerank',
    () => JSON.stringify({ model: 'up/m', query: 'what', documents, return_documents: true }),
    isRanked,
  ],
  ['embeddings of many inputs, a large answer', 'embeddings', () => JSON.stringify({ model: 'up/m', input: inputs }), isEmbedded],
  [
    'embeddings that are converted',
    'embeddings',
    () => JSON.stringify({ model: 'up/m', input: inputs, encoding_format: 'base64' }),
    ({ json }) =>
      json.data.length === inputs.length && json.data[9].embedding === Buffer.from(new Float32Array(vector).buffer).toString('base64'),
  ],
  [
    'a small request with a large answer',
    'embeddings',
    () => JSON.stringify({ model: 'up/m', input: inputs.map(() => 'x'), encoding_format: 'base64' }),
    ({ json }) => json.data.length === inputs.length && typeof json.data[9].embedding === 'string',
  ],
  [
    'sandbox, chat',
    'chat/completions',
    () => JSON.stringify(chat('sandbox/echo', filled(QUICK))),
    ({ json }) => json.choices[0].message.content.startsWith(`You said: ${QUICK}`),
  ],
  [
    'sandbox, a stream',
    'chat/completions',
    () => JSON.stringify({ ...chat('sandbox/echo', filled(QUICK)), stream: true }),
    ({ text }) => text.endsWith('data: [DONE]\n\n'),
  ],
  ['sandbox, rerank', 'rerank', () => JSON.stringify({ model: 'sandbox/echo', query: 'what', documents }), isRanked],
  ['sandbox, embeddings', 'embeddings', () => JSON.stringify({ model: 'sandbox/echo', input: inputs }), isEmbedded],
]

function isChat({ json }: Answer): boolean {
  return json.choices[0].message.content === 'Yes.'
}

function isRanked({ json }: Answer): boolean {
  return json.results.length === documents.length
}

function isEmbedded({ json }: Answer): boolean {
  return json.data.length === inputs.length
}

t.test('a large body delays no other request by more than 50 ms', { timeout: 600_000 }, async t => {
  const running = await gateway(t, yaml(await far(t, ANSWERS)).replace('\nmodels:', CONFIG.trimEnd()))
  const probing = await prober(t, `${running.ops}/livez`, running.process.pid as number)
  // What starts with the first of them has started.
  await Promise.all([ROWS[0], ROWS[0]].map(row => running.post(`/v1/${row?.[1]}`, row?.[2]())))
  for (const [name, path, body, check] of ROWS) {
    const bytes = Buffer.from(body())
    const seen: string[] = []
    let least = Number.POSITIVE_INFINITY
    for (let round = 0; round < ROUNDS && least > DELAY_MS; round++) {
      const quiet = await probing.during(() => new Promise(resolve => setTimeout(resolve, QUIET_MS)))
      let answer: Answer | undefined
      const busy = await probing.during(async () => {
        answer = await running.post(`/v1/${path}`, bytes)
      })
      if (round === 0) t.ok(answer?.status === 200 && check(answer), `${name}: ${answer?.text.slice(0, 200)}`)
      seen.push(`${Math.round(busy)} (${Math.round(quiet)})`)
      least = Math.min(least, busy - quiet)
    }
    t.ok(least <= DELAY_MS, `${name}, ${(bytes.length / MIB).toFixed(1)} MiB: the slowest answer (without it) ${seen.join(', ')} ms`)
  }
})
