import type { Model } from '../config/config.js'
import type { Estimate } from '../endpoints/endpoint.js'
import { isObject, type Json, type JsonObject } from '../json.js'
import { audioTokens } from './audio.js'
import { addPart, addUnknown, partTokens, unknownTokens } from './parts.js'
import { type BodyTexts, TextSum, type Texts } from './text.js'
import { familyOf } from './tokenizers.js'
import { addJson } from './tool-schema.js'
import { toolTokens } from './tools.js'

/** Around every message, its role included, and before the answer. OpenAI's are measured; templates of others take more marks. */
const FRAME = { openai: { message: 4, answer: 3 }, other: { message: 6, answer: 8 } } as const

/**
 * Input tokens that a provider will count for a chat request: messages with their names, calls, images, audio and files, tools, schemas of
 * the answer, and what a provider wraps around them. The body is one that passed the endpoint's check, with only the fields that the model
 * takes. A careful guess that is rarely too low, in time linear in the body. `fixed` is the part that images, audio and files are. `texts`:
 * where others are sent the same.
 */
export function chatTokens(body: JsonObject, model: Model, texts?: BodyTexts): Required<Omit<Estimate, 'output'>> {
  const family = familyOf(model)
  const frame = family === 'o200k' || family === 'cl100k' ? FRAME.openai : FRAME.other
  const sum = new TextSum(family, texts)
  const messages = list(body.messages).filter(isObject)
  let tokens: number = frame.answer + frame.message * messages.length
  tokens += sum.addPart('messages', to => messages.reduce((named, message) => named + addMessage(message, to), 0))
  let fixed = 0
  for (const message of messages) fixed += mediaTokens(message, model)
  tokens += toolTokens(list(body.tools), sum) + toolTokens(list(body.functions), sum, 'functions')
  tokens += choiceTokens(body, sum) + formatTokens(body.response_format, sum)
  toldTokens(body, sum)
  return { input: fixed + tokens + sum.tokens, fixed }
}

/**
 * Output tokens that a prediction may come to, beyond the cap: what of it the model does not say is billed as if it had. 0 where nothing is predicted.
 */
export function predictedTokens(body: JsonObject, model: Model, texts?: BodyTexts): number {
  if (!isObject(body.prediction)) return 0
  const { prediction } = body
  const sum = new TextSum(familyOf(model), texts)
  sum.addPart('prediction', to => {
    if (Array.isArray(prediction.content)) for (const part of prediction.content) addPart(isObject(part) ? part : { part }, to)
    else if (typeof prediction.content === 'string') to.add(prediction.content)
    else addUnknown('content', prediction.content, to)
    return 0
  })
  return sum.tokens
}

/** Adds all the text of a message, and returns what its marks come to in any model. What is not known of it counts as text, too: templates may read it. */
function addMessage(message: JsonObject, texts: Texts): number {
  let tokens = 0
  for (const name in message) {
    const value = message[name]
    switch (name) {
      case 'role':
        break
      case 'name':
        addText(value, texts)
        tokens += 1
        break
      case 'tool_call_id':
        addId(value, texts)
        break
      case 'content':
        addText(value, texts)
        for (const part of list(value)) if (isObject(part)) addPart(part, texts)
        break
      case 'reasoning':
        // Servers that know both names of reasoning send the same under both.
        if (value !== message.reasoning_content) addUnknown(name, value, texts)
        break
      // Reasoning that a client hands back is read again where it is read at all.
      case 'reasoning_content':
      case 'refusal':
        if (typeof value === 'string') texts.add(value)
        else addUnknown(name, value, texts)
        break
      case 'audio':
        addText(isObject(value) ? value.transcript : value, texts)
        break
      case 'tool_calls':
        for (const call of list(value)) if (isObject(call)) tokens += addCall(call, texts)
        break
      case 'function_call':
        if (isObject(value)) tokens += addCall({ function: value }, texts)
        break
      default:
        addUnknown(name, value, texts)
    }
  }
  return tokens
}

/** What is in a message besides text. */
function mediaTokens(message: JsonObject, model: Model): number {
  let tokens = 0
  for (const name in message) {
    const value = message[name]
    if (name === 'content') {
      for (const part of list(value)) if (isObject(part)) tokens += partTokens(part, model)
    } else if (name === 'audio') tokens += spokenTokens(value, model)
    else if (name !== 'role') tokens += unknownTokens(value, model)
  }
  return tokens
}

/** An answer that the model has spoken before: its provider keeps it, and it was no longer than an answer can be. */
function spokenTokens(audio: unknown, model: Model): number {
  if (!isObject(audio)) return 0
  return typeof audio.data === 'string' ? audioTokens(audio.data) : (model.max_output_tokens ?? SPOKEN_MOST)
}

/** The longest answer of the models that speak. */
const SPOKEN_MOST = 16_384

/** Marks around one call, its id included. */
const CALL = 8

function addCall(call: JsonObject, texts: Texts): number {
  for (const name in call) {
    const value = call[name]
    if ((name === 'function' || name === 'custom') && isObject(value)) {
      for (const part in value) {
        if (part === 'name' || part === 'arguments' || part === 'input') addText(value[part], texts)
        else addUnknown(part, value[part], texts)
      }
    } else if (name === 'id') addId(value, texts)
    else if (name !== 'type' || (value !== 'function' && value !== 'custom')) addUnknown(name, value, texts)
  }
  return CALL
}

/** No id of a provider's making is longer; what is may be read as text. */
const ID_MOST = 40

function addId(id: Json | undefined, texts: Texts): void {
  if (typeof id === 'string' && id.length > ID_MOST) texts.add(id)
}

/** A forced tool is named in the prompt once more. */
function choiceTokens(body: JsonObject, sum: TextSum): number {
  let tokens = 0
  for (const choice of [body.tool_choice, body.function_call]) {
    if (typeof choice === 'string' && !CHOICES.has(choice)) sum.add(choice)
    if (!isObject(choice)) continue
    sum.add(JSON.stringify(choice))
    tokens += 4
  }
  return tokens
}

const CHOICES: ReadonlySet<string> = new Set(['auto', 'none', 'required', 'any'])

/** OpenAI counts the schema of an answer as input; others put it into the prompt, and some have it under another name. */
function formatTokens(format: unknown, sum: TextSum): number {
  if (!isObject(format)) return 0
  sum.addPart('format', texts => {
    for (const name in format) {
      if (name === 'json_schema' && isObject(format[name])) texts.add(JSON.stringify(format[name]))
      else if (name !== 'type' || !FORMATS.has(format[name])) addJson(name, format[name], texts)
    }
    return 0
  })
  if (format.type === 'text') return 0
  return sum.family === 'o200k' || sum.family === 'cl100k' ? 12 : 40
}

const FORMATS: ReadonlySet<unknown> = new Set(['text', 'json_object', 'json_schema'])

/** What else is told in the prompt: how hard to think, how much to say, where the one who asks is. */
function toldTokens(body: JsonObject, sum: TextSum): void {
  for (const name of ['reasoning_effort', 'verbosity']) if (typeof body[name] === 'string') sum.add(body[name])
  if (isObject(body.web_search_options)) sum.add(JSON.stringify(body.web_search_options))
}

function addText(value: unknown, texts: Texts): void {
  if (typeof value === 'string') texts.add(value)
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
