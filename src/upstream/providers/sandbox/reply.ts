import { isObject, type Json, type JsonObject } from '../../../json.js'
import { example, exampleObject } from './example.js'
import type { SandboxOptions } from './options.js'
import { pieces, repeated } from './pieces.js'
import { capOf, textOf } from './request.js'

/** What is said to a chat request: a text or calls, in pieces; one piece is one token of output. A call's name is a piece too. */
export interface Reply {
  readonly text: readonly string[]
  readonly calls: readonly ToolCall[]
  readonly finish: 'stop' | 'length' | 'tool_calls'
  /** Pieces in all. */
  readonly tokens: number
}

export interface ToolCall {
  readonly type: 'function' | 'custom'
  readonly name: string
  /** The arguments as JSON text; a custom tool's input as it is. */
  readonly input: readonly string[]
}

interface Tool {
  readonly type: 'function' | 'custom'
  readonly name: string
  readonly parameters: unknown
}

/** What the sandbox says to a chat request. */
export function reply(body: JsonObject, options: SandboxOptions): Reply {
  const messages = Array.isArray(body.messages) ? body.messages.filter(isObject) : []
  const cap = capOf(body)
  const calls = called(body, messages)
  if (calls.length > 0) return cutCalls(calls, cap)
  return plain(options.reply ?? formatted(body.response_format, answerTo(messages)), body, options)
}

/** A text as reply, after `options.tokens`, then `stop`, then the cap. */
export function plain(text: string, body: JsonObject, options: SandboxOptions): Reply {
  let found = pieces(text)
  if (options.tokens !== undefined) found = repeated(found, options.tokens)
  found = stopped(found, body.stop)
  const cap = capOf(body)
  const whole = found.length <= cap
  if (!whole) found.length = cap
  return { text: found, calls: [], finish: whole ? 'stop' : 'length', tokens: found.length }
}

function answerTo(messages: readonly JsonObject[]): string {
  const last = messages.at(-1)
  if (last?.role === 'tool') return `The tool said: ${textOf(last.content)}`
  const user = messages.findLast(message => message.role === 'user')
  return user === undefined ? 'Hello from the sandbox.' : `You said: ${textOf(user.content)}`
}

function formatted(format: unknown, text: string): string {
  if (!isObject(format)) return text
  if (format.type === 'json_object') return JSON.stringify({ reply: text })
  if (format.type !== 'json_schema' || !isObject(format.json_schema)) return text
  return JSON.stringify(example(format.json_schema.schema ?? { type: 'object' }))
}

function stopped(found: string[], stop: unknown): string[] {
  const stops = (Array.isArray(stop) ? stop : [stop]).filter(one => typeof one === 'string' && one !== '') as string[]
  if (stops.length === 0) return found
  const text = found.join('')
  const at = Math.min(...stops.map(one => text.indexOf(one)).map(index => (index < 0 ? text.length : index)))
  return at === text.length ? found : pieces(text.slice(0, at))
}

function called(body: JsonObject, messages: readonly JsonObject[]): ToolCall[] {
  let tools = toolsOf(body.tools)
  let choice: Json | undefined = body.tool_choice
  if (isObject(choice) && isObject(choice.allowed_tools)) {
    const allowed = new Set(toolsOf(choice.allowed_tools.tools).map(tool => tool.name))
    tools = tools.filter(tool => allowed.has(tool.name))
    choice = choice.allowed_tools.mode
  }
  if (tools.length === 0 || choice === 'none') return []
  const asked = messages.findLastIndex(message => message.role === 'user')
  const text = textOf(messages[asked]?.content)
  const call = ({ type, name, parameters }: Tool): ToolCall => {
    return { type, name, input: pieces(type === 'custom' ? text : JSON.stringify(exampleObject(parameters))) }
  }
  if (isObject(choice)) {
    const named = toolsOf([choice])[0]?.name
    return tools
      .filter(tool => tool.name === named)
      .slice(0, 1)
      .map(call)
  }
  const mentioned = tools.filter(tool => mentions(text, tool.name))
  if (choice === 'required') return (mentioned.length > 0 ? mentioned : tools).slice(0, 1).map(call)
  // A result that has come back is answered, not asked for again: an agent's loop must come to its end.
  if (messages.slice(asked + 1).some(message => message.role === 'tool')) return []
  return mentioned.slice(0, body.parallel_tool_calls === false ? 1 : undefined).map(call)
}

function toolsOf(list: unknown): Tool[] {
  if (!Array.isArray(list)) return []
  return list.filter(isObject).flatMap(tool => {
    const type = tool.type === 'custom' ? 'custom' : 'function'
    const said = tool[type]
    return isObject(said) && typeof said.name === 'string' ? [{ type, name: said.name, parameters: said.parameters }] : []
  })
}

/** Does the name stand in the text as a word of its own? */
function mentions(text: string, name: string): boolean {
  if (name === '') return false
  const word = /[\w-]/
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!word.test(text.charAt(at - 1)) && !word.test(text.charAt(at + name.length))) return true
  }
  return false
}

/** A cap ends a call in the middle of its arguments, as real models do. */
function cutCalls(calls: readonly ToolCall[], cap: number): Reply {
  const kept: ToolCall[] = []
  let tokens = 0
  for (const call of calls) {
    if (tokens >= cap) return { text: [], calls: kept, finish: 'length', tokens }
    const input = call.input.slice(0, cap - tokens - 1)
    kept.push({ ...call, input })
    tokens += 1 + input.length
    if (input.length < call.input.length) return { text: [], calls: kept, finish: 'length', tokens }
  }
  return { text: [], calls: kept, finish: 'tool_calls', tokens }
}
