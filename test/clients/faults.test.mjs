import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { streamText } from 'ai'
import { at, gateway, KEY, provider, rial } from './support/gateway.mjs'
import { aiSdk, langchain, OPENAI, openai } from './support/libraries.mjs'

const HELLO = [{ role: 'user', content: 'Hello' }]
const PRICE = { input: 1_000_000, output: 2_000_000 }
const USAGE = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }

/** What the provider does, by the name of the model that is asked for. */
const SCRIPTS = {
  async error(_seen, tell) {
    tell.text('Hel', 'lo')
    tell.data('{"error":{"message":"The model fell over.","type":"server_error","param":null,"code":"model_fell"}}')
    tell.end()
  },
  async cut(_seen, tell) {
    tell.text('Hel', 'lo')
    tell.end()
  },
  async reset(_seen, tell) {
    tell.text('Hel', 'lo')
    await sleep(20)
    tell.response.destroy()
  },
  async 'cut-after-finish'(_seen, tell) {
    tell.text('Hel', 'lo')
    tell.finish()
    tell.end()
  },
  async endless(seen, tell) {
    let gone = false
    seen.closed.then(() => {
      gone = true
      closedAt.push(performance.now())
    })
    tell.text('')
    for (let i = 0; !gone && i < 1000; i++) {
      tell.piece(`${i} `)
      await sleep(20)
    }
    tell.end()
  },
  async mute(seen) {
    seen.closed.then(() => closedAt.push(performance.now()))
  },
  /** Says that it has ended, and keeps its connection open. */
  async lingers(_seen, tell) {
    tell.whole()
    await sleep(2000)
    tell.end()
  },
  async 'silent-within'(_seen, tell) {
    tell.text('Hel')
    await sleep(16_000)
    tell.piece('lo')
    tell.finish()
    tell.usage()
    tell.data('[DONE]')
    tell.end()
  },
  async 'silent-before'(_seen, tell) {
    tell.response.flushHeaders()
    await sleep(16_000)
    tell.whole()
    tell.end()
  },
  /** Comments, line ends of two characters, calls without an index and with everything said twice: all that is seen of servers. */
  async untidy(_seen, tell) {
    const { response } = tell
    response.write(': PROCESSING\r\n\r\n')
    const call = (i, text) => ({ id: `call_${i}`, function: { name: `f${i}`, arguments: text } })
    for (const delta of [
      { role: 'assistant', content: 'Hello' },
      { role: 'assistant', tool_calls: [call(1, '{"a"')] },
      { role: 'assistant', tool_calls: [call(1, ':1}')] },
      { role: 'assistant', tool_calls: [call(2, '{}')] },
    ]) {
      response.write(`data:${tell.chunk(delta)}\r\n\r\n`)
    }
    response.write(`data: ${tell.chunk({}, 'tool_calls')}\n\n`)
    tell.usage()
    tell.data('[DONE]')
    tell.end()
  },
  async 'json-for-a-stream'({ body }, { response }) {
    response.writeHead(200, { 'content-type': 'application/json' })
    const message = { role: 'assistant', content: 'Hello' }
    response.end(
      JSON.stringify({
        id: 'chatcmpl-3',
        object: 'chat.completion',
        created: 1,
        model: body.model,
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage: USAGE,
      }),
    )
  },
}

const closedAt = []
const far = await provider((seen, response) => {
  const name = seen.body.model
  if (name !== 'json-for-a-stream' && name !== 'mute') response.writeHead(200, { 'content-type': 'text/event-stream' })
  return SCRIPTS[name](seen, teller(seen, response))
})
const running = await gateway({
  providers: { up: at(far) },
  models: Object.fromEntries(Object.keys(SCRIPTS).map(name => [`up/${name}`, { price: PRICE, default_max_tokens: 100 }])),
})
const bills = []

for (const { name, module } of OPENAI) {
  const begin = (model, options) =>
    openai(running, { module })
      .chat.completions.create({ model: `up/${model}`, messages: HELLO, stream: true }, options)
      .withResponse()

  test(`${name}: an error inside a stream raises, with its code, its type and the request's id`, async () => {
    const { data, response } = await begin('error')
    const { text, error } = await read(data)
    assert.equal(text, 'Hello')
    assert.ok(error instanceof module.APIError, `${error}`)
    assert.deepEqual([error.code, error.type, error.status], ['upstream_error', 'upstream_error', undefined])
    assert.equal(error.requestID, response.headers.get('x-request-id'))
    bills.push([
      `${name}, an error inside a stream`,
      error.requestID,
      { state: 'partial', ended_by: 'upstream_error', code: 'upstream_error' },
    ])
  })

  for (const how of ['cut', 'reset']) {
    test(`${name}: a stream that is ${how} without a finish_reason raises`, async () => {
      const { data, response } = await begin(how)
      const { text, error } = await read(data)
      assert.equal(text, 'Hello')
      assert.ok(error instanceof module.APIError, `${error}`)
      assert.equal(error.code, 'upstream_error')
      const id = response.headers.get('x-request-id')
      bills.push([`${name}, a stream that is ${how}`, id, { state: 'partial', ended_by: 'upstream_error', code: 'upstream_error' }])
    })

    test(`${name}: .stream() of an answer that is ${how} raises, too`, async () => {
      const stream = openai(running, { module }).chat.completions.stream({ model: `up/${how}`, messages: HELLO })
      await assert.rejects(stream.finalChatCompletion(), module.APIError)
    })
  }

  test(`${name}: a stream that ends after its finish_reason, without [DONE] and usage, is whole`, async () => {
    const { data, response } = await begin('cut-after-finish')
    assert.deepEqual(await read(data), { text: 'Hello', error: undefined })
    const id = response.headers.get('x-request-id')
    bills.push([`${name}, a stream without usage`, id, { state: 'settled', ended_by: 'provider', usage_source: 'counted', code: null }])
  })

  for (const how of ['abort()', 'break']) {
    test(`${name}: ${how} closes the provider's connection at once, and what came is charged`, async () => {
      const before = closedAt.length
      const { data, response } = await begin('endless')
      let pieces = 0
      let left = 0
      try {
        for await (const chunk of data) {
          if ((chunk.choices[0].delta.content ?? '') !== '') pieces++
          if (pieces < 5) continue
          left = performance.now()
          if (how === 'break') break
          data.controller.abort()
        }
      } catch (error) {
        assert.ok(error instanceof module.APIUserAbortError, `${error}`)
      }
      await until(() => closedAt.length > before)
      const ms = closedAt[before] - left
      // The figure itself is measured where nothing else runs; the stream would go on for 20 s.
      assert.ok(ms < 1000, `${Math.round(ms)} ms`)
      const id = response.headers.get('x-request-id')
      bills.push([`${name}, ${how}`, id, { ended_by: 'client', status: 499, usage_source: 'counted' }])
    })
  }

  test(`${name}: an abort before there is any answer closes the provider's connection, and the input is charged`, async () => {
    const before = closedAt.length
    const abort = new AbortController()
    const { completions } = openai(running, { module }).chat
    const pending = completions.create({ model: 'up/mute', messages: HELLO }, { signal: abort.signal })
    await until(() => far.seen.at(-1)?.body.model === 'mute')
    const left = performance.now()
    abort.abort()
    await assert.rejects(pending, module.APIUserAbortError)
    await until(() => closedAt.length > before)
    const ms = closedAt[before] - left
    assert.ok(ms < 1000, `${Math.round(ms)} ms`)
    far.seen.length = 0
  })

  test(`${name}: a provider that keeps its connection open after [DONE] holds nobody up`, async () => {
    const { data } = await begin('lingers')
    const from = performance.now()
    assert.deepEqual(await read(data), { text: 'Hello', error: undefined })
    const ms = performance.now() - from
    assert.ok(ms < 500, `${Math.round(ms)} ms`)
  })

  test(`${name}: .stream() reads what an untidy server streams`, async () => {
    const stream = openai(running, { module }).chat.completions.stream({ model: 'up/untidy', messages: HELLO })
    const { message } = (await stream.finalChatCompletion()).choices[0]
    assert.equal(message.role, 'assistant')
    assert.equal(message.content, 'Hello')
    assert.deepEqual(
      message.tool_calls.map(call => [call.id, call.type, call.function.name, call.function.arguments]),
      [
        ['call_1', 'function', 'f1', '{"a":1}'],
        ['call_2', 'function', 'f2', '{}'],
      ],
    )
  })

  test(`${name}: a provider that answers a stream with JSON is told as a stream`, async () => {
    const { data, response } = await begin('json-for-a-stream')
    assert.match(response.headers.get('content-type'), /^text\/event-stream/)
    assert.deepEqual(await read(data), { text: 'Hello', error: undefined })
    bills.push([
      `${name}, JSON for a stream`,
      response.headers.get('x-request-id'),
      { state: 'settled', input_tokens: 9, output_tokens: 3 },
    ])
  })
}

for (const how of ['error', 'cut', 'reset']) {
  test(`ai: streamText ends with finishReason error after: ${how}`, async () => {
    const result = streamText({ model: aiSdk(running)(`up/${how}`), prompt: 'Hello', maxRetries: 0, onError() {} })
    const parts = []
    for await (const part of result.fullStream) parts.push(part)
    const text = parts.map(part => (part.type === 'text-delta' ? part.text : '')).join('')
    assert.equal(text, 'Hello')
    assert.ok(parts.some(part => part.type === 'error'))
    assert.equal(await result.finishReason, 'error')
  })

  test(`langchain: stream() raises after: ${how}`, async () => {
    let text = ''
    await assert.rejects(async () => {
      for await (const chunk of await langchain(running, { model: `up/${how}` }).stream('Hello')) text += chunk.content
    })
    assert.equal(text, 'Hello')
  })
}

for (const model of ['up/lingers', 'sandbox/echo']) {
  test(`the body ends within 50 ms of [DONE], whatever the provider does: ${model}`, async () => {
    const waited = []
    for (let i = 0; i < 5; i++) {
      let done = 0
      await raw(model, text => {
        if (text.includes('[DONE]')) done = performance.now()
      })
      assert.ok(done > 0)
      waited.push(performance.now() - done)
    }
    const [, , median] = waited.sort((a, b) => a - b)
    assert.ok(median <= 50, `${waited.map(Math.round)} ms`)
  })
}

test('comments in a long silence of the provider disturb nobody', { timeout: 40_000 }, async () => {
  const seen = {}
  const readers = ['silent-within', 'silent-before'].flatMap(model => [
    raw(`up/${model}`, text => {
      seen[model] = (seen[model] ?? '') + text
    }),
    ...OPENAI.map(async ({ module }) => {
      const stream = openai(running, { module }).chat.completions.stream({ model: `up/${model}`, messages: HELLO })
      assert.equal(await stream.finalContent(), 'Hello')
    }),
    (async () => {
      const result = streamText({ model: aiSdk(running)(`up/${model}`), prompt: 'Hello', maxRetries: 0 })
      assert.equal(await result.text, 'Hello')
      assert.equal(await result.finishReason, 'stop')
    })(),
    (async () => {
      let text = ''
      for await (const chunk of await langchain(running, { model: `up/${model}` }).stream('Hello')) text += chunk.content
      assert.equal(text, 'Hello')
    })(),
  ])
  await Promise.all(readers)
  for (const [model, text] of Object.entries(seen)) {
    assert.equal(text.match(/^: ping$/gm)?.length, 1, model)
    assert.doesNotMatch(text, /^event:|^id:|^retry:/m)
  }
})

test('the usage records show how each stream ended, and what was charged', async t => {
  const records = await running.bills()
  for (const [what, id, expected] of bills) {
    await t.test(what, () => {
      const record = records.get(id)
      assert.ok(record, `no record ${id}`)
      assert.deepEqual(Object.fromEntries(Object.keys(expected).map(name => [name, record[name]])), expected)
      assert.ok(record.output_tokens > 0)
      assert.equal(record.cost_rial, rial({ input: record.input_tokens, output: record.output_tokens }))
    })
  }
  assert.ok([...records.values()].every(record => record.state !== 'held'))
  const abandoned = [...records.values()].filter(record => record.model === 'up/mute')
  assert.equal(abandoned.length, OPENAI.length)
  for (const record of abandoned) {
    const { ended_by, status, usage_source, output_tokens } = record
    assert.deepEqual(
      { ended_by, status, usage_source, output_tokens },
      { ended_by: 'client', status: 499, usage_source: 'estimate', output_tokens: 0 },
    )
    assert.ok(record.cost_rial > 0n)
  }
})

/** Writes a stream as OpenAI does, step by step. */
function teller({ body }, response) {
  const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: body.model }
  const chunk = (delta, finish_reason = null) => JSON.stringify({ ...base, choices: [{ index: 0, delta, logprobs: null, finish_reason }] })
  const data = text => response.write(`data: ${text}\n\n`)
  const tell = {
    response,
    chunk,
    data,
    piece: content => data(chunk({ content })),
    text: (...pieces) => {
      data(chunk({ role: 'assistant', content: '' }))
      for (const piece of pieces) tell.piece(piece)
    },
    finish: () => data(chunk({}, 'stop')),
    usage: () => data(JSON.stringify({ ...base, choices: [], usage: USAGE })),
    whole: () => {
      tell.text('Hel', 'lo')
      tell.finish()
      tell.usage()
      data('[DONE]')
    },
    end: () => response.end(),
  }
  return tell
}

/** The text of a stream, and what it raised. */
async function read(stream) {
  let text = ''
  try {
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
  } catch (error) {
    return { text, error }
  }
  return { text, error: undefined }
}

/** Reads a stream's bytes as they come. */
async function raw(model, seen) {
  const response = await fetch(`${running.v1}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: HELLO, stream: true }),
  })
  const decoder = new TextDecoder()
  for await (const bytes of response.body) seen(decoder.decode(bytes, { stream: true }))
}

async function until(condition) {
  while (!condition()) await sleep(2)
}
