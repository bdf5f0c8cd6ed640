import type { Model } from '../config/config.js'
import type { Estimate } from '../endpoints/endpoint.js'
import { isObject, type JsonObject } from '../json.js'
import { imageTokens } from './image.js'
import { audioTokens, fileTokens } from './media.js'
import { TextSum } from './text.js'
import { familyOf } from './tokenizers.js'
import { toolTokens } from './tools.js'

/** Around every message, its role included, and before the answer. OpenAI's are measured; templates of others take more marks. */
const FRAME = { openai: { message: 4, answer: 3 }, other: { message: 6, answer: 8 } } as const

/**
 * Input tokens that a provider will count for a chat request: messages with their names, calls, images, audio and files, tools, schemas of
 * the answer, and what a provider wraps around them. The body is one that passed the endpoint's check, with only the fields that the model
 * takes. A careful guess that is rarely too low, in time linear in the body. `fixed` is the part that images, audio and files are.
 */
export function chatTokens(body: JsonObject, model: Model): Pick<Estimate, 'input' | 'fixed'> {
  const family = familyOf(model)
  const frame = family === 'o200k' || family === 'cl100k' ? FRAME.openai : FRAME.other
  const sum = new TextSum(family)
  let tokens: number = frame.answer
  let fixed = 0
  for (const message of list(body.messages)) {
    if (!isObject(message)) continue
    tokens += frame.message + messageTokens(message, sum)
    for (const part of list(message.content)) if (isObject(part)) fixed += partTokens(part, model, sum)
  }
  tokens += toolTokens(list(body.tools), sum) + toolTokens(list(body.functions), sum)
  tokens += choiceTokens(body, sum) + formatTokens(body.response_format, sum)
  return { input: fixed + tokens + sum.tokens, fixed }
}

/** All of a message but the parts of its content. */
function messageTokens(message: JsonObject, sum: TextSum): number {
  let tokens = 0
  if (typeof message.name === 'string') {
    sum.add(message.name)
    tokens += 1
  }
  if (typeof message.content === 'string') addText(message.content, sum)
  // Reasoning that a client hands back is read again where it is read at all.
  addText(message.reasoning_content ?? message.reasoning, sum)
  addText(message.refusal, sum)
  for (const call of list(message.tool_calls)) if (isObject(call)) tokens += callTokens(call, sum)
  if (isObject(message.function_call)) tokens += callTokens({ function: message.function_call }, sum)
  return tokens
}

/** Marks around one call, its id included. */
const CALL = 8

function callTokens(call: JsonObject, sum: TextSum): number {
  for (const called of [call.function, call.custom]) {
    if (!isObject(called)) continue
    addText(called.name, sum)
    addText(called.arguments ?? called.input, sum)
  }
  return CALL
}

/** Adds the text of a part to the sum, and returns what it is besides text. */
function partTokens(part: JsonObject, model: Model, sum: TextSum): number {
  switch (part.type) {
    case 'text':
      addText(part.text, sum)
      return 0
    case 'refusal':
      addText(part.refusal, sum)
      return 0
    case 'image_url': {
      const image = isObject(part.image_url) ? part.image_url : { url: part.image_url }
      return imageTokens(typeof image.url === 'string' ? image.url : '', image.detail, model)
    }
    case 'input_audio':
      return isObject(part.input_audio) && typeof part.input_audio.data === 'string' ? audioTokens(part.input_audio.data) : 0
    case 'file': {
      const file = isObject(part.file) ? part.file : {}
      addText(file.filename, sum)
      return fileTokens(typeof file.file_data === 'string' ? file.file_data : null, model, sum)
    }
    default:
      return unknownTokens(part, model, sum)
  }
}

/** A part of a kind that is not known here: its strings are text, but for data URLs, which are taken for images. */
function unknownTokens(value: unknown, model: Model, sum: TextSum): number {
  if (typeof value === 'string') {
    if (/^data:[^,]{0,256};base64,/i.test(value)) return imageTokens(value, undefined, model)
    addText(value, sum)
    return 0
  }
  if (typeof value !== 'object' || value === null) return 0
  let tokens = 0
  for (const inner of Object.values(value)) tokens += unknownTokens(inner, model, sum)
  return tokens
}

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
  if (isObject(format.json_schema)) sum.add(JSON.stringify(format.json_schema))
  return sum.family === 'o200k' || sum.family === 'cl100k' ? 12 : 40
}

/** Texts that follow one another are not one word. */
function addText(value: unknown, sum: TextSum): void {
  if (typeof value === 'string') sum.add(value)
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
