import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { generateText, streamText, tool } from 'ai'
import { z } from 'zod'
import { CALLS, CHAT_SERVERS, chatServer, RESULT, TEXT, THOUGHT } from './support/chat-servers.mjs'
import { at, gateway, PRICE, provider, rial } from './support/gateway.mjs'
import { aiSdk, langchain, OPENAI, openai } from './support/libraries.mjs'

/* Text, thoughts, calls and their results, and what they cost, through each kind of provider that has a chat wire of its own. */

const kinds = Object.keys(CHAT_SERVERS)
const providers = {}
for (const kind of kinds) {
  const far = await provider(chatServer(kind))
  providers[kind] = at(far, kind, { base_url: `http://127.0.0.1:${far.port}${CHAT_SERVERS[kind].base}` })
}
const running = await gateway({
  providers,
  models: Object.fromEntries(
    kinds.flatMap(kind => ['m', 'too-long', 'breaks'].map(name => [`${kind}/${name}`, { price: PRICE, default_max_tokens: 200 }])),
  ),
})
/** Of each request: what it was, its id (or null where a library does not tell), and what must have been billed. */
const bills = []
const broken = []

const HELLO = 'Tea or coffee?'
const ASK = 'What is the weather, and what time is it?'
const schemas = { get_weather: z.object({ city: z.string() }), now: z.object({}) }
const TOOLS = Object.entries(schemas).map(([name, schema]) => {
  const { $schema: _, ...parameters } = z.toJSONSchema(schema)
  return { type: 'function', function: { name, description: `Say ${name}`, parameters } }
})

/** How each library asks; every one returns `{text, thought, calls, finish, usage: [input, output, cached], ids}`, and does both turns where there are calls. */
const LIBRARIES = {
  ...Object.fromEntries(
    OPENAI.flatMap(({ name, module }) => {
      const ask = async (body, streamed) => {
        const completions = openai(running, { module }).chat.completions
        if (!streamed) {
          const answer = await completions.create(body)
          return { answer, id: answer._request_id }
        }
        const stream = completions.stream({ ...body, stream_options: { include_usage: true } })
        const answer = await stream.finalChatCompletion()
        return { answer, id: null, usage: await stream.totalUsage() }
      }
      return [false, true].map(streamed => [
        `${name}${streamed ? ' .stream()' : ''}`,
        async (model, tools) => {
          const messages = [
            { role: 'system', content: 'Be brief.' },
            { role: 'user', content: tools ? ASK : HELLO },
          ]
          const first = await ask({ model, messages, ...(tools ? { tools: TOOLS } : {}) }, streamed)
          const [{ message, finish_reason: finish }] = first.answer.choices
          const calls = (message.tool_calls ?? []).map(call => [call.function.name, JSON.parse(call.function.arguments)])
          let last = message
          const ids = [first.id]
          if (tools) {
            const results = message.tool_calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: RESULT }))
            const second = await ask({ model, messages: [...messages, message, ...results], tools: TOOLS }, streamed)
            last = second.answer.choices[0].message
            ids.push(second.id)
          }
          const usage = first.answer.usage
          return {
            text: last.content,
            thought: message.reasoning_content,
            calls,
            finish,
            usage: [usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details?.cached_tokens],
            ids,
          }
        },
      ])
    }),
  ),
  ...Object.fromEntries(
    [
      ['ai generateText', generateText],
      ['ai streamText', streamText],
    ].map(([name, ask]) => [
      name,
      async (model, tools) => {
        const given = Object.fromEntries(
          Object.entries(schemas).map(([name, inputSchema]) => [
            name,
            tool({ description: `Say ${name}`, inputSchema, execute: async () => RESULT }),
          ]),
        )
        const result = ask({
          model: aiSdk(running)(model),
          system: 'Be brief.',
          prompt: tools ? ASK : HELLO,
          maxRetries: 0,
          ...(tools ? { tools: given, stopWhen: ({ steps }) => steps.length === 2 } : {}),
        })
        const steps = await (await result).steps
        const [{ usage, reasoningText, toolCalls, finishReason }] = steps
        return {
          text: steps.at(-1).text,
          thought: reasoningText,
          calls: toolCalls.map(call => [call.toolName, call.input]),
          finish: finishReason.replace('-', '_'),
          usage: [usage.inputTokens, usage.outputTokens, usage.inputTokenDetails?.cacheReadTokens],
          ids: steps.map(step => step.response.headers['x-request-id']),
        }
      },
    ]),
  ),
  'langchain stream()': async (model, tools) => {
    const chat = langchain(running, { model })
    const bound = tools ? chat.bindTools(TOOLS) : chat
    const ask = async messages => {
      let answer
      for await (const chunk of await bound.stream(messages)) answer = answer === undefined ? chunk : answer.concat(chunk)
      return answer
    }
    const messages = [new HumanMessage(tools ? ASK : HELLO)]
    const first = await ask(messages)
    let last = first
    if (tools) {
      const results = first.tool_calls.map(({ id }) => new ToolMessage({ tool_call_id: id, content: RESULT }))
      last = await ask([...messages, first, ...results])
    }
    const usage = first.usage_metadata
    return {
      text: last.content,
      calls: first.tool_calls.map(call => [call.name, call.args]),
      finish: first.response_metadata.finish_reason,
      usage: [usage.input_tokens, usage.output_tokens, usage.input_token_details?.cache_read],
      ids: tools ? [null, null] : [null],
    }
  },
}

for (const kind of kinds) {
  const { bill, thinks } = CHAT_SERVERS[kind]
  for (const [library, ask] of Object.entries(LIBRARIES)) {
    for (const tools of [false, true]) {
      test(`${kind}: ${library} gets ${tools ? 'calls, answers them,' : 'text'} and the right usage`, async () => {
        const answer = await ask(`${kind}/m`, tools)
        bills.push(...answer.ids.map((id, turn) => ({ what: `${kind}: ${library}${tools ? `, turn ${turn + 1}` : ''}`, id, kind, bill })))
        assert.deepEqual(answer.calls, tools ? CALLS : [])
        if (tools) assert.ok(answer.text.includes(RESULT), answer.text)
        else assert.equal(answer.text, TEXT)
        assert.equal(answer.finish, tools ? 'tool_calls' : 'stop')
        if (thinks && 'thought' in answer) assert.equal(answer.thought, THOUGHT)
        assert.deepEqual([answer.usage[0], answer.usage[1], answer.usage[2] ?? 0], [bill.input, bill.output, bill.cached ?? 0])
      })
    }
  }

  test(`${kind}: a refusal in its own words is a BadRequestError with its message`, async () => {
    const error = await openai(running)
      .chat.completions.create({ model: `${kind}/too-long`, messages: [{ role: 'user', content: HELLO }] })
      .catch(reason => reason)
    assert.equal(error.constructor.name, 'BadRequestError')
    assert.match(error.message, /longer than it may be/)
  })
}

for (const kind of kinds) {
  test(`${kind}: a request of 400 kB`, async () => {
    const messages = [{ role: 'user', content: 'word '.repeat(80_000) }]
    const answer = await openai(running).chat.completions.create({ model: `${kind}/m`, messages })
    assert.equal(answer.choices[0].message.content, TEXT)
    bills.push({ what: `${kind}: a request of 400 kB`, id: answer._request_id, kind, bill: CHAT_SERVERS[kind].bill })
  })

  test(`${kind}: a stream that breaks off raises, and what came of it is charged`, async () => {
    const messages = [{ role: 'user', content: HELLO }]
    const { data, response } = await openai(running)
      .chat.completions.create({ model: `${kind}/breaks`, messages, stream: true })
      .withResponse()
    let text = ''
    await assert.rejects(
      async () => {
        for await (const chunk of data) text += chunk.choices[0].delta.content ?? ''
      },
      { code: 'upstream_error' },
    )
    assert.ok(text !== '' && TEXT.startsWith(text), text)
    broken.push([kind, response.headers.get('x-request-id')])
  })
}

test('every usage record has the tokens that the provider billed, and their cost', async t => {
  const records = await running.bills()
  const settled = [...records.values()].filter(record => record.state === 'settled')
  assert.equal(settled.length, bills.length)
  for (const [i, { what, id, kind, bill }] of bills.entries()) {
    await t.test(what, () => {
      const record = id === null ? settled[i] : records.get(id)
      assert.equal(record.provider, kind)
      assert.equal(record.usage_source, 'provider')
      const { input_tokens, cached_input_tokens, output_tokens, reasoning_tokens } = record
      assert.deepEqual(
        { input: input_tokens, cached: cached_input_tokens, output: output_tokens, reasoning: reasoning_tokens },
        { cached: 0, reasoning: 0, ...bill },
      )
      assert.equal(record.cost_rial, rial(bill))
    })
  }
  for (const [kind, id] of broken) {
    await t.test(`${kind}: a stream that broke off`, () => {
      const { state, ended_by, usage_source, output_tokens, cost_rial } = records.get(id)
      assert.deepEqual({ state, ended_by, usage_source }, { state: 'partial', ended_by: 'upstream_error', usage_source: 'counted' })
      assert.ok(output_tokens > 0 && cost_rial > 0n)
    })
  }
})
