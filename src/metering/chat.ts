import type { Model } from '../config/config.js'
import type { Estimate } from '../endpoints/endpoint.js'
import { isObject, type JsonObject } from '../json.js'
import { audioTokens } from './audio.js'
import { imageTokens } from './image.js'
import { fileText, fileTokens } from './media.js'
import { type BodyTexts, TextSum, type Texts } from './text.js'
import { familyOf } from './tokenizers.js'
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
  for (const { content } of messages) for (const part of list(content)) if (isObject(part)) fixed += partTokens(part, model)
  tokens += toolTokens(list(body.tools), sum) + toolTokens(list(body.functions), sum, 'functions')
  tokens += choiceTokens(body, sum) + formatTokens(body.response_format, sum)
  return { input: fixed + tokens + sum.tokens, fixed }
}

/** Adds all the text of a message, and returns what its marks come to in any model. */
function addMessage(message: JsonObject, texts: Texts): number {
  let tokens = 0
  if (typeof message.name === 'string') {
    texts.add(message.name)
    tokens += 1
  }
  addText(message.content, texts)
  for (const part of list(message.content)) if (isObject(part)) addPart(part, texts)
  // Reasoning that a client hands back is read again where it is read at all.
  addText(message.reasoning_content ?? message.reasoning, texts)
  addText(message.refusal, texts)
  for (const call of list(message.tool_calls)) if (isObject(call)) tokens += addCall(call, texts)
  if (isObject(message.function_call)) tokens += addCall({ function: message.function_call }, texts)
  return tokens
}

/** Marks around one call, its id included. */
const CALL = 8

function addCall(call: JsonObject, texts: Texts): number {
  for (const called of [call.function, call.custom]) {
    if (!isObject(called)) continue
    addText(called.name, texts)
    addText(called.arguments ?? called.input, texts)
  }
  return CALL
}

/** Adds the text of a part of a message's content. */
function addPart(part: JsonObject, texts: Texts): void {
  switch (part.type) {
    case 'text':
      addText(part.text, texts)
      return
    case 'refusal':
      addText(part.refusal, texts)
      return
    case 'image_url':
    case 'input_audio':
      return
    case 'file': {
      const file = isObject(part.file) ? part.file : {}
      addText(file.filename, texts)
      if (typeof file.file_data === 'string') addText(fileText(file.file_data), texts)
      return
    }
    default:
      addStrings(part, texts)
  }
}

/** What a part is besides its text. */
function partTokens(part: JsonObject, model: Model): number {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return 0
    case 'image_url': {
      const image = isObject(part.image_url) ? part.image_url : { url: part.image_url }
      return imageTokens(typeof image.url === 'string' ? image.url : '', image.detail, model)
    }
    case 'input_audio': {
      const audio = isObject(part.input_audio) ? part.input_audio : {}
      return typeof audio.data === 'string' ? Math.min(audioTokens(audio.data, audio.format), model.context ?? Number.POSITIVE_INFINITY) : 0
    }
    case 'file': {
      const file = isObject(part.file) ? part.file : {}
      return fileTokens(typeof file.file_data === 'string' ? file.file_data : null, model)
    }
    default:
      return unknownTokens(part, model)
  }
}

/** A part of a kind that is not known here: its strings are text, but for data URLs, which are taken for images. */
function addStrings(value: unknown, texts: Texts): void {
  if (typeof value === 'string' && !DATA_URL.test(value)) texts.add(value)
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) addStrings(inner, texts)
}

function unknownTokens(value: unknown, model: Model): number {
  if (typeof value === 'string') return DATA_URL.test(value) ? imageTokens(value, undefined, model) : 0
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce((tokens: number, inner) => tokens + unknownTokens(inner, model), 0)
}

const DATA_URL = /^data:[^,]{0,256};base64,/i

/** A forced tool is named in the prompt once more. */
function choiceTokens(body: JsonObject, sum: TextSum): number {
  let tokens = 0
  for (const choice of [body.tool_choice, body.function_call]) {
    if (!isObject(choice)) continue
    sum.add(JSON.stringify(choice))
    tokens += 4
  }
  return tokens
}

/** OpenAI counts the schema of an answer as input; others put it into the prompt. */
function formatTokens(format: unknown, sum: TextSum): number {
  if (!isObject(format) || format.type === 'text') return 0
  const { json_schema: schema } = format
  if (isObject(schema)) {
    sum.addPart('schema', texts => {
      texts.add(JSON.stringify(schema))
      return 0
    })
  }
  return sum.family === 'o200k' || sum.family === 'cl100k' ? 12 : 40
}

function addText(value: unknown, texts: Texts): void {
  if (typeof value === 'string') texts.add(value)
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
