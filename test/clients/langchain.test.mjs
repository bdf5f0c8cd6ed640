import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { z } from 'zod'
import { gateway, rial } from './support/gateway.mjs'
import { langchain, langchainEmbeddings } from './support/libraries.mjs'

const running = await gateway()
const model = langchain(running)
const schema = z.object({ city: z.literal('Tehran') })
const TOOLS = ['get_weather', 'get_time'].map(name => tool(({ city }) => `${city}: ${name}`, { name, description: `Say ${name}`, schema }))
const ASKED = new HumanMessage('Use get_weather and get_time, both of them.')
/** Usage metadata in the order of the requests. */
const billed = []

test('langchain: invoke() has its text and its usage', async () => {
  const answer = await model.invoke('Hello world')
  assert.equal(answer.content, 'You said: Hello world')
  assert.equal(answer.response_metadata.finish_reason, 'stop')
  assert.equal(answer.usage_metadata.output_tokens, 4)
  assert.match(answer.id, /^chatcmpl-.+/)
  billed.push(answer.usage_metadata)
})

test('langchain: stream() has its text, and its usage without being asked', async () => {
  let answer
  for await (const chunk of await model.stream('Hello world')) answer = answer === undefined ? chunk : answer.concat(chunk)
  assert.equal(answer.content, 'You said: Hello world')
  assert.equal(answer.usage_metadata.output_tokens, 4)
  billed.push(answer.usage_metadata)
})

test('langchain: n: 2 gives two generations', async () => {
  const answer = await langchain(running, { n: 2 }).generate([[new HumanMessage('Hello world')]])
  assert.deepEqual(
    answer.generations[0].map(({ text }) => text),
    ['You said: Hello world', 'You said: Hello world'],
  )
  billed.push({ output_tokens: 8 })
})

test('langchain: invoke() gets parallel tool calls, and answers when their results come back', async () => {
  const bound = model.bindTools(TOOLS)
  const answer = await bound.invoke([ASKED])
  assertCalls(answer)
  const results = await Promise.all(TOOLS.map((each, i) => each.invoke({ ...answer.tool_calls[i], type: 'tool_call' })))
  assert.ok(results.every(result => result instanceof ToolMessage))
  const next = await bound.invoke([ASKED, answer, ...results])
  assert.match(next.content, /Tehran: get_time/)
  billed.push(answer.usage_metadata, next.usage_metadata)
})

test('langchain: stream() gets parallel tool calls', async () => {
  let answer
  for await (const chunk of await model.bindTools(TOOLS).stream([ASKED])) answer = answer === undefined ? chunk : answer.concat(chunk)
  assertCalls(answer)
  billed.push(answer.usage_metadata)
})

test('langchain: withStructuredOutput() gives an object of the schema', async () => {
  const weather = z.object({ city: z.string(), degrees: z.number() })
  for (const method of ['jsonSchema', 'functionCalling']) {
    const answer = await model.withStructuredOutput(weather, { name: 'weather', method }).invoke('Hello')
    assert.ok(weather.safeParse(answer).success, method)
    billed.push({})
  }
})

test('langchain: embedDocuments() and embedQuery() get floats', async () => {
  const embeddings = langchainEmbeddings(running)
  const vectors = await embeddings.embedDocuments(['one', 'two'])
  assert.equal(vectors.length, 2)
  assert.ok(vectors.every(vector => vector.length === 8 && vector.every(Number.isFinite)))
  assert.deepEqual(await embeddings.embedQuery('two'), vectors[1])
})

test('langchain: the usage records have the tokens that were billed', async () => {
  const records = [...(await running.bills()).values()].filter(record => record.surface === 'chat')
  assert.equal(records.length, billed.length)
  for (const [i, record] of records.entries()) {
    assert.equal(record.state, 'settled')
    assert.equal(record.input_tokens, billed[i].input_tokens ?? record.input_tokens)
    assert.equal(record.output_tokens, billed[i].output_tokens ?? record.output_tokens)
    assert.equal(record.cost_rial, rial({ input: record.input_tokens, output: record.output_tokens }))
  }
})

function assertCalls(answer) {
  assert.deepEqual(
    answer.tool_calls.map(call => [call.name, call.args]),
    TOOLS.map(({ name }) => [name, { city: 'Tehran' }]),
  )
  assert.deepEqual(answer.invalid_tool_calls ?? [], [])
  assert.equal(new Set(answer.tool_calls.map(call => call.id)).size, 2)
}
