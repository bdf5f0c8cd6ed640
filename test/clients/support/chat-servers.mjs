import { json } from './gateway.mjs'

/*
 * Far ends that speak the chat wire of a kind, and refuse what the real one refuses: another path, another way of authorizing, a field that it
 * does not know. They say «Tea, then.» after some thought; where functions are offered they call two of them; when the results have come
 * back they repeat them.
 */

export const TEXT = 'Tea, then.'
export const THOUGHT = 'Hm, tea.'
export const RESULT = '14 °C in Tehran'
export const CALLS = [
  ['get_weather', { city: 'تهران' }],
  ['now', {}],
]

const data = body => `data: ${JSON.stringify(body)}\n\n`
const event = body => `event: ${body.type}\n${data(body)}`

/** By kind: where and how it is asked, what it answers, and what a gateway has to bill for it. */
export const CHAT_SERVERS = {
  anthropic: {
    base: '/v1',
    path: '/v1/messages',
    authorized: headers => headers['x-api-key'] === 'sk-upstream' && headers['anthropic-version'] === '2023-06-01',
    required: ['model', 'max_tokens', 'messages'],
    known: ['system', 'tools', 'tool_choice', 'stream', 'temperature', 'stop_sequences', 'metadata'],
    results: body =>
      body.messages
        .flatMap(({ content }) => (Array.isArray(content) ? content : []))
        .filter(block => block.type === 'tool_result')
        .map(block => block.content),
    refusal: message => ({ type: 'error', error: { type: 'invalid_request_error', message }, request_id: 'req_1' }),
    thinks: true,
    bill: { input: 470, cached: 400, output: 58 },
    whole: ({ calls, text }) => ({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content: [
        { type: 'thinking', thinking: THOUGHT, signature: 'EqQB' },
        ...(calls.length > 0 ? [] : [{ type: 'text', text }]),
        ...calls.map(([name, input], i) => ({ type: 'tool_use', id: `toolu_${i}`, name, input })),
      ],
      stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 50, cache_creation_input_tokens: 20, cache_read_input_tokens: 400, output_tokens: 58 },
    }),
    *stream(said) {
      const { content, stop_reason, usage, ...message } = CHAT_SERVERS.anthropic.whole(said)
      yield event({ type: 'message_start', message: { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } } })
      yield event({ type: 'ping' })
      for (const [index, block] of content.entries()) {
        const [empty, deltas] = {
          thinking: () => [
            { ...block, thinking: '' },
            [
              { type: 'thinking_delta', thinking: block.thinking },
              { type: 'signature_delta', signature: 'EqQB' },
            ],
          ],
          text: () => [{ ...block, text: '' }, halves(block.text).map(text => ({ type: 'text_delta', text }))],
          tool_use: () => [
            { ...block, input: {} },
            halves(JSON.stringify(block.input)).map(partial_json => ({ type: 'input_json_delta', partial_json })),
          ],
        }[block.type]()
        yield event({ type: 'content_block_start', index, content_block: empty })
        for (const delta of deltas) yield event({ type: 'content_block_delta', index, delta })
        yield event({ type: 'content_block_stop', index })
      }
      yield event({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 58 } })
      yield event({ type: 'message_stop' })
    },
  },

  gemini: {
    base: '/v1beta',
    path: (model, streamed) => `/v1beta/models/${model}:${streamed ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    streams: path => path.includes(':stream'),
    authorized: headers => headers['x-goog-api-key'] === 'sk-upstream' && headers.authorization === undefined,
    required: ['contents'],
    known: ['systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'safetySettings'],
    results: body =>
      body.contents
        .flatMap(({ parts }) => parts)
        .flatMap(part => (part.functionResponse === undefined ? [] : [JSON.stringify(part.functionResponse.response)])),
    refusal: message => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }),
    thinks: true,
    bill: { input: 60, cached: 32, output: 65, reasoning: 45 },
    whole: ({ calls, text }) => ({
      candidates: [
        {
          content: {
            role: 'model',
            parts: [
              { text: THOUGHT, thought: true },
              ...(calls.length > 0 ? [] : [{ text }]),
              ...calls.map(([name, args]) => ({ functionCall: { name, args }, thoughtSignature: 'EqQC' })),
            ],
          },
          finishReason: 'STOP',
          index: 0,
        },
      ],
      usageMetadata: {
        promptTokenCount: 60,
        candidatesTokenCount: 20,
        thoughtsTokenCount: 45,
        totalTokenCount: 125,
        cachedContentTokenCount: 32,
      },
      modelVersion: 'm',
      responseId: 'r-1',
    }),
    *stream(said) {
      const { candidates, usageMetadata, ...rest } = CHAT_SERVERS.gemini.whole(said)
      for (const part of candidates[0].content.parts) {
        const usage = { promptTokenCount: 60, totalTokenCount: 60 }
        yield data({ candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }], usageMetadata: usage, ...rest }).replaceAll(
          '\n',
          '\r\n',
        )
      }
      const last = { content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP', index: 0 }
      yield data({ candidates: [last], usageMetadata, ...rest }).replaceAll('\n', '\r\n')
    },
  },

  cohere: {
    base: '/v2',
    path: '/v2/chat',
    authorized: bearer,
    required: ['model', 'messages'],
    known: [
      'stream',
      'max_tokens',
      'temperature',
      'p',
      'k',
      'seed',
      'stop_sequences',
      'frequency_penalty',
      'presence_penalty',
      'tools',
      'tool_choice',
      'response_format',
      'thinking',
    ],
    results: toolMessages,
    refusal: message => ({ id: '1', message }),
    thinks: true,
    bill: { input: 37, cached: 12, output: 22 },
    usage: { billed_units: { input_tokens: 37, output_tokens: 22 }, tokens: { input_tokens: 913, output_tokens: 58 }, cached_tokens: 12 },
    whole: ({ calls, text }) => ({
      id: '5a50480a',
      finish_reason: calls.length > 0 ? 'TOOL_CALL' : 'COMPLETE',
      message: {
        role: 'assistant',
        content: [{ type: 'thinking', thinking: THOUGHT }, ...(calls.length > 0 ? [] : [{ type: 'text', text }])],
        ...(calls.length > 0 ? { tool_calls: calls.map(openaiCall) } : {}),
      },
      usage: CHAT_SERVERS.cohere.usage,
    }),
    *stream({ calls, text }) {
      const told = (type, index, message) => event({ type, index, delta: { message } })
      yield event({
        type: 'message-start',
        id: 'm-1',
        delta: { message: { role: 'assistant', content: [], tool_plan: '', tool_calls: [] } },
      })
      yield told('content-start', 0, { content: { type: 'thinking', thinking: '' } })
      yield told('content-delta', 0, { content: { thinking: THOUGHT } })
      yield event({ type: 'content-end', index: 0 })
      if (calls.length === 0) {
        yield told('content-start', 1, { content: { type: 'text', text: '' } })
        for (const half of halves(text)) yield told('content-delta', 1, { content: { text: half } })
        yield event({ type: 'content-end', index: 1 })
      }
      for (const [index, call] of calls.map(openaiCall).entries()) {
        yield told('tool-call-start', index, { tool_calls: { ...call, function: { ...call.function, arguments: '' } } })
        for (const half of halves(call.function.arguments))
          yield told('tool-call-delta', index, { tool_calls: { function: { arguments: half } } })
        yield event({ type: 'tool-call-end', index })
      }
      yield event({
        type: 'message-end',
        delta: { finish_reason: calls.length > 0 ? 'TOOL_CALL' : 'COMPLETE', usage: CHAT_SERVERS.cohere.usage },
      })
    },
  },

  mistral: {
    base: '/v1',
    path: '/v1/chat/completions',
    authorized: bearer,
    required: ['model', 'messages'],
    known: [
      'max_tokens',
      'stream',
      'temperature',
      'top_p',
      'stop',
      'random_seed',
      'n',
      'response_format',
      'tools',
      'tool_choice',
      'parallel_tool_calls',
    ],
    results: toolMessages,
    refusal: message => ({ object: 'error', message, type: 'invalid_request_error', param: null, code: null }),
    thinks: true,
    bill: { input: 12, cached: 8, output: 28 },
    ...openaiLike({
      usage: { prompt_tokens: 12, total_tokens: 40, completion_tokens: 28, num_cached_tokens: 8 },
      thought: { content: [{ type: 'thinking', thinking: [{ type: 'text', text: THOUGHT }] }] },
      usageWithFinish: true,
    }),
  },

  ollama: {
    base: '/v1',
    path: '/v1/chat/completions',
    authorized: bearer,
    required: ['model', 'messages'],
    known: [
      'max_tokens',
      'stream',
      'stream_options',
      'temperature',
      'top_p',
      'stop',
      'seed',
      'frequency_penalty',
      'presence_penalty',
      'response_format',
      'tools',
      'reasoning_effort',
    ],
    results: toolMessages,
    refusal: message => ({ error: { message, type: 'invalid_request_error', param: null, code: null } }),
    thinks: false,
    bill: { input: 26, output: 10 },
    ...openaiLike({ usage: { prompt_tokens: 26, completion_tokens: 10, total_tokens: 36 } }),
  },
}

/** What one of them does with a request. A model called «too-long» refuses; a stream of «breaks» ends in the middle of its text. */
export function chatServer(kind) {
  const server = CHAT_SERVERS[kind]
  return ({ path, headers, body }, response) => {
    const streamed = server.streams?.(path) ?? body.stream === true
    const expected = typeof server.path === 'string' ? server.path : server.path(path.includes('breaks') ? 'breaks' : 'm', streamed)
    const unknown = Object.keys(body).filter(name => !server.required.includes(name) && !server.known.includes(name))
    if (`${path} ${body.model}`.includes('too-long')) return json(response, 400, server.refusal('The prompt is longer than it may be.'))
    if (path !== expected) return json(response, 404, server.refusal(`There is nothing at ${path}.`))
    if (!server.authorized(headers)) return json(response, 401, server.refusal('Who are you?'))
    if (unknown.length > 0) return json(response, 422, server.refusal(`Extra inputs are not permitted: ${unknown}`))
    if (server.required.some(name => body[name] === undefined)) return json(response, 422, server.refusal('Something is missing.'))
    const results = server.results(body)
    const said = results.length > 0 ? { calls: [], text: results.join(' ') } : { calls: body.tools === undefined ? [] : CALLS, text: TEXT }
    if (!streamed) return json(response, 200, server.whole(said))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const piece of server.stream(said)) {
      response.write(piece)
      if (`${path} ${body.model}`.includes('breaks') && piece.includes(halves(TEXT)[0])) break
    }
    return response.end()
  }
}

/** Servers that imitate OpenAI. `thought` is what comes before the answer. */
function openaiLike({ usage, thought, usageWithFinish = false }) {
  const base = { id: 'x-1', created: 1_741_569_952, model: 'm' }
  return {
    whole: ({ calls, text }) => ({
      ...base,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content:
              thought === undefined
                ? calls.length > 0
                  ? ''
                  : text
                : [...thought.content, ...(calls.length > 0 ? [] : [{ type: 'text', text }])],
            ...(calls.length > 0 ? { tool_calls: calls.map(openaiCall) } : {}),
          },
          finish_reason: calls.length > 0 ? 'tool_calls' : 'stop',
        },
      ],
      usage,
    }),
    *stream({ calls, text }) {
      const chunk = (delta, finish_reason = null, more = {}) =>
        data({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }], ...more })
      yield chunk({ role: 'assistant', content: '' })
      if (thought !== undefined) yield chunk(thought)
      if (calls.length > 0)
        yield chunk({ role: 'assistant', content: '', tool_calls: calls.map((call, index) => ({ ...openaiCall(call, index), index })) })
      else for (const content of halves(text)) yield chunk({ role: 'assistant', content })
      yield chunk({ content: '' }, calls.length > 0 ? 'tool_calls' : 'stop', usageWithFinish ? { usage } : {})
      if (!usageWithFinish) yield data({ ...base, object: 'chat.completion.chunk', choices: [], usage })
      yield 'data: [DONE]\n\n'
    },
  }
}

function openaiCall([name, input], index) {
  return { id: `call_${index}`, type: 'function', function: { name, arguments: JSON.stringify(input) } }
}

function toolMessages(body) {
  return body.messages
    .filter(message => message.role === 'tool')
    .map(({ content }) => (typeof content === 'string' ? content : content[0].text))
}

function bearer(headers) {
  return headers.authorization === 'Bearer sk-upstream'
}

function halves(text) {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)]
}
