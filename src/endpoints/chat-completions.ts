import {
  absent,
  checkBoolean,
  checkInteger,
  checkNumber,
  checkObject,
  checkStop,
  checkString,
  checkWhole,
  invalid,
  mustBe,
} from '../checks.js'
import { isObject, type JsonObject } from '../json.js'

import { chatTokens, predictedTokens } from '../metering/chat.js'
import type { GeneratingEndpoint } from './endpoint.js'

import { checkMessages } from './messages.js'

type Check = (body: JsonObject, name: string) => void

/** Optional parameters of the format. A model takes those of its list, or all of these. */
const PARAMETERS: Readonly<Record<string, Check>> = {
  temperature: checkNumber,
  top_p: checkNumber,
  presence_penalty: checkNumber,
  frequency_penalty: checkNumber,
  stop: checkStop,
  seed: checkWhole,
  tools: listOf(checkTool, 'tools'),
  tool_choice: checkStringOrObject,
  parallel_tool_calls: checkBoolean,
  functions: listOf(checkFunction, 'functions'),
  function_call: checkStringOrObject,
  response_format: checkFormat,
  logit_bias: checkObject,
  logprobs: checkBoolean,
  top_logprobs: (body, name) => checkInteger(body, name, 0, 20),
  reasoning_effort: checkString,
  verbosity: checkString,
  modalities: listOf(checkText, 'strings'),
  audio: checkObject,
  prediction: checkObject,
  metadata: checkObject,
  store: checkBoolean,
  service_tier: checkString,
  user: checkString,
  safety_identifier: checkString,
  prompt_cache_key: checkString,
  web_search_options: checkObject,
}

const CHECKS = Object.entries(PARAMETERS)

/** POST /v1/chat/completions. */
const chatCompletions: GeneratingEndpoint = {
  surface: 'chat',
  paths: ['/v1/chat/completions'],
  path: '/chat/completions',
  idPrefix: 'chatcmpl-',
  unreported: 'counted',
  fields: new Set(['messages', 'max_tokens', 'max_completion_tokens', 'n', 'stream', 'stream_options']),
  parameters: new Set(Object.keys(PARAMETERS)),

  streams: body => body.stream === true,

  check(body) {
    checkMessages(body.messages)
    checkInteger(body, 'max_tokens', 1)
    checkInteger(body, 'max_completion_tokens', 1)
    checkInteger(body, 'n', 1, 128)
    checkBoolean(body, 'stream')
    checkStreamOptions(body)
    for (const [name, check] of CHECKS) check(body, name)
  },

  cap(body, model) {
    const { max_tokens: one, max_completion_tokens: other } = body
    const asked = typeof one === 'number' && typeof other === 'number' ? Math.min(one, other) : typeof one === 'number' ? one : other
    const cap = typeof asked === 'number' ? asked : model.default_max_tokens
    return model.max_output_tokens === null ? cap : Math.min(cap, model.max_output_tokens)
  },

  estimate(body, model, texts) {
    const choices = typeof body.n === 'number' ? body.n : 1
    const { input, fixed } = chatTokens(body, model, texts)
    return { input, fixed, output: choices * ((chatCompletions.cap(body, model) ?? 0) + predictedTokens(body, model, texts)) }
  },

  answers({ choices }) {
    return Array.isArray(choices) && choices.length > 0 && choices.every(choice => isObject(choice) && isObject(choice.message))
  },

  output(answer) {
    let said = ''
    if (Array.isArray(answer.choices)) for (const choice of answer.choices) said += choiceText(choice)
    return said
  },
}

export default chatCompletions

/** All that a choice of an answer, or of a chunk, generated. A chunk that holds a whole message or a legacy completion's text reaches clients, too. */
function choiceText(choice: unknown): string {
  return isObject(choice) ? generatedText(choice.delta) || generatedText(choice.message) || text(choice.text) : ''
}

/** Reasoning, content, refusal, transcript, and calls with their names. */
function generatedText(said: unknown): string {
  if (!isObject(said)) return ''
  // Servers that know both names of reasoning send the same under both.
  let generated = (text(said.reasoning_content) || text(said.reasoning)) + content(said.content) + text(said.refusal)
  if (isObject(said.audio)) generated += text(said.audio.transcript)
  if (Array.isArray(said.tool_calls)) {
    for (const call of said.tool_calls) if (isObject(call)) generated += called(call.function) + called(call.custom)
  }
  return generated + called(said.function_call)
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

function checkStreamOptions(body: JsonObject): void {
  checkObject(body, 'stream_options')
  if (!isObject(body.stream_options)) return
  for (const name of ['include_usage', 'include_obfuscation']) {
    const value = body.stream_options[name]
    if (!absent(value) && typeof value !== 'boolean') throw mustBe(`stream_options.${name}`, 'true or false', value)
  }
}

/** An array, each of whose items passes a check of its own. */
function listOf(check: (item: unknown, path: string) => void, what: string): Check {
  return (body, name) => {
    const value = body[name]
    if (absent(value)) return
    if (!Array.isArray(value)) throw mustBe(name, `an array of ${what}`, value)
    value.forEach((item, i) => {
      check(item, `${name}[${i}]`)
    })
  }
}

function checkStringOrObject(body: JsonObject, name: string): void {
  const value = body[name]
  if (!absent(value) && typeof value !== 'string' && !isObject(value)) throw mustBe(name, 'a string or an object', value)
}

function checkText(value: unknown, path: string): void {
  if (typeof value !== 'string') throw mustBe(path, 'a string', value)
}

function checkTool(tool: unknown, path: string): void {
  if (!isObject(tool)) throw mustBe(path, 'an object', tool)
  if (absent(tool.type)) throw invalid(`${path}.type`, `${path}.type is required.`)
  checkText(tool.type, `${path}.type`)
  if (tool.type === 'function') checkFunction(tool.function, `${path}.function`)
}

function checkFunction(declared: unknown, path: string): void {
  if (declared === undefined) throw invalid(path, `${path} is required.`)
  if (!isObject(declared)) throw mustBe(path, 'an object', declared)
  if (absent(declared.name)) throw invalid(`${path}.name`, `${path}.name is required.`)
  checkText(declared.name, `${path}.name`)
  if (!absent(declared.description)) checkText(declared.description, `${path}.description`)
  if (!absent(declared.parameters) && !isObject(declared.parameters)) throw mustBe(`${path}.parameters`, 'an object', declared.parameters)
}

function checkFormat(body: JsonObject, name: string): void {
  checkObject(body, name)
  const format = body[name]
  if (!isObject(format)) return
  if (absent(format.type)) throw invalid(`${name}.type`, `${name}.type is required.`)
  checkText(format.type, `${name}.type`)
  if (format.type !== 'json_schema') return
  if (absent(format.json_schema)) throw invalid(`${name}.json_schema`, `${name}.json_schema is required.`)
  if (!isObject(format.json_schema)) throw mustBe(`${name}.json_schema`, 'an object', format.json_schema)
}
