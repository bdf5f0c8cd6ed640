import type { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import type { Surface } from '../../src/endpoints/endpoint.js'
import { GatewayError } from '../../src/errors.js'
import type { JsonObject } from '../../src/json.js'
import { familyOf } from '../../src/metering/estimate.js'
import { Tally } from '../../src/metering/tally.js'
import { Offload } from '../../src/offload/offload.js'
import { INLINE_BYTES_MAX, Pieces } from '../../src/pieces.js'
import { type Question, readQuestion, type Target, understand } from '../../src/understand.js'
import { callOf, outgoing } from '../../src/upstream/outgoing.js'
import { type WholeAnswer, wholeAnswer } from '../../src/upstream/whole.js'
import { gateway, yaml } from '../support/gateway.js'
import { provider } from '../support/provider.js'
import { type Asking, asking, endpointOf, MODELS } from '../support/questions.js'

const CHARGE = { input: 9, factor: 1 }
const CALL = { id: '01K9ZB3J6Q0V8N7T5R4W2Y1XCD', created: 1_700_000_000 }
const MESSAGES = [{ role: 'user', content: 'Hello' }]

/** The thread of a test, and every worker that it has started. */
function offloading(t: Test, lanes = 1) {
  const workers: Worker[] = []
  const started = (worker: Worker) => workers.push(worker)
  process.on('worker', started)
  const offload = new Offload(lanes)
  // The thread keeps no process alive, and there is nothing else here that would.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(async () => {
    clearInterval(alive)
    process.removeListener('worker', started)
    await offload.close()
  })
  const ask = (there: Asking, body: Uint8Array | string, surface: Surface = 'chat', key = 'a') =>
    offload.ask(Pieces.of(typeof body === 'string' ? Buffer.from(body) : body), endpointOf(surface), there.runtime, there.key(key), CALL)
  return { offload, workers, ask }
}

/** What a question says, in values that can be compared; or its error. */
async function said(question: () => Question | Promise<Question>, { runtime }: Asking, surface: Surface) {
  try {
    const { model, targets, stream, includeUsage } = await question()
    return {
      model: model.id,
      stream,
      includeUsage,
      targets: targets.map(target => ({
        model: target.model.id,
        estimate: target.estimate,
        bound: target.bound,
        body: { ...target.body },
        outgoing: Buffer.from(target.outgoing ?? outgoing(target, surface, stream, runtime.upstreams, CALL)).toString(),
      })),
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { code, message, status, type, param, origin, shouldRetry, retryAfter, retryable } = error
    return { code, message, status, type, param, origin, shouldRetry, retryAfter, retryable }
  }
}

t.test('the thread understands exactly what is understood here: the same question, the same errors', async t => {
  const there = asking(t)
  const { ask } = offloading(t)
  const chat = (fields: JsonObject) => JSON.stringify({ model: 'up/m', messages: MESSAGES, ...fields })
  const rows: [body: string | Uint8Array, surface?: Surface, key?: string][] = [
    [chat({})],
    [chat({ model: 'default', max_tokens: 9, max_completion_tokens: 7, n: 3, temperature: null, unknown: 1 })],
    [chat({ model: 'up/falls', stream: true, stream_options: { include_usage: true }, max_tokens: 9000, stop: ['a'] })],
    [chat({ model: 'claude/c', messages: [{ role: 'system', content: 'Be brief. 👋' }, ...MESSAGES] })],
    [chat({ model: 'up/few', tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] })],
    [`\uFEFF${chat({})}`],
    ['{"model":"up/m","messages":[{"role":"user","content":"x"}],"__proto__":{"n":2}}'],
    [JSON.stringify({ model: 'up/m', prompt: ['a', [1]] }), 'completions'],
    [JSON.stringify({ model: 'up/m', prompt: ['a', 'b'], max_completion_tokens: 3, stream: true }), 'completions'],
    [JSON.stringify({ model: 'up/m', query: 'q', documents: ['a', { text: 'b' }], top_n: 1, return_documents: true }), 'rerank'],
    [JSON.stringify({ model: 'up/m', input: ['a', 'b'], encoding_format: 'base64' }), 'embeddings'],
    [JSON.stringify({ model: 'up/m', input: 'a' }), 'moderations'],
    [''],
    ['[]'],
    ['{"model":'],
    [Uint8Array.of(0x7b, 0xff, 0x7d)],
    ['['.repeat(5000)],
    [`{"a":[${'[],'.repeat(500_000)}1]}`],
    [chat({ model: 7 })],
    [chat({ model: 'none' })],
    [chat({}), 'chat', 'b'],
    [chat({ messages: [] })],
    [chat({ messages: [{ role: 'user', content: 7 }] })],
    [chat({ n: 0 })],
    [JSON.stringify({ model: 'up/chat-only', input: 'a' }), 'embeddings'],
  ]
  for (const [body, surface = 'chat', key = 'a'] of rows) {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const here = await said(
      () => understand(readQuestion(bytes, endpointOf(surface)), endpointOf(surface), there.runtime, there.key(key)),
      there,
      surface,
    )
    t.strictSame(await said(() => ask(there, bytes, surface, key), there, surface), here, Buffer.from(bytes.subarray(0, 60)).toString())
  }
  const question = await ask(there, chat({ model: 'up/falls' }))
  t.equal(question.model, there.runtime.catalog.find('up/falls'), 'its models are those of the config here')
})

t.test('a thread translates answers exactly as they are translated here', async t => {
  const there = asking(t)
  const { offload, ask } = offloading(t)
  const chat = { model: 'up/m', messages: MESSAGES }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Yes. No.' }, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  const vectors = [
    { index: 1, embedding: [1, 0.5] },
    { index: 0, embedding: 'AACAPwAAAD8=' },
  ]
  const inputs = { model: 'up/m', input: ['a', 'b'] }
  const query = { model: 'up/m', query: 'q', documents: ['a', { text: 'b' }], return_documents: true }
  const claude = { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'text', text: 'Oui' }], stop_reason: 'end_turn' }
  const rows: [surface: Surface, body: JsonObject, answer: unknown][] = [
    ['chat', chat, { id: 'x', choices, usage, more: 1 }],
    ['chat', chat, { choices }],
    ['chat', { ...chat, model: 'claude/c' }, { ...claude, usage: { input_tokens: 3, output_tokens: 1 } }],
    ['chat', chat, { error: { message: 'no', code: 'x' } }],
    ['chat', chat, { choices: [] }],
    ['chat', chat, 7],
    ['embeddings', inputs, { data: vectors }],
    ['embeddings', { ...inputs, encoding_format: 'base64' }, { data: vectors, usage }],
    ['embeddings', inputs, { data: [vectors[0]] }],
    [
      'rerank',
      query,
      {
        results: [
          { index: 1, relevance_score: 0.5 },
          { index: 0, relevance_score: 0.75 },
        ],
        usage,
      },
    ],
    ['rerank', query, { results: [{ index: 2, relevance_score: 0.5 }] }],
    ['moderations', inputs, { results: [{ categories: { violence: true } }, { flagged: false }] }],
  ]
  for (const [surface, body, answer] of rows) {
    const endpoint = endpointOf(surface)
    const bytes = Buffer.from(JSON.stringify(answer))
    const here = understand(readQuestion(Buffer.from(JSON.stringify(body)), endpoint), endpoint, there.runtime, there.key('a'))
    const target = here.targets[0] as Target
    const wire = there.runtime.upstreams.wire(target.model, surface)
    const told = async (translate: () => WholeAnswer | Promise<WholeAnswer>) => {
      try {
        const { text, metered, counted } = await translate()
        const tally = new Tally(endpoint, familyOf(target.model), false)
        tally.add(metered, counted)
        return { text: Buffer.from(text).toString(), usage: [tally.usage(CHARGE, true), tally.usage(CHARGE, false)] }
      } catch (error) {
        return { thrown: (error as Error).constructor.name, error: { ...(error as Error) }, message: (error as Error).message }
      }
    }
    const expected = await told(() => wholeAnswer(bytes, callOf(target, surface, false, CALL), wire, endpoint, {}))
    for (const question of [here, await ask(there, JSON.stringify(body), surface)]) {
      const work = { bytes: Pieces.of(bytes), headers: {}, question, target: question.targets[0] as Target, ids: CALL }
      t.strictSame(await told(() => offload.answer(work, endpoint, there.runtime)), expected, `${surface} ${JSON.stringify(answer)}`)
    }
  }
})

t.test('a second thread takes what comes while the first is busy', async t => {
  const there = asking(t)
  const { ask, workers } = offloading(t, 2)
  const small = JSON.stringify({ model: 'up/m', messages: MESSAGES })
  await ask(there, small)
  await ask(there, small)
  t.equal(workers.length, 1, 'one is enough where nothing waits')
  await Promise.all([ask(there, small), ask(there, small)])
  t.equal(workers.length, 2)
  let over = false
  const large = ask(there, JSON.stringify({ model: 'up/m', messages: [{ role: 'user', content: 'x '.repeat(8_000_000) }] })).then(() => {
    over = true
  })
  await ask(there, small)
  t.notOk(over, 'the small one did not wait for it')
  await large
})

t.test('each request is understood under the config that it began with', async t => {
  const { ask, workers } = offloading(t)
  const before = asking(t)
  const next = asking(t, MODELS.replaceAll('default_max_tokens: 100', 'default_max_tokens: 11'))
  const cap = async (there: Asking) =>
    (await ask(there, JSON.stringify({ model: 'up/m', messages: MESSAGES }))).targets[0]?.body.max_completion_tokens
  t.strictSame(await Promise.all([cap(before), cap(next), cap(before), cap(next)]), [100, 11, 100, 11])
  t.equal(workers.length, 1)
})

t.test('what a fallback can not be asked for is thrown at its turn; the first that refuses says why, where all do', async t => {
  const there = asking(t)
  const { ask } = offloading(t)
  const content = [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }]
  const { targets } = await ask(there, JSON.stringify({ model: 'up/falls', messages: [{ role: 'user', content }] }))
  t.strictSame(
    targets.map(({ name, outgoing, refused }) => [name, outgoing === undefined, (refused as GatewayError | undefined)?.code]),
    [
      ['up/falls', false, undefined],
      ['old/m', false, undefined],
      ['claude/c', true, 'invalid_request'],
    ],
  )
  await t.rejects(ask(there, JSON.stringify({ model: 'claude/c', messages: [{ role: 'user', content }] })), { code: 'invalid_request' })
})

t.test('a thread that dies fails what it was working on, and the next body starts another', async t => {
  const there = asking(t)
  const { ask, workers, offload } = offloading(t)
  const body = JSON.stringify({ model: 'up/m', messages: MESSAGES })
  const large = Buffer.from(JSON.stringify({ model: 'up/m', messages: [{ role: 'user', content: 'x '.repeat(4_000_000) }] }))
  await ask(there, body)
  const worker = workers[0] as Worker
  const exit = new Promise(resolve => worker.once('exit', resolve))
  const failing = new Promise<Question>((resolve, reject) => {
    worker.once('error', () => ask(there, body).then(resolve, reject))
  })
  // A message that its code can not take, and a body behind it.
  worker.postMessage(null)
  await Promise.all([t.rejects(ask(there, large), 'what it was working on has failed'), failing])
  t.equal((await failing).model.id, 'up/m', 'asked between the failure and the exit of the old thread')
  await exit
  t.equal((await ask(there, body)).model.id, 'up/m')
  t.equal(workers.length, 2, 'the exit of the old one does not take the new one along')
  const asked = ask(there, large)
  void offload.close()
  await t.rejects(asked, { message: 'the thread for large bodies ended' })
})

t.test('a thread whose words can not be read fails what waits for it, and the next body starts another', async t => {
  const there = asking(t)
  const { ask, workers } = offloading(t)
  const body = JSON.stringify({ model: 'up/m', messages: MESSAGES })
  await ask(there, body)
  const asked = [ask(there, body), ask(there, body)]
  const unreadable = new Error('Maximum call stack size exceeded')
  workers[0]?.emit('messageerror', unreadable)
  for (const one of asked) await t.rejects(one, unreadable)
  t.equal((await ask(there, body)).model.id, 'up/m')
  t.equal(workers.length, 2)
})

t.test('a large body is answered like a small one, and its thread does not keep a gateway alive that stops', async t => {
  const far = await provider(t)
  const running = await gateway(t, yaml(far.url))
  const content = 'word '.repeat(INLINE_BYTES_MAX / 4)
  const answer = await running.post('/v1/chat/completions', { model: 'up/m', messages: [{ role: 'user', content }] })
  t.equal(answer.status, 200)
  t.strictSame(far.seen[0]?.body.messages, [{ role: 'user', content }])
  const late = setTimeout(() => running.process.kill('SIGKILL'), 120_000)
  t.equal(await running.stop(), 0, 'it ended by itself')
  clearTimeout(late)
  const [record] = await running.records()
  t.match(record, { state: 'settled', input_tokens: 9, output_tokens: 2 })
})

t.test('bytes come back from the thread, and are gone once they are freed', async t => {
  const there = asking(t)
  const { offload } = offloading(t)
  const content = 'x'.repeat(3 * INLINE_BYTES_MAX)
  for (const body of [
    { model: 'up/m', messages: [{ role: 'user', content }] },
    { model: 'up/m', messages: [], content },
  ]) {
    const bytes = new Pieces()
    const text = Buffer.from(JSON.stringify(body))
    // As node:http gives them: each with memory of its own.
    for (let at = 0; at < text.length; at += 65_536) bytes.take(new Uint8Array(text.subarray(at, at + 65_536)))
    const asked = said(() => offload.ask(bytes, endpointOf('chat'), there.runtime, there.key(), CALL), there, 'chat')
    t.ok(
      bytes.list.some(({ length }) => length === 0),
      'they have changed hands',
    )
    await asked
    t.ok(bytes.joined().equals(text))
    const list = bytes.list.filter(({ buffer }) => buffer instanceof ArrayBuffer)
    t.ok(list.length > 0)
    offload.free(bytes)
    t.ok(list.every(({ length }) => length === 0))
  }
})
