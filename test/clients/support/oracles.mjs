import { Anthropic } from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { Mistral } from '@mistralai/mistralai'
import { CohereClientV2 } from 'cohere-ai'
import { VoyageAIClient } from 'voyageai'

/*
 * The providers' own libraries as their users set them up. `read(client, streamed)` is what such a user reads of an answer: of each choice
 * its text, thoughts, calls and the reason of its end (in the words of chat completions), and the tokens. What a library leaves to its users
 * (joining parts, adding counts up) is done as its manual says. `plain` brings a request into a form that the API takes for the same.
 */

const ask = { model: 'm', messages: [{ role: 'user', content: 'Go' }] }

const anthropic = {
  path: '/v1',
  // Since this version no sampling parameter is taken: the library has none either.
  options: { version: '2026-10-21' },
  /** A text by itself may stand for a list of one: a client's user writes the first, the gateway the second. */
  plain: ({ messages, ...body }) => ({
    ...body,
    messages: messages.map(({ role, content }) => ({
      role,
      content: typeof content === 'string' ? [{ type: 'text', text: content }] : content,
    })),
  }),
  client: url => new Anthropic({ apiKey: 'sk-upstream', baseURL: url, maxRetries: 0 }),
  async read(client, streamed) {
    const message = streamed
      ? await client.messages.stream({ ...ask, max_tokens: 9 }).finalMessage()
      : await client.messages.create({ ...ask, max_tokens: 9 })
    const { usage } = message
    const passes = usage.iterations ?? [usage]
    const cached = usage.cache_read_input_tokens ?? 0
    return {
      choices: [
        {
          text: joined(message.content, 'text'),
          thought: joined(message.content, 'thinking'),
          calls: message.content.filter(({ type }) => type === 'tool_use').map(({ name, input }) => [name, input]),
          finish: { max_tokens: 'length', tool_use: 'tool_calls', refusal: 'content_filter' }[message.stop_reason] ?? 'stop',
        },
      ],
      usage: {
        input: total(passes, 'input_tokens') + (usage.cache_creation_input_tokens ?? 0) + cached,
        output: total(passes, 'output_tokens'),
        cached,
      },
    }
  },
}

const generate = { model: 'm', contents: 'Go' }
const gemini = {
  path: '/v1beta',
  /** Of system instructions and embedded texts the API reads no role; types of schemas it reads in either case. */
  plain: body =>
    JSON.parse(
      JSON.stringify(body, (name, value) => {
        if (name === 'type') return String(value).toLowerCase()
        if (name !== 'systemInstruction' && name !== 'content') return value
        const { role: _, ...content } = value
        return content
      }),
    ),
  // Its own default is v1.
  client: url => new GoogleGenAI({ apiKey: 'sk-upstream', apiVersion: 'v1beta', httpOptions: { baseUrl: url } }),
  async read(client, streamed) {
    const answers = streamed
      ? await all(await client.models.generateContentStream(generate))
      : [await client.models.generateContent(generate)]
    const blocked = answers.some(answer => answer.promptFeedback?.blockReason !== undefined)
    const candidates = answers.flatMap(answer => answer.candidates ?? (blocked ? [{ finishReason: 'SAFETY' }] : []))
    const choices = []
    for (const { index = 0, content, finishReason } of candidates) {
      choices[index] ??= { text: '', thought: '', calls: [], finish: undefined }
      const choice = choices[index]
      for (const { text = '', thought = false, functionCall } of content?.parts ?? []) {
        choice[thought ? 'thought' : 'text'] += text
        if (functionCall !== undefined) choice.calls.push([functionCall.name, functionCall.args ?? {}])
      }
      choice.finish = geminiFinish(finishReason, choice.calls) ?? choice.finish
    }
    // What the library itself makes of the first candidate.
    if (!streamed && choices.length > 0) choices[0].text = answers[0].text ?? ''
    const usage = answers.findLast(answer => answer.usageMetadata !== undefined)?.usageMetadata
    return {
      choices,
      usage: usage && {
        input: usage.promptTokenCount + (usage.toolUsePromptTokenCount ?? 0),
        output: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0),
        cached: usage.cachedContentTokenCount ?? 0,
      },
    }
  },
}

function geminiFinish(reason, calls) {
  if (reason === 'STOP') return calls.length > 0 ? 'tool_calls' : 'stop'
  return { MAX_TOKENS: 'length', SAFETY: 'content_filter', UNEXPECTED_TOOL_CALL: 'stop', MALFORMED_FUNCTION_CALL: 'stop' }[reason]
}

const camelCalls = calls => calls.map(({ function: { name, arguments: text } }) => [name, JSON.parse(text || '{}') ?? {}])
const once = { maxRetries: 0 }
const cohere = {
  path: '/v2',
  client: url => new CohereClientV2({ environment: url, token: 'sk-upstream' }),
  async read(client, streamed) {
    if (!streamed) return cohereRead(await client.chat(ask, once))
    const message = { content: [], toolPlan: '', toolCalls: [] }
    let end
    for await (const { type, index, delta } of await client.chatStream(ask, once)) {
      const { content, toolPlan = '', toolCalls } = delta?.message ?? {}
      if (type === 'content-start') message.content[index] = { ...content }
      else if (type === 'content-delta')
        for (const part of ['text', 'thinking']) message.content[index][part] = (message.content[index][part] ?? '') + (content[part] ?? '')
      else if (type === 'tool-plan-delta') message.toolPlan += toolPlan
      else if (type === 'tool-call-start') message.toolCalls[index] = structuredClone(toolCalls)
      else if (type === 'tool-call-delta') message.toolCalls[index].function.arguments += toolCalls.function.arguments
      else if (type === 'message-end') end = delta
    }
    return cohereRead({ message, ...end })
  },
}

function cohereRead({ message: { content, toolPlan, toolCalls }, finishReason, usage }) {
  return {
    choices: [
      {
        text: joined(content ?? [], 'text') || (toolPlan ?? ''),
        thought: joined(content ?? [], 'thinking'),
        calls: camelCalls(toolCalls ?? []),
        finish: { TOOL_CALL: 'tool_calls', COMPLETE: 'stop', STOP_SEQUENCE: 'stop', MAX_TOKENS: 'length' }[finishReason],
      },
    ],
    // The cache is counted with the preamble, which is not billed: no more of it than the input counts.
    usage: {
      input: usage.billedUnits.inputTokens,
      output: usage.billedUnits.outputTokens,
      cached: Math.min(usage.billedUnits.inputTokens, usage.cachedTokens ?? 0),
    },
  }
}

const mistral = {
  path: '/v1',
  /** The library writes what it takes to be the defaults. */
  plain: body => JSON.parse(JSON.stringify(body), (name, value) => (value === false || name === 'index' ? undefined : value)),
  client: url => new Mistral({ apiKey: 'sk-upstream', serverURL: url }),
  async read(client, streamed) {
    const answers = streamed ? (await all(await client.chat.stream(ask))).map(({ data }) => data) : [await client.chat.complete(ask)]
    const choice = { text: '', thought: '', calls: [], finish: undefined }
    for (const { delta, message = delta, finishReason } of answers.flatMap(answer => answer.choices)) {
      const parts = Array.isArray(message.content) ? message.content : [{ type: 'text', text: message.content ?? '' }]
      for (const part of parts) {
        if (part.type === 'text') choice.text += part.text
        else if (part.type === 'thinking') choice.thought += part.thinking.map(({ text }) => text).join('')
      }
      choice.calls.push(...camelCalls(message.toolCalls ?? []))
      choice.finish = { model_length: 'length' }[finishReason] ?? finishReason ?? choice.finish
    }
    const { promptTokens, completionTokens, ...more } = answers.findLast(answer => answer.usage !== undefined).usage
    return { choices: [choice], usage: { input: promptTokens, output: completionTokens, cached: more.num_cached_tokens ?? 0 } }
  },
}

/** Nothing of it is chat. */
const voyage = { path: '/v1', client: url => new VoyageAIClient({ environment: `${url}/v1`, apiKey: 'sk-upstream' }) }

export const ORACLES = { anthropic, gemini, cohere, mistral, voyage }

async function all(stream) {
  const items = []
  for await (const item of stream) items.push(item)
  return items
}

function joined(parts, type) {
  return parts.map(part => (part.type === type ? part[type] : '')).join('')
}

function total(list, name) {
  return list.reduce((sum, each) => sum + each[name], 0)
}
