import type { Json, JsonObject } from '../../../json.js'
import { conversationOf, type MediaPart, type Part, type ToolCall, type Turn, texts, unreadable } from '../../chat/conversation.js'
import {
  answerSchemaOf,
  capOf,
  numberOf,
  present,
  stopsOf,
  type Tool,
  type ToolChoice,
  toolChoiceOf,
  toolsOf,
} from '../../chat/parameters.js'
import type { Call } from '../provider.js'
import { Budget, geminiSchema, isEmptyObject } from './schema.js'

/** A chat request as a `generateContent` request. */
export function generateRequest(call: Call): JsonObject {
  const { system, turns } = conversationOf(call.body)
  const tools = toolsOf(call.body)
  const choice = toolChoiceOf(call.body)
  const budget = new Budget()
  return present({
    systemInstruction: system.length === 0 ? undefined : { parts: system.map(text => ({ text })) },
    generationConfig: generationConfig(call, budget),
    contents: contents(turns),
    tools: tools.length === 0 ? undefined : [{ functionDeclarations: tools.map(tool => declaration(tool, budget)) }],
    toolConfig: tools.length === 0 ? undefined : toolConfig(choice, tools),
  })
}

/** Gemini 3 refuses a call without the signature that it gave it; calls of another model's making are let through by this one. */
const FOREIGN_CALL = 'skip_thought_signature_validator'

interface Content {
  readonly role: 'user' | 'model'
  readonly parts: JsonObject[]
}

function contents(turns: readonly Turn[]): readonly JsonObject[] {
  const all: Content[] = []
  const made = new Map<string, ToolCall & { readonly native: boolean }>()
  for (const [index, turn] of turns.entries()) {
    if (turn.role === 'assistant') {
      const native = turn.calls.some(call => call.signature !== null)
      for (const call of turn.calls) made.set(call.id, { ...call, native })
      const calls = turn.calls.map((call, position) =>
        present({
          functionCall: present({ id: native ? call.id : undefined, name: call.name, args: call.args }),
          thoughtSignature: call.signature ?? (position === 0 ? FOREIGN_CALL : undefined),
        }),
      )
      all.push({ role: 'model', parts: [...turn.text.map(text => ({ text })), ...calls] })
    } else if (turn.role === 'tool') {
      const call = made.get(turn.callId)
      const name = call?.name ?? turn.name
      if (name === null) throw unreadable(`${turn.path}.tool_call_id`, 'is the id of no call in the messages before.')
      const response = { result: texts(turn.parts).join('\n') }
      const part = { functionResponse: present({ id: call?.native ? turn.callId : undefined, name, response }) }
      const last = turns[index - 1]?.role === 'tool' ? all.at(-1) : undefined
      if (last === undefined) all.push({ role: 'user', parts: [part] })
      else last.parts.push(part)
    } else all.push({ role: 'user', parts: turn.parts.map(partOf) })
  }
  return all.filter(({ parts }) => parts.length > 0).map(({ role, parts }) => ({ role, parts }))
}

function partOf(part: Part): JsonObject {
  if (part.kind === 'text') return { text: part.text }
  const { source } = part
  if (source.from === 'data') return { inlineData: { mimeType: source.mediaType, data: source.base64 } }
  return { fileData: { mimeType: mediaTypeOf(source.url, part), fileUri: source.url } }
}

const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['webp', 'image/webp'],
  ['gif', 'image/gif'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['txt', 'text/plain'],
  ['pdf', 'application/pdf'],
])

/** The API wants a type; a URL can only be asked for its extension. */
function mediaTypeOf(url: string, { kind }: MediaPart): string {
  const extension = /\.([a-z]+)$/i.exec(url.split(/[?#]/, 1)[0] ?? '')?.[1]
  return MEDIA_TYPES.get(extension?.toLowerCase() ?? '') ?? (kind === 'image' ? 'image/jpeg' : 'application/pdf')
}

function generationConfig(call: Call, budget: Budget): JsonObject {
  const { body } = call
  const stops = stopsOf(body)
  const schema = answerSchemaOf(body)
  return present({
    maxOutputTokens: capOf(call),
    temperature: numberOf(body.temperature),
    topP: numberOf(body.top_p),
    topK: numberOf(body.top_k),
    stopSequences: stops.length === 0 ? undefined : stops,
    seed: numberOf(body.seed),
    candidateCount: numberOf(body.n),
    presencePenalty: numberOf(body.presence_penalty),
    frequencyPenalty: numberOf(body.frequency_penalty),
    responseMimeType: schema === null ? undefined : 'application/json',
    responseSchema:
      schema === null || schema === 'any' || isEmptyObject(schema)
        ? undefined
        : geminiSchema(schema, 'response_format.json_schema.schema', budget),
    responseLogprobs: body.logprobs === true ? true : undefined,
    logprobs: body.logprobs === true ? numberOf(body.top_logprobs) : undefined,
    thinkingConfig: thinkingConfig(call),
  })
}

/** The budgets are those that the API's own OpenAI-compatible face uses. */
const BUDGET: ReadonlyMap<Json | undefined, number> = new Map([
  ['none', 0],
  ['minimal', 1024],
  ['low', 1024],
  ['medium', 8192],
  ['high', 24_576],
  ['xhigh', 24_576],
])

const LEVEL: ReadonlyMap<Json | undefined, string> = new Map([
  // Gemini 3 can not be told not to think.
  ['none', 'minimal'],
  ['minimal', 'minimal'],
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'high'],
])

function thinkingConfig({ body, model }: Call): JsonObject | undefined {
  const { thinking = /gemini-2\./.test(model.upstream) ? 'budget' : 'level', include_thoughts } = model.options
  const config = present({
    thinkingBudget: thinking === 'budget' ? BUDGET.get(body.reasoning_effort) : undefined,
    thinkingLevel: thinking === 'level' ? LEVEL.get(body.reasoning_effort) : undefined,
    includeThoughts: include_thoughts === true ? true : undefined,
  })
  return isEmptyObject(config) ? undefined : config
}

function declaration({ name, description, parameters, path }: Tool, budget: Budget): JsonObject {
  const schema = parameters === null ? {} : geminiSchema(parameters, `${path}.function.parameters`, budget)
  // An object without properties is refused: such a function is declared without parameters.
  const empty = isEmptyObject(schema.properties ?? {}) && schema.anyOf === undefined
  return present({ name, description: description ?? undefined, parameters: empty ? undefined : schema })
}

function toolConfig(choice: ToolChoice | null, tools: readonly Tool[]): JsonObject | undefined {
  const strict = tools.some(tool => tool.strict === true)
  if (choice === null) return strict ? { functionCallingConfig: { mode: 'VALIDATED' } } : undefined
  switch (choice.mode) {
    case 'auto':
      return { functionCallingConfig: { mode: strict ? 'VALIDATED' : 'AUTO' } }
    case 'none':
      return { functionCallingConfig: { mode: 'NONE' } }
    case 'required':
      return { functionCallingConfig: { mode: 'ANY' } }
    case 'function':
      return { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [choice.name] } }
  }
}
