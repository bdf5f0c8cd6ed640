import assert from 'node:assert/strict'
import { test } from 'node:test'
import { embedMany, generateText, Output, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
import { gateway, rial } from './support/gateway.mjs'
import { aiSdk } from './support/libraries.mjs'

const running = await gateway()
const sdk = aiSdk(running)
const model = sdk('sandbox/echo')
const bills = new Map()
const inputSchema = z.object({ city: z.literal('Tehran') })
const offered = { get_weather: tool({ description: 'The weather', inputSchema }), get_time: tool({ description: 'The time', inputSchema }) }

test('ai: generateText has its text, its usage and its id', async () => {
  const answer = await generateText({ model, prompt: 'Hello world', maxRetries: 0 })
  assert.equal(answer.text, 'You said: Hello world')
  assert.equal(answer.finishReason, 'stop')
  assert.equal(answer.usage.outputTokens, 4)
  assert.equal(answer.response.modelId, 'sandbox/echo')
  assert.match(answer.response.id, /^chatcmpl-.+/)
  bills.set('generateText', [answer.response.headers['x-request-id'], answer.usage])
})

test('ai: generateText gets parallel tool calls, and an agent of several steps comes to its end', async () => {
  const prompt = 'Use get_weather and get_time, both of them.'
  const answer = await generateText({ model, prompt, tools: offered, maxRetries: 0 })
  assert.equal(answer.finishReason, 'tool-calls')
  assertCalls(answer.toolCalls)
  const execute = async ({ city }) => `${city}: 14 °C`
  const tools = { get_weather: tool({ description: 'The weather', inputSchema, execute }) }
  const agent = await generateText({ model, prompt: 'Use get_weather.', tools, stopWhen: stepCountIs(3), maxRetries: 0 })
  assert.equal(agent.steps.length, 2)
  assert.match(agent.text, /Tehran: 14 °C/)
})

test('ai: generateText with a schema gives an object of it', async () => {
  const schema = z.object({ city: z.string(), degrees: z.number() })
  const structured = aiSdk(running, { supportsStructuredOutputs: true })('sandbox/echo')
  const { output } = await generateText({ model: structured, prompt: 'Hello', output: Output.object({ schema }), maxRetries: 0 })
  assert.ok(schema.safeParse(output).success)
})

test('ai: streamText gives text, its finish and its usage', async () => {
  const result = streamText({ model, prompt: 'Hello world', maxRetries: 0 })
  let text = ''
  for await (const piece of result.textStream) text += piece
  assert.equal(text, 'You said: Hello world')
  assert.equal(await result.finishReason, 'stop')
  const usage = await result.usage
  assert.equal(usage.outputTokens, 4)
  bills.set('streamText', [(await result.response).headers['x-request-id'], usage])
})

test('ai: streamText without includeUsage is billed all the same', async () => {
  const quiet = aiSdk(running, { includeUsage: false })('sandbox/echo')
  const result = streamText({ model: quiet, prompt: 'Hello world', maxRetries: 0 })
  assert.equal(await result.text, 'You said: Hello world')
  assert.equal((await result.usage).outputTokens, undefined)
  bills.set('streamText without usage', [(await result.response).headers['x-request-id'], { outputTokens: 4 }])
})

test('ai: streamText gets parallel tool calls', async () => {
  const result = streamText({ model, prompt: 'Use get_weather and get_time, both of them.', tools: offered, maxRetries: 0 })
  assertCalls(await result.toolCalls)
  assert.equal(await result.finishReason, 'tool-calls')
})

test('ai: a completion model reads a legacy completion', async () => {
  const answer = await generateText({ model: sdk.completionModel('sandbox/echo'), prompt: 'Hello world', maxRetries: 0 })
  assert.match(answer.text, /Hello world/)
})

test('ai: embedMany asks for floats and gets them', async () => {
  const answer = await embedMany({ model: sdk.embeddingModel('sandbox/echo'), values: ['one', 'two'], maxRetries: 0 })
  assert.equal(answer.embeddings.length, 2)
  assert.ok(answer.embeddings.every(vector => vector.length === 8 && vector.every(Number.isFinite)))
  bills.set('embedMany', [answer.responses[0].headers['x-request-id'], { inputTokens: answer.usage.tokens, outputTokens: 0 }])
})

for (const what of ['generateText', 'streamText', 'streamText without usage', 'embedMany']) {
  test(`ai: the usage record has the tokens that were billed: ${what}`, async () => {
    const [id, usage] = bills.get(what)
    const record = (await running.bills()).get(id)
    assert.equal(record.state, 'settled')
    if (usage.inputTokens !== undefined) assert.equal(record.input_tokens, usage.inputTokens)
    assert.equal(record.output_tokens, usage.outputTokens)
    assert.equal(record.cost_rial, rial({ input: record.input_tokens, output: record.output_tokens }))
  })
}

function assertCalls(calls) {
  assert.deepEqual(
    calls.map(call => [call.toolName, call.input]),
    Object.keys(offered).map(name => [name, { city: 'Tehran' }]),
  )
  assert.equal(new Set(calls.map(call => call.toolCallId)).size, 2)
}
