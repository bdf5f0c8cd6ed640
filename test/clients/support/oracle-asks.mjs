/*
 * The same requests twice: as a client of the gateway writes them, and as users of the providers' own libraries do.
 */

const PNG = 'iVBORw0KGgo='
const DATA_URL = `data:image/png;base64,${PNG}`
const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const STOPS = ['END', 'FIN']
const TEXTS = ['one', 'two']
const DOCUMENTS = ['green', 'black']
const DECLARED = [
  ['get_weather', 'Weather of a city', CITY],
  ['now', 'The time', { type: 'object', properties: {} }],
]
/** Ids are such as every provider takes. */
const CALLS = [
  ['call00001', 'get_weather', { city: 'Tehran' }, '14 °C'],
  ['call00002', 'now', {}, 'noon'],
]
const SIGNATURE = 'EqQC'

const system = content => ({ role: 'system', content })
const user = content => ({ role: 'user', content })
const go = [user('Go')]
const hello = [system('Be brief.'), user('سلام')]
const question = 'Weather and time?'
const look = image => [user([{ type: 'text', text: 'What is it?' }, image])]

/* In the format of chat completions, in which Cohere and Mistral have them, too. */
const functions = DECLARED.map(([name, description, parameters]) => ({ type: 'function', function: { name, description, parameters } }))
const calls = CALLS.map(([id, name, args]) => ({ id, type: 'function', function: { name, arguments: JSON.stringify(args) } }))
const results = key => CALLS.map(([id, , , content]) => ({ role: 'tool', [key]: id, content }))

const chat = body => ['/v1/chat/completions', { max_tokens: 50, ...body }]

/** At the gateway: path, and body without the model. */
export const ASKS = {
  settings: chat({ messages: hello, stop: STOPS, stream: true }),
  sampling: chat({ messages: go, temperature: 0.5, top_p: 0.9, seed: 7 }),
  image: chat({ messages: look({ type: 'image_url', image_url: { url: DATA_URL } }) }),
  tools: chat({
    messages: [user(question), { role: 'assistant', content: null, tool_calls: signed(calls) }, ...results('tool_call_id')],
    tools: functions,
    tool_choice: 'required',
  }),
  schema: chat({
    messages: go,
    response_format: { type: 'json_schema', json_schema: { name: 'weather', schema: CITY, strict: true } },
  }),
  completions: ['/v1/completions', { prompt: 'one', suffix: 'three', max_tokens: 50, seed: 7 }],
  embeddings: ['/v1/embeddings', { input: TEXTS, dimensions: 64 }],
  rerank: ['/v1/rerank', { query: 'tea', documents: DOCUMENTS, top_n: 1 }],
}

/** By kind, with its own library. */
export const NATIVE = {
  anthropic({ messages }) {
    const create = body => messages.create({ model: 'm', messages: go, max_tokens: 50, ...body })
    const called = CALLS.map(([id, name, input]) => ({ type: 'tool_use', id, name, input }))
    const answered = CALLS.map(([tool_use_id, , , content]) => ({ type: 'tool_result', tool_use_id, content }))
    return {
      settings: () => create({ system: [{ type: 'text', text: 'Be brief.' }], messages: [hello[1]], stop_sequences: STOPS, stream: true }),
      // The version of the API that the library speaks has no sampling.
      sampling: () => create({}),
      image: () => create({ messages: look({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }) }),
      tools: () =>
        create({
          messages: [user(question), { role: 'assistant', content: called }, user(answered)],
          tools: DECLARED.map(([name, description, input_schema]) => ({ name, description, input_schema })),
          tool_choice: { type: 'any' },
        }),
      schema: () => create({ output_config: { format: { type: 'json_schema', schema: CITY } } }),
    }
  },

  gemini({ models }) {
    const request = (config, contents = 'Go') => ({ model: 'm', contents, config: { maxOutputTokens: 50, ...config } })
    const called = CALLS.map(([id, name, args], i) => ({
      functionCall: { id, name, args },
      ...(i === 0 ? { thoughtSignature: SIGNATURE } : {}),
    }))
    const answered = CALLS.map(([id, name, , result]) => ({ functionResponse: { id, name, response: { result } } }))
    const turns = [
      { role: 'user', parts: [{ text: question }] },
      { role: 'model', parts: called },
      { role: 'user', parts: answered },
    ]
    // The API refuses objects without properties: a function that takes nothing is declared without parameters.
    const [weather, now] = DECLARED.map(([name, description]) => ({ name, description }))
    const tools = [{ functionDeclarations: [{ ...weather, parameters: CITY }, now] }]
    return {
      settings: () => models.generateContentStream(request({ systemInstruction: 'Be brief.', stopSequences: STOPS }, 'سلام')),
      sampling: () => models.generateContent(request({ temperature: 0.5, topP: 0.9, seed: 7 })),
      image: () => models.generateContent(request({}, ['What is it?', { inlineData: { mimeType: 'image/png', data: PNG } }])),
      tools: () => models.generateContent(request({ tools, toolConfig: { functionCallingConfig: { mode: 'ANY' } } }, turns)),
      schema: () => models.generateContent(request({ responseMimeType: 'application/json', responseSchema: CITY })),
      embeddings: () => models.embedContent({ model: 'm', contents: TEXTS, config: { outputDimensionality: 64 } }),
    }
  },

  cohere(client) {
    const once = { maxRetries: 0 }
    const ask = body => client.chat({ model: 'm', messages: go, maxTokens: 50, ...body }, once)
    return {
      settings: () => client.chatStream({ model: 'm', messages: hello, maxTokens: 50, stopSequences: STOPS }, once),
      sampling: () => ask({ temperature: 0.5, p: 0.9, seed: 7 }),
      image: () => ask({ messages: look({ type: 'image_url', imageUrl: { url: DATA_URL } }) }),
      tools: () =>
        ask({
          messages: [user(question), { role: 'assistant', toolCalls: calls }, ...results('toolCallId')],
          tools: functions,
          toolChoice: 'REQUIRED',
        }),
      schema: () => ask({ responseFormat: { type: 'json_object', jsonSchema: CITY } }),
      embeddings: () =>
        client.embed({ model: 'm', texts: TEXTS, inputType: 'search_document', embeddingTypes: ['float'], outputDimension: 64 }, once),
      rerank: () => client.rerank({ model: 'm', query: 'tea', documents: DOCUMENTS, topN: 1 }, once),
    }
  },

  mistral(client) {
    const ask = body => client.chat.complete({ model: 'm', messages: go, maxTokens: 50, ...body })
    const format = { type: 'json_schema', jsonSchema: { name: 'weather', schemaDefinition: CITY, strict: true } }
    return {
      settings: () => client.chat.stream({ model: 'm', messages: hello, maxTokens: 50, stop: STOPS }),
      sampling: () => ask({ temperature: 0.5, topP: 0.9, randomSeed: 7 }),
      image: () => ask({ messages: look({ type: 'image_url', imageUrl: { url: DATA_URL } }) }),
      tools: () =>
        ask({
          messages: [user(question), { role: 'assistant', content: null, toolCalls: calls }, ...results('toolCallId')],
          tools: functions,
          toolChoice: 'required',
        }),
      schema: () => ask({ responseFormat: format }),
      completions: () => client.fim.complete({ model: 'm', prompt: 'one', suffix: 'three', maxTokens: 50, randomSeed: 7 }),
      embeddings: () => client.embeddings.create({ model: 'm', inputs: TEXTS, outputDimension: 64 }),
    }
  },

  voyage: client => ({
    embeddings: () => client.embed({ model: 'm', input: TEXTS, outputDimension: 64 }, { maxRetries: 0 }),
    rerank: () => client.rerank({ model: 'm', query: 'tea', documents: DOCUMENTS, topK: 1 }, { maxRetries: 0 }),
  }),
}

/** Signatures of thoughts are Gemini's: the gateway keeps them from everyone else. */
function signed([first, ...more]) {
  return [{ ...first, extra_content: { google: { thought_signature: SIGNATURE } } }, ...more]
}
