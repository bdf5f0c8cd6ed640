import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 as Ajv, type ValidateFunction } from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import { ROOT } from './paths.js'

/*
 * What clients receive, held against config/openapi.yaml: every answer that a test gets from a running gateway passes here.
 */

/** One answer, as it was received. `body`: of a stream, all of its events. */
export interface Received {
  readonly method: string
  /** With or without its query. */
  readonly path: string
  readonly status: number
  readonly headers: Headers
  readonly body: string
  /** What was asked, where it is known. */
  readonly asked?: unknown
}

type Described = Readonly<Record<string, unknown>>
interface Answer {
  readonly headers: readonly { readonly name: string; readonly required: boolean; readonly fits: ValidateFunction }[]
  readonly content: ReadonlyMap<string, ValidateFunction>
}

/** Answers that each process has seen, one `METHOD path status` a line; whoever wants the sum of a run reads it. */
export const SEEN = join(ROOT, 'dist', 'answers-seen.txt')

/** The document, resolved; parsed once, when it is first needed. */
class Api {
  readonly document = parse(readFileSync(join(ROOT, 'config/openapi.yaml'), 'utf8')) as Described
  readonly #ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
  readonly #answers = new Map<string, Answer>()
  readonly #compiled = new Map<unknown, ValidateFunction>()

  constructor() {
    this.#ajv.addSchema(this.document, 'api')
  }

  /** The path of the document that this one is, or undefined. */
  pathOf(path: string): string | undefined {
    const paths = this.document.paths as Described
    if (Object.hasOwn(paths, path)) return path
    return path.startsWith('/v1/models/') && path.length > '/v1/models/'.length ? '/v1/models/{id}' : undefined
  }

  operation(path: string, method: string): Described | undefined {
    const item = this.#resolved((this.document.paths as Described)[path])
    return item[method.toLowerCase()] as Described | undefined
  }

  request(path: string): ValidateFunction {
    const { requestBody } = this.operation(path, 'POST') as { requestBody: { content: Record<string, { schema: object }> } }
    return this.#compile(requestBody.content['application/json']?.schema)
  }

  /** How an answer of this status must look; for a path that is not there, as errors in general. */
  answer(path: string | undefined, method: string, status: number): Answer {
    const id = `${method} ${path ?? ''} ${status}`
    let answer = this.#answers.get(id)
    if (answer === undefined) {
      const operation = path === undefined ? undefined : this.operation(path, method)
      const responses = (operation?.responses ?? {}) as Described
      const shared = (this.document.components as Described).responses as Described
      const found = responses[String(status)] ?? (status === 405 ? shared.MethodNotAllowed : (responses.default ?? shared.Other))
      answer = this.#read(found)
      this.#answers.set(id, answer)
    }
    return answer
  }

  #read(described: unknown): Answer {
    const { headers = {}, content } = this.#resolved(described) as { headers?: Described; content: Record<string, { schema: object }> }
    return {
      headers: Object.entries(headers).map(([name, header]) => {
        const { required = false, schema } = this.#resolved(header) as { required?: boolean; schema: object }
        return { name, required, fits: this.#compile(schema) }
      }),
      content: new Map(Object.entries(content).map(([type, { schema }]) => [type, this.#compile(schema)])),
    }
  }

  #compile(schema: unknown): ValidateFunction {
    let fits = this.#compiled.get(schema)
    if (fits === undefined) {
      // References are those of the document.
      fits = this.#ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"api#/')))
      this.#compiled.set(schema, fits)
    }
    return fits
  }

  #resolved(value: unknown): Described {
    const { $ref } = (value ?? {}) as { $ref?: string }
    if ($ref === undefined) return value as Described
    const steps = $ref.slice(2).split('/')
    return steps.reduce<unknown>((at, step) => (at as Described)[step.replaceAll('~1', '/')], this.document) as Described
  }
}

let api: Api | undefined
const seen = new Map<string, number>()

export function openapi(): Api {
  api ??= new Api()
  return api
}

/** How many answers this process has held against the document. */
export function held(): number {
  return [...seen.values()].reduce((sum, count) => sum + count, 0)
}

/** Throws an Error that says in what an answer is not as the document has it. */
export function conform({ method, path: target, status, headers, body, asked }: Received): void {
  const path = openapi().pathOf(target.split('?')[0] as string)
  const what = `${method} ${path ?? '(no such path)'} ${status}`
  const wrong = faults(openapi().answer(path, method === 'HEAD' ? 'GET' : method, status), { method, headers, body })
  if (status === 200 && asked !== undefined && path !== undefined) wrong.push(...told('the request', openapi().request(path), asked))
  if (wrong.length > 0) throw new Error(`${what} is not as config/openapi.yaml has it:\n${wrong.join('\n')}\n${body.slice(0, 2000)}`)
  if (seen.size === 0) process.once('exit', () => appendFileSync(SEEN, [...seen].map(([one, count]) => `${count} ${one}\n`).join('')))
  seen.set(what, (seen.get(what) ?? 0) + 1)
}

function faults({ headers, content }: Answer, received: Pick<Received, 'method' | 'headers' | 'body'>): string[] {
  const wrong: string[] = []
  for (const { name, required, fits } of headers) {
    const value = received.headers.get(name)
    if (value === null) {
      if (required) wrong.push(`the header ${name} is missing`)
    } else wrong.push(...told(`the header ${name} (${value})`, fits, value))
  }
  const type = received.headers.get('content-type') ?? ''
  const fits = content.get(type.split(';')[0] as string)
  if (fits === undefined) return [...wrong, `content-type is ${JSON.stringify(type)}, not one of ${[...content.keys()].join(', ')}`]
  if (received.method === 'HEAD') return wrong
  if (type !== 'application/json') return [...wrong, ...events(received.body, fits)]
  return [...wrong, ...told('the body', fits, parsed(received.body))]
}

/** A stream that was left early may end in the midst of an event. */
function events(body: string, fits: ValidateFunction): string[] {
  const whole = body.slice(0, body.lastIndexOf('\n\n') + 1)
  const data = whole.split('\n').flatMap(line => (line.startsWith('data: ') ? [line.slice('data: '.length)] : []))
  const last = data.at(-1)
  const wrong = data.flatMap(text => (text === '[DONE]' ? [] : told(`the event ${text.slice(0, 300)}`, fits, parsed(text))))
  if (data.slice(0, -1).some(text => text === '[DONE]' || isError(parsed(text)))) wrong.push('something follows [DONE], or an error')
  if (last === undefined && body.includes('data:')) wrong.push('no event is whole')
  return wrong
}

function isError(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'error' in value && !('choices' in value)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function told(what: string, fits: ValidateFunction, value: unknown): string[] {
  if (value === undefined) return [`${what} is no JSON`]
  if (fits(value)) return []
  return (fits.errors ?? []).map(({ instancePath, message, params }) => `${what}${instancePath} ${message} ${JSON.stringify(params)}`)
}
