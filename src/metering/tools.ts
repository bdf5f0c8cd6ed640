import { isObject, type JsonObject } from '../json.js'
import type { TextSum, Texts } from './text.js'
import type { Family } from './tokenizers.js'
import { addJson, schemaTokens } from './tool-schema.js'

/**
 * Adds tool definitions, a part of the body, to the sum and returns what comes on top of their text. OpenAI's models see each tool as a type declaration, whose
 * cost was measured as constants: 7 a tool, 3 if it has fields, 3 a field (1 without a description), 3 a listed value, 12 once, and 2 to be sure. All others see JSON of some form.
 */
export function toolTokens(tools: readonly unknown[], sum: TextSum, part = 'tools'): number {
  const listed = tools.filter(isObject)
  const { family } = sum
  if (listed.length === 0) return 0
  if (family !== 'o200k' && family !== 'cl100k') {
    sum.addPart(`${part} as JSON`, texts => {
      for (const tool of listed) texts.add(JSON.stringify(tool))
      return 0
    })
    return JSON_OVERHEAD[family](listed.length)
  }
  return sum.addPart(`${part} as declarations`, texts => listed.reduce((tokens, tool) => tokens + declared(tool, texts), 14))
}

/** Legacy `functions` are the function itself; custom tools and a provider's own ones are described by their JSON. */
function declared(tool: JsonObject, texts: Texts): number {
  if (isObject(tool.function)) {
    for (const name in tool) if (name !== 'function' && (name !== 'type' || tool.type !== 'function')) addJson(name, tool[name], texts)
    return declaration(tool.function, texts)
  }
  if (typeof tool.type !== 'string') return declaration(tool, texts)
  texts.add(JSON.stringify(tool))
  return 7
}

/** Claude gets a hidden text on how to call tools (264 to 530 tokens, by version); templates of open models indent the JSON. */
const JSON_OVERHEAD: { readonly [name in Exclude<Family, 'o200k' | 'cl100k'>]: (tools: number) => number } = {
  claude: tools => 600 + 8 * tools,
  gemini: tools => 8 * tools,
  llama: tools => 60 + 60 * tools,
  bytes: tools => 600 + 200 * tools,
}

function declaration(tool: JsonObject, texts: Texts): number {
  let tokens = 7
  texts.add(`${text(tool.name)}:${text(tool.description)}`)
  for (const name in tool) {
    const value = tool[name]
    if ((name === 'name' || name === 'description') && typeof value === 'string') continue
    if (name === 'parameters' && isObject(value)) tokens += schemaTokens(value, texts)
    else if (name !== 'strict' || typeof value !== 'boolean') addJson(name, value, texts)
  }
  return tokens
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
