import { isObject } from '../json.js'
import { chatTokens } from '../metering/estimate.js'
import type { Endpoint } from './endpoint.js'
import {
  type Check,
  checkFields,
  isInteger,
  isListOf,
  isNumber,
  isRecord,
  isText,
  isTextOr,
  isTruth,
  missing,
  wrong,
} from './field-checks.js'
import { checkMessages } from './messages.js'

const isCap = isInteger(1)
const isTextOrObject = isTextOr(isRecord, isObject, 'a string or an object')
const isListOfText = isListOf(isText, 'an array of strings')

const FIELDS: ReadonlyMap<string, Check> = new Map([
  ['max_tokens', isCap],
  ['max_completion_tokens', isCap],
  ['n', isInteger(1, 128)],
  ['stream', isTruth],
  ['stream_options', isStreamOptions],
])

/** Optional parameters of the format. A model takes those of its list, or all of these. */
const PARAMETERS: ReadonlyMap<string, Check> = new Map([
  ['temperature', isNumber],
  ['top_p', isNumber],
  ['presence_penalty', isNumber],
  ['frequency_penalty', isNumber],
  ['stop', isTextOr(isListOfText, Array.isArray, 'a string or an array of strings')],
  ['seed', isInteger(Number.MIN_SAFE_INTEGER)],
  ['tools', isListOf(isTool, 'an array of tools')],
  ['tool_choice', isTextOrObject],
  ['parallel_tool_calls', isTruth],
  ['functions', isListOf(isFunction, 'an array of functions')],
  ['function_call', isTextOrObject],
  ['response_format', isFormat],
  ['logit_bias', isRecord],
  ['logprobs', isTruth],
  ['top_logprobs', isInteger(0, 20)],
  ['reasoning_effort', isText],
  ['verbosity', isText],
  ['modalities', isListOfText],
  ['audio', isRecord],
  ['prediction', isRecord],
  ['metadata', isRecord],
  ['store', isTruth],
  ['service_tier', isText],
  ['user', isText],
  ['safety_identifier', isText],
  ['prompt_cache_key', isText],
  ['web_search_options', isRecord],
])

/** POST /v1/chat/completions. */
const chatCompletions: Endpoint = {
  surface: 'chat',
  paths: ['/v1/chat/completions'],
  path: '/chat/completions',
  idPrefix: 'chatcmpl-',
  fields: new Set(['messages', ...FIELDS.keys()]),
  parameters: new Set(PARAMETERS.keys()),

  streams: body => body.stream === true,

  check(body) {
    checkMessages(body.messages)
    checkFields(body, FIELDS)
    checkFields(body, PARAMETERS)
  },

  cap(body, model) {
    const asked = [body.max_tokens, body.max_completion_tokens].filter(cap => typeof cap === 'number')
    const cap = asked.length > 0 ? Math.min(...asked) : model.default_max_tokens
    return model.max_output_tokens === null ? cap : Math.min(cap, model.max_output_tokens)
  },

  estimate(body, model) {
    const choices = typeof body.n === 'number' ? body.n : 1
    return { input: chatTokens(body, model), output: choices * (chatCompletions.cap(body, model) ?? 0) }
  },

  answers: answer => Array.isArray(answer.choices) && answer.choices.length > 0,

  output: answer => (Array.isArray(answer.choices) ? answer.choices.map(choiceText).join('') : ''),
}

export default chatCompletions

/** All that a choice of an answer, or of a chunk, generated: reasoning, content, refusal, transcript, and calls with their names. */
function choiceText(choice: unknown): string {
  if (!isObject(choice)) return ''
  const said = isObject(choice.delta) ? choice.delta : isObject(choice.message) ? choice.message : {}
  const calls = Array.isArray(said.tool_calls) ? said.tool_calls : []
  return [
    // Servers that know both names send the same under both.
    text(said.reasoning_content) || text(said.reasoning),
    content(said.content),
    text(said.refusal),
    isObject(said.audio) ? text(said.audio.transcript) : '',
    ...calls.map(call => (isObject(call) ? called(call.function) + called(call.custom) : '')),
    called(said.function_call),
  ].join('')
}

/** Mistral's content may be parts, reasoning among them. */
function content(value: unknown): string {
  if (!Array.isArray(value)) return text(value)
  return value.map(part => (isObject(part) ? text(part.text) + content(part.thinking) : '')).join('')
}

function called(value: unknown): string {
  return isObject(value) ? text(value.name) + text(value.arguments) + text(value.input) : ''
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function isStreamOptions(value: unknown, path: string): void {
  if (!isObject(value)) throw wrong(path, 'an object', value)
  for (const name of ['include_usage', 'include_obfuscation']) {
    const option = value[name]
    if (option !== undefined && option !== null) isTruth(option, `${path}.${name}`)
  }
}

function isTool(value: unknown, path: string): void {
  if (!isObject(value)) throw wrong(path, 'an object', value)
  if (value.type === undefined || value.type === null) throw missing(`${path}.type`)
  isText(value.type, `${path}.type`)
  if (value.type !== 'function') return
  if (value.function === undefined || value.function === null) throw missing(`${path}.function`)
  isFunction(value.function, `${path}.function`)
}

function isFunction(value: unknown, path: string): void {
  if (!isObject(value)) throw wrong(path, 'an object', value)
  if (value.name === undefined || value.name === null) throw missing(`${path}.name`)
  isText(value.name, `${path}.name`)
  if (value.description !== undefined && value.description !== null) isText(value.description, `${path}.description`)
  if (value.parameters !== undefined && value.parameters !== null) isRecord(value.parameters, `${path}.parameters`)
}

function isFormat(value: unknown, path: string): void {
  if (!isObject(value)) throw wrong(path, 'an object', value)
  if (value.type === undefined || value.type === null) throw missing(`${path}.type`)
  isText(value.type, `${path}.type`)
  if (value.type !== 'json_schema') return
  const { json_schema: schema } = value
  if (schema === undefined || schema === null) throw missing(`${path}.json_schema`)
  isRecord(schema, `${path}.json_schema`)
}
