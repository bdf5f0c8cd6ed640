import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { at, gateway, provider, rial, sse } from './support/gateway.mjs'
import { OPENAI, openai } from './support/libraries.mjs'

const HELLO = [{ role: 'user', content: 'Hello world' }]
const CALL_BOTH = [{ role: 'user', content: 'Use get_weather and get_time, both of them.' }]
const TOOLS = ['get_weather', 'get_time'].map(name => ({
  type: 'function',
  function: {
    name,
    description: `Say ${name}`,
    parameters: { type: 'object', properties: { city: { type: 'string', enum: ['Tehran'] } }, required: ['city'] },
  },
}))

const far = await provider(refusal)
const running = await gateway({
  providers: { up: at(far) },
  models: { 'up/refuses': { price: { input: 1_000_000, output: 2_000_000 } } },
  aliases: { default: 'sandbox/echo' },
})
/** What each request must have been billed, by its id. */
const bills = new Map()

for (const { name, module } of OPENAI) {
  const client = openai(running, { module })
  const create = body => client.chat.completions.create({ model: 'sandbox/echo', messages: HELLO, ...body })

  test(`${name}: a chat completion has its text, its usage and an id of the right shape`, async () => {
    const answer = await create({})
    assert.equal(answer.choices[0].message.content, 'You said: Hello world')
    assert.equal(answer.choices[0].finish_reason, 'stop')
    assert.equal(answer.model, 'sandbox/echo')
    assert.match(answer.id, /^chatcmpl-.+/)
    assert.ok(answer.usage.prompt_tokens > 0 && answer.usage.completion_tokens === 4)
    bills.set(`${name}, a chat completion`, [answer._request_id, answer.usage])
  })

  test(`${name}: n: 2 gives two choices, and both are billed`, async () => {
    const answer = await create({ n: 2 })
    assert.deepEqual(
      answer.choices.map(choice => [choice.index, choice.message.content]),
      [0, 1].map(index => [index, 'You said: Hello world']),
    )
    assert.equal(answer.usage.completion_tokens, 8)
    bills.set(`${name}, two choices`, [answer._request_id, answer.usage])
  })

  test(`${name}: parallel tool calls, and their results sent back`, async () => {
    const answer = await create({ messages: CALL_BOTH, tools: TOOLS })
    const [{ message, finish_reason }] = answer.choices
    assert.equal(finish_reason, 'tool_calls')
    assertCalls(message.tool_calls)
    const results = message.tool_calls.map(call => ({ role: 'tool', tool_call_id: call.id, content: '14 °C' }))
    const next = await create({ messages: [...CALL_BOTH, message, ...results], tools: TOOLS })
    assert.match(next.choices[0].message.content, /14 °C/)
    assert.equal(next.choices[0].finish_reason, 'stop')
  })

  test(`${name}: ids, created and model are equal in all chunks, and the id has the shape chatcmpl-`, async () => {
    const chunks = await collected(await create({ stream: true }))
    assert.ok(chunks.length > 3)
    assert.match(chunks[0].id, /^chatcmpl-.+/)
    for (const field of ['id', 'created', 'model', 'object']) assert.equal(new Set(chunks.map(chunk => chunk[field])).size, 1, field)
    assert.equal(chunks[0].model, 'sandbox/echo')
    assert.equal(chunks.map(chunk => chunk.choices[0].delta.content ?? '').join(''), 'You said: Hello world')
  })

  test(`${name}: without include_usage no chunk has usage, and it is billed all the same`, async () => {
    const { data, response } = await create({ stream: true }).withResponse()
    const chunks = await collected(data)
    assert.ok(chunks.every(chunk => chunk.choices.length === 1 && (chunk.usage ?? null) === null))
    bills.set(`${name}, a stream`, [response.headers.get('x-request-id'), { completion_tokens: 4 }])
  })

  test(`${name}: with include_usage the last chunk has it, and no other`, async () => {
    const { data, response } = await create({ stream: true, stream_options: { include_usage: true } }).withResponse()
    const chunks = await collected(data)
    const last = chunks.pop()
    assert.deepEqual(last.choices, [])
    assert.equal(last.usage.completion_tokens, 4)
    assert.ok(chunks.every(chunk => (chunk.usage ?? null) === null))
    bills.set(`${name}, a stream with usage`, [response.headers.get('x-request-id'), last.usage])
  })

  test(`${name}: n: 2 in a stream, each choice whole`, async () => {
    const chunks = await collected(await create({ stream: true, n: 2 }))
    for (const index of [0, 1]) {
      const choices = chunks.flatMap(chunk => chunk.choices).filter(choice => choice.index === index)
      assert.equal(choices.map(choice => choice.delta.content ?? '').join(''), 'You said: Hello world')
      assert.deepEqual(
        choices.map(choice => choice.finish_reason).filter(reason => reason !== null),
        ['stop'],
      )
    }
  })

  test(`${name}: .stream() reads text`, async () => {
    const stream = client.chat.completions.stream({
      model: 'sandbox/echo',
      messages: HELLO,
      stream_options: { include_usage: true },
    })
    let text = ''
    stream.on('content', delta => {
      text += delta
    })
    const answer = await stream.finalChatCompletion()
    assert.equal(text, 'You said: Hello world')
    assert.equal(answer.choices[0].message.content, text)
    assert.equal(answer.choices[0].message.role, 'assistant')
    assert.equal((await stream.totalUsage()).completion_tokens, 4)
  })

  test(`${name}: .stream() reads parallel tool calls`, async () => {
    const stream = client.chat.completions.stream({ model: 'sandbox/echo', messages: CALL_BOTH, tools: TOOLS })
    const { message, finish_reason } = (await stream.finalChatCompletion()).choices[0]
    assert.equal(finish_reason, 'tool_calls')
    assertCalls(message.tool_calls)
  })

  test(`${name}: .stream() reads two choices`, async () => {
    const answer = await client.chat.completions.stream({ model: 'sandbox/echo', messages: HELLO, n: 2 }).finalChatCompletion()
    assert.deepEqual(
      answer.choices.map(choice => choice.message.content),
      ['You said: Hello world', 'You said: Hello world'],
    )
  })

  test(`${name}: .stream() reads a refusal`, async () => {
    const stream = client.chat.completions.stream({ model: 'up/refuses', messages: HELLO })
    let refused = ''
    stream.on('refusal.delta', ({ delta }) => {
      refused += delta
    })
    const { message } = (await stream.finalChatCompletion()).choices[0]
    assert.equal(message.refusal, 'I can not help with that.')
    assert.equal(refused, message.refusal)
    assert.equal(message.content, null)
  })

  test(`${name}: .parse() reads an answer in a JSON schema`, async () => {
    const schema = z.object({ city: z.string(), degrees: z.number() })
    const format = { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema: z.toJSONSchema(schema) } }
    const answer = await client.chat.completions.parse({ model: 'sandbox/echo', messages: HELLO, response_format: format })
    assert.ok(schema.safeParse(answer.choices[0].message.parsed).success)
  })

  test(`${name}: .runTools() goes from call to result to answer`, async () => {
    const runner = client.chat.completions.runTools({
      model: 'sandbox/echo',
      messages: [{ role: 'user', content: 'Use get_weather please.' }],
      tools: [{ type: 'function', function: { ...TOOLS[0].function, parse: JSON.parse, function: ({ city }) => `${city}: 14 °C` } }],
    })
    assert.match(await runner.finalContent(), /Tehran: 14 °C/)
  })

  test(`${name}: a legacy completion`, async () => {
    const answer = await client.completions.create({ model: 'sandbox/echo', prompt: 'Once upon a time' })
    assert.match(answer.choices[0].text, /Once upon a time/)
    assert.match(answer.id, /^cmpl-.+/)
    bills.set(`${name}, a legacy completion`, [answer._request_id, answer.usage])
  })

  test(`${name}: models.list() and models.retrieve() of an id with a slash, and of an alias`, async () => {
    const ids = []
    for await (const model of client.models.list()) ids.push(model.id)
    assert.deepEqual(ids.sort(), ['default', 'sandbox/echo', 'up/refuses'])
    const model = await client.models.retrieve('sandbox/echo')
    assert.equal(model.id, 'sandbox/echo')
    assert.equal(model.object, 'model')
    assert.equal(model.owned_by, 'sandbox')
    assert.ok(Number.isInteger(model.created))
    assert.equal((await client.models.retrieve('default')).id, 'default')
  })

  test(`${name}: embeddings.create() asks for base64 by itself and gets the right floats`, async () => {
    const input = ['one', 'two']
    const told = await client.embeddings.create({ model: 'sandbox/echo', input })
    const plain = await client.embeddings.create({ model: 'sandbox/echo', input, encoding_format: 'float' })
    assert.equal(told.data.length, 2)
    for (const [i, { embedding }] of told.data.entries()) {
      assert.equal(embedding.length, 8)
      assert.deepEqual([...embedding], plain.data[i].embedding)
    }
    assert.notDeepEqual(told.data[0].embedding, told.data[1].embedding)
    bills.set(`${name}, embeddings`, [told._request_id, told.usage])
  })

  test(`${name}: a moderation`, async () => {
    const answer = await client.moderations.create({ model: 'sandbox/echo', input: ['a kind word', 'kill them all'] })
    assert.deepEqual(
      answer.results.map(result => result.flagged),
      [false, true],
    )
    bills.set(`${name}, a moderation`, [answer._request_id, { prompt_tokens: 0 }])
  })

  test(`${name}: messages with images and a developer's role pass`, async () => {
    const answer = await create({
      messages: [
        { role: 'developer', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } },
          ],
        },
      ],
    })
    assert.match(answer.choices[0].message.content, /What is this\?/)
  })
}

for (const { name } of OPENAI) {
  for (const what of [
    'a chat completion',
    'two choices',
    'a stream',
    'a stream with usage',
    'a legacy completion',
    'embeddings',
    'a moderation',
  ]) {
    test(`${name}: _request_id is the id of the usage record, which has the tokens that were billed: ${what}`, async () => {
      const [id, usage] = bills.get(`${name}, ${what}`)
      const record = (await running.bills()).get(id)
      assert.ok(record, `no record ${id}`)
      assert.equal(record.state, 'settled')
      assert.equal(record.status, 200)
      if (usage.prompt_tokens !== undefined) assert.equal(record.input_tokens, usage.prompt_tokens)
      assert.equal(record.output_tokens, usage.completion_tokens ?? 0)
      assert.equal(record.cost_rial, rial({ input: record.input_tokens, output: record.output_tokens }))
    })
  }
}

function assertCalls(calls) {
  assert.deepEqual(
    calls.map(call => [call.type, call.function.name, call.function.arguments]),
    TOOLS.map(tool => ['function', tool.function.name, '{"city":"Tehran"}']),
  )
  assert.equal(new Set(calls.map(call => call.id)).size, 2)
}

async function collected(stream) {
  const chunks = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}

/** A model that refuses, as OpenAI streams it. */
function refusal({ body }, response) {
  const chunk = (delta, finish_reason = null) =>
    JSON.stringify({
      id: 'chatcmpl-9',
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model: body.model,
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    })
  sse(response, [
    chunk({ role: 'assistant', content: null, refusal: '' }),
    chunk({ refusal: 'I can not ' }),
    chunk({ refusal: 'help with that.' }),
    chunk({}, 'stop'),
    '[DONE]',
  ])
}
