import { isObject, type Json, type JsonObject } from '../../json.js'
import type { Call } from '../providers/provider.js'
import { unreadable } from './conversation.js'

export interface Tool {
  readonly name: string
  readonly description: string | null
  /** Its JSON Schema; `null` where it takes nothing. */
  readonly parameters: JsonObject | null
  readonly strict: boolean | null
  /** Where it stands in the request: `tools[0]`. */
  readonly path: string
}

export type ToolChoice = { readonly mode: 'auto' | 'none' | 'required' } | { readonly mode: 'function'; readonly name: string }

/** The tools that may be called: those of `tools`, less those that an `allowed_tools` choice leaves out. Throws for kinds other than functions. */
export function toolsOf(body: JsonObject): Tool[] {
  if (!Array.isArray(body.tools)) return []
  const tools = body.tools.map((tool: Json, index) => readTool(tool, `tools[${index}]`))
  const allowed = allowedTools(body.tool_choice)
  if (allowed === null || !Array.isArray(allowed.tools)) return tools
  const names = new Set(allowed.tools.map((tool: Json) => (isObject(tool) && isObject(tool.function) ? tool.function.name : undefined)))
  return tools.filter(tool => names.has(tool.name))
}

/** `null`: the request leaves it open. */
export function toolChoiceOf(body: JsonObject): ToolChoice | null {
  const choice = body.tool_choice
  const mode = allowedTools(choice)?.mode ?? choice
  if (mode === 'auto' || mode === 'none' || mode === 'required') return { mode }
  if (!isObject(choice)) return null
  if (isObject(choice.function) && typeof choice.function.name === 'string') return { mode: 'function', name: choice.function.name }
  throw unreadable('tool_choice', 'must be none, auto, required, a function, or allowed_tools: this model takes nothing else.')
}

/** The cap of one choice's output, under either of its names; the smaller where both are there. */
export function capOf(call: Call): number {
  const caps = [call.body.max_tokens, call.body.max_completion_tokens].filter(cap => typeof cap === 'number')
  return caps.length === 0 ? call.model.default_max_tokens : Math.min(...caps)
}

export function stopsOf(body: JsonObject): string[] {
  const stops = typeof body.stop === 'string' ? [body.stop] : Array.isArray(body.stop) ? body.stop : []
  return stops.filter(stop => typeof stop === 'string')
}

/** The schema that the answer must follow; `'any'`: some JSON; `null`: text. */
export function answerSchemaOf(body: JsonObject): JsonObject | 'any' | null {
  const format = body.response_format
  if (!isObject(format)) return null
  if (format.type === 'json_object') return 'any'
  if (format.type !== 'json_schema') return null
  return isObject(format.json_schema) && isObject(format.json_schema.schema) ? format.json_schema.schema : 'any'
}

export function numberOf(value: Json | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/** The fields that have a value. */
export function present(fields: { readonly [name: string]: Json | undefined }): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function readTool(tool: Json, path: string): Tool {
  if (!isObject(tool) || tool.type !== 'function' || !isObject(tool.function) || typeof tool.function.name !== 'string') {
    throw unreadable(path, 'must be a function with a name: this model takes no other tools.')
  }
  const { name, description, parameters, strict } = tool.function
  return {
    name,
    description: typeof description === 'string' ? description : null,
    parameters: isObject(parameters) ? parameters : null,
    strict: typeof strict === 'boolean' ? strict : null,
    path,
  }
}

function allowedTools(choice: Json | undefined): JsonObject | null {
  if (!isObject(choice) || choice.type !== 'allowed_tools') return null
  // Both spellings are in use: the chat wire nests the list, the responses wire does not.
  return isObject(choice.allowed_tools) ? choice.allowed_tools : choice
}
