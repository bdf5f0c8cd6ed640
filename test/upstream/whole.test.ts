import t from 'tap'
import chatCompletions from '../../src/endpoints/chat-completions.js'
import embeddings from '../../src/endpoints/embeddings.js'
import type { Endpoint } from '../../src/endpoints/endpoint.js'
import type { JsonObject } from '../../src/json.js'
import { ProviderFailure, type Wire } from '../../src/upstream/providers/provider.js'
import { ErrorEvent } from '../../src/upstream/stream.js'
import { wholeAnswer } from '../../src/upstream/whole.js'
import { CALL, CHAT } from '../support/answer-stream.js'
import { sampleCall } from '../support/sample-call.js'

const MODEL = CALL.model.id
const answer = (text: string, wire: Wire = CHAT, endpoint: Endpoint = chatCompletions) =>
  wholeAnswer(Buffer.from(text), CALL, wire, endpoint, {})

t.test('an answer passes byte for byte, with nothing changed but the model, and the id where its shape is wrong', async t => {
  const sent = `{ "choices" : [{"index":0,"message":{"role":"assistant","content":"\\u0633 \\"id\\": 👋"},"finish_reason":"stop","x":1.0}],
  "model":"NAME","id" :"ID", "usage":{"prompt_tokens":1e0,"total_tokens":12345678901234567890,"cost":0.10},"id2":{"model":"inner"} }`
  const given = (model: string, id: string) => sent.replace('NAME', model).replace('ID', id)
  t.equal(answer(given('model-1', 'chatcmpl-abc')).text, given(MODEL, 'chatcmpl-abc'))
  t.equal(answer(given(MODEL, 'chatcmpl-abc')).text, given(MODEL, 'chatcmpl-abc'))
  for (const id of ['gen-1', '', 'chatcmpl-', 'cmpl-1']) t.equal(answer(given('x', id)).text, given(MODEL, `chatcmpl-${CALL.id}`), id)
  t.equal(
    answer('{"choices":[{"index":0,"message":{"content":"a"}}]}').text,
    `{"model":"${MODEL}","id":"chatcmpl-${CALL.id}","choices":[{"index":0,"message":{"content":"a"}}]}`,
  )
})

t.test('a byte order mark before an answer is passed over', async t => {
  const sent = `{"choices":[{"index":0,"message":{"content":"\uFEFFa"}}],"model":"${MODEL}","id":"chatcmpl-abc"}`
  t.equal(answer(`\uFEFF${sent}`).text, sent)
  t.equal(answer(`\uFEFF${sent.replace(MODEL, 'x')}`).text, sent)
})

t.test('what is metered is the answer as the provider gave it', async t => {
  const { metered, json } = answer('{"choices":[{"index":0,"message":{"content":"a"}}],"usage":{"prompt_tokens":3},"model":"x"}')
  t.strictSame(metered.usage, { prompt_tokens: 3 })
  t.strictSame(json.choices, metered.choices)
})

t.test('what makes strict clients refuse an answer is mended', async t => {
  const call = (fields: object) => ({ choices: [{ index: 0, message: { tool_calls: [fields] } }] })
  const rows: [given: object, told: object][] = [
    [
      { choices: [{ message: { content: 'a' } }, { message: { content: 'b' } }] },
      {
        choices: [
          { index: 0, message: { content: 'a' } },
          { index: 1, message: { content: 'b' } },
        ],
      },
    ],
    [
      call({ id: 'c', function: { name: 'f', arguments: '{}' } }),
      call({ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }),
    ],
    [
      call({ id: 'c', type: 'function', function: { name: 'f', arguments: { a: 1 } } }),
      call({ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }),
    ],
    [call({ id: 'c', type: 'custom', custom: { input: 'x' } }), call({ id: 'c', type: 'custom', custom: { input: 'x' } })],
    [{ choices: [{ index: 0, message: { tool_calls: null } }] }, { choices: [{ index: 0, message: { tool_calls: null } }] }],
  ]
  for (const [given, told] of rows) {
    const { text, json } = answer(JSON.stringify(given))
    t.match(JSON.parse(text), { ...told, model: MODEL, id: `chatcmpl-${CALL.id}` })
    t.strictSame(JSON.parse(JSON.stringify(json.choices)), JSON.parse(text).choices)
  }
})

t.test('what is no answer is none', async t => {
  const rows = [
    '',
    'x',
    '<html></html>',
    '[]',
    'null',
    '"a"',
    '{}',
    '{"choices":[]}',
    '{"choices":null}',
    '{"choices":{}}',
    '{"error":null}',
  ]
  for (const text of rows) t.throws(() => answer(text), ProviderFailure, text)
  for (const text of ['{"error":{"message":"x"}}', '{"error":"x","choices":[{"index":0,"message":{}}]}'])
    t.throws(() => answer(text), ErrorEvent)
  for (const error of ['null', 'false', '""', '{}', '[]']) {
    const beside = `{"error":${error},"choices":[{"index":0,"message":{}}],"model":"${MODEL}","id":"chatcmpl-abc"}`
    t.equal(answer(beside).text, beside, `no error beside an answer: ${error}`)
  }
  for (const text of ['{"error":{}}', '{"error":""}']) t.throws(() => answer(text), text)
})

t.test('a translation, and the shape that the endpoint gives', async t => {
  const wire: Wire = {
    ...CHAT,
    response: body => ({ choices: [{ index: 0, message: { content: (body as JsonObject).said } }] }) as JsonObject,
  }
  t.strictSame(JSON.parse(answer('{"said":"hello"}', wire).text), {
    choices: [{ index: 0, message: { content: 'hello' } }],
    model: MODEL,
    id: `chatcmpl-${CALL.id}`,
  })
  const shaped: Endpoint = { ...chatCompletions, shape: given => ({ ...given, extra: true }) }
  const { metered, json } = answer('{"choices":[{"index":0,"message":{"content":"a"}}],"model":"x"}', CHAT, shaped)
  t.equal(metered.extra, undefined)
  t.equal(json.extra, true)
  t.equal(json.model, MODEL)
})

t.test('a surface whose answers have no id gets none', async t => {
  const call = sampleCall('embeddings', { input: 'a' })
  const text =
    '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1.0,-0.50]}],"model":"x","usage":{"prompt_tokens":1,"total_tokens":1}}'
  t.equal(wholeAnswer(Buffer.from(text), call, CHAT, embeddings, {}).text, text.replace('"x"', `"${MODEL}"`))
})
