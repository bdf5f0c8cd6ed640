import type { JsonObject } from '../../../json.js'

/** A model's `options`, as `modelOptions` below describes and the config has checked them. */
export interface SandboxOptions {
  readonly reply?: string
  readonly tokens?: number
  readonly first_byte?: number
  readonly pace?: number
  readonly usage?: 'report' | 'omit' | UsageFigures
  readonly ignore_stream?: boolean
  readonly fail?: Fail
  readonly cut?: number
  readonly reset?: number
  readonly hang?: boolean
  readonly refuse?: boolean
}

/** What is not given is counted. Any number goes: how a gateway takes nonsense is worth trying. */
export interface UsageFigures {
  readonly input?: number
  readonly output?: number
  readonly cached?: number
  readonly reasoning?: number
  readonly total?: number
}

export interface Fail {
  readonly status?: number
  readonly code?: string
  readonly message?: string
  readonly retry_after?: number
  readonly times?: number
  readonly after_events?: number
}

/** The longest wait: a day. Below what a timer of Node can hold. */
const WAIT_MAX_MS = 86_400_000

const events = (description: string): JsonObject => ({ description, type: 'integer', minimum: 0 })
const wait = (description: string): JsonObject => ({ description, type: 'integer', minimum: 0, maximum: WAIT_MAX_MS })
const flag = (description: string): JsonObject => ({ description, type: 'boolean' })
const figure = (description: string): JsonObject => ({ description, type: 'number' })

/** JSON Schema of `models.<id>.options` for models of the sandbox. */
export const modelOptions: JsonObject = {
  description: 'How a model of the sandbox behaves. Everything is off by default.',
  type: 'object',
  additionalProperties: false,
  properties: {
    reply: { description: 'Say this instead of what the user said.', type: 'string' },
    tokens: {
      description: 'Exactly so many pieces of output: the text is repeated, or cut. A cap of the request still holds.',
      type: 'integer',
      minimum: 0,
      maximum: 1_000_000,
    },
    first_byte: wait('Milliseconds of silence before the answer begins.'),
    pace: wait('Milliseconds between two pieces of output. An answer that is no stream comes when all of them would have come.'),
    usage: {
      title: 'report, omit, or a map of figures',
      description:
        'report (default): what was counted. omit: nothing. Or figures to report in place of those counted; nonsense is allowed.',
      anyOf: [
        { type: 'string', enum: ['report', 'omit'] },
        {
          type: 'object',
          additionalProperties: false,
          properties: {
            input: figure('prompt_tokens.'),
            output: figure('completion_tokens.'),
            cached: figure('prompt_tokens_details.cached_tokens.'),
            reasoning: figure('completion_tokens_details.reasoning_tokens.'),
            total: figure('total_tokens; default: input + output.'),
          },
        },
      ],
    },
    ignore_stream: flag('Answer a request for a stream with JSON, as some servers do.'),
    fail: {
      description: 'Fail, with an error in the format of OpenAI.',
      type: 'object',
      additionalProperties: false,
      properties: {
        status: { description: 'HTTP status; default 500.', type: 'integer', minimum: 400, maximum: 599 },
        code: { description: 'error.code; default: what is usual for the status.', type: 'string' },
        message: { description: 'error.message.', type: 'string' },
        retry_after: { description: 'Seconds, in the header retry-after; a 429 has 1 by default.', type: 'integer', minimum: 0 },
        times: {
          description: 'Only the first so many requests fail, counted since the start or the last reload.',
          type: 'integer',
          minimum: 1,
        },
        after_events: events('A stream begins, and the error comes inside it after so many events.'),
      },
    },
    cut: events('The answer ends after so many events, without a finish. An answer that is no stream ends in the middle.'),
    reset: events('The connection breaks after so many events; 0: before any answer.'),
    hang: flag('Never answer.'),
    refuse: flag('Take no connection, as if no server listened.'),
  },
}
