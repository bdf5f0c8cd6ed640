import { isObject, type JsonObject } from '../json.js'
import type { TextSum } from './text.js'
import type { Family } from './tokenizers.js'

/**
 * Adds tool definitions to the sum and returns what comes on top of their text. OpenAI's models see each tool as a type declaration, whose
 * cost was measured as constants: 7 a tool, 3 if it has fields, 3 a field (1 without a description), 3 a listed value, 12 once, and 2 to be sure. All others see JSON of some form.
 */
export function toolTokens(tools: readonly unknown[], sum: TextSum): number {
  const listed = tools.filter(isObject)
  const { family } = sum
  if (listed.length === 0) return 0
  if (family !== 'o200k' && family !== 'cl100k') {
    for (const tool of listed) sum.add(JSON.stringify(tool))
    return JSON_OVERHEAD[family](listed.length)
  }
  let tokens = 14
  for (const tool of listed) {
    // Legacy `functions` are the function itself; custom tools and a provider's own ones are described by their JSON.
    const declared = isObject(tool.function) ? tool.function : typeof tool.type === 'string' ? null : tool
    if (declared === null) {
      sum.add(JSON.stringify(tool))
      tokens += 7
    } else tokens += declaration(declared, sum)
  }
  return tokens
}

/** Claude gets a hidden text on how to call tools (264 to 530 tokens, by version); templates of open models indent the JSON. */
const JSON_OVERHEAD: { readonly [name in Exclude<Family, 'o200k' | 'cl100k'>]: (tools: number) => number } = {
  claude: tools => 600 + 8 * tools,
  gemini: tools => 8 * tools,
  llama: tools => 60 + 60 * tools,
  bytes: tools => 600 + 200 * tools,
}

function declaration(tool: JsonObject, sum: TextSum): number {
  sum.add(`${text(tool.name)}:${text(tool.description)}`)
  return 7 + (isObject(tool.parameters) ? fields(tool.parameters, sum) : 0)
}

function fields(schema: JsonObject, sum: TextSum): number {
  if (!isObject(schema.properties)) return 0
  let tokens = 0
  for (const [name, field] of Object.entries(schema.properties)) {
    if (!isObject(field)) continue
    if (tokens === 0) tokens = 3
    sum.add(
      `${name}:${typeof field.type === 'string' ? field.type : field.type === undefined ? '' : JSON.stringify(field.type)}:${text(field.description)}\n`,
    )
    tokens += (field.description === undefined ? 1 : 3) + nested(field, sum)
  }
  return tokens
}

/** What a field holds besides its name: listed values, fields of its own, items, alternatives. */
function nested(field: JsonObject, sum: TextSum): number {
  let tokens = fields(field, sum)
  if (Array.isArray(field.enum)) {
    for (const value of field.enum) {
      sum.add(`${typeof value === 'string' ? value : JSON.stringify(value)}`)
      tokens += 3
    }
    if (tokens >= 3) tokens -= 3
  }
  if (isObject(field.items)) tokens += nested(field.items, sum)
  for (const branches of [field.anyOf, field.oneOf, field.allOf]) {
    if (Array.isArray(branches)) for (const branch of branches) if (isObject(branch)) tokens += 3 + nested(branch, sum)
  }
  for (const shared of [field.$defs, field.definitions]) {
    if (isObject(shared)) for (const one of Object.values(shared)) if (isObject(one)) tokens += 3 + nested(one, sum)
  }
  return tokens
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
