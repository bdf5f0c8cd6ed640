import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import type { JsonObject } from '../../src/json.js'
import {
  type EventTranslator,
  type Failure,
  type Provider,
  ProviderFailure,
  type SseEvent,
  type Wire,
} from '../../src/upstream/providers/provider.js'
import { callOf } from './calls.js'
import { inTwo, singly, sseEvents } from './sse-reference.js'
import { brokenRules } from './stream-rules.js'

const ROOT = new URL('../../../test/fixtures/', import.meta.url)

/**
 * Holds a kind's chat wire against its fixtures:
 * `<case>.request.{client,provider}.json`, `<case>.answer.{provider,client}.json`, `<case>.stream.{provider,client}.sse`. A case that must
 * fail has `<case>.{answer,stream}.failure.json` with the failure (for a stream, `client.sse` has what was told before it).
 */
export function checkFixtures(provider: Provider, model: string): void {
  const files = readdirSync(new URL(`${provider.kind}/`, ROOT))
  const cases = (suffix: string) => files.filter(file => file.endsWith(suffix)).map(file => file.slice(0, -suffix.length))
  const text = (file: string) => readFileSync(new URL(`${provider.kind}/${file}`, ROOT))
  const json = (file: string): JsonObject => JSON.parse(text(file).toString())
  const chat = chatOf(provider)

  for (const name of cases('.request.client.json')) {
    t.test(`${provider.kind}: request ${name}`, async t => {
      const body = json(`${name}.request.client.json`)
      t.strictSame(chat.request(callOf(String(body.model), body)), json(`${name}.request.provider.json`))
    })
  }
  for (const name of cases('.answer.provider.json')) {
    t.test(`${provider.kind}: answer ${name}`, async t => {
      const answer = () => chat.response(json(`${name}.answer.provider.json`), callOf(model, {}), {})
      if (files.includes(`${name}.answer.failure.json`)) t.strictSame(failureIn(answer), json(`${name}.answer.failure.json`))
      else t.strictSame(answer(), json(`${name}.answer.client.json`))
    })
  }
  for (const name of cases('.stream.provider.sse')) {
    t.test(`${provider.kind}: stream ${name}`, async t => {
      const bytes = text(`${name}.stream.provider.sse`)
      const events = sseEvents([bytes])
      const wanted = sseEvents([text(`${name}.stream.client.sse`)]).filter(({ data }) => data !== '[DONE]')
      const failure = files.includes(`${name}.stream.failure.json`) ? json(`${name}.stream.failure.json`) : null
      const translator = () => chat.events(callOf(model, {}, { stream: true }))
      const told = translated(translator(), events)
      t.strictSame(
        told.chunks,
        wanted.map(({ data }) => JSON.parse(data)),
        'the chunks',
      )
      t.strictSame(told.failure, failure, 'the failure')
      t.strictSame(brokenRules(told.chunks, { whole: failure === null }), [], 'the rules of streams')
      t.strictSame(translated(translator(), sseEvents(singly(bytes))), told, 'byte by byte')
      const read = JSON.stringify(events)
      for (const pieces of inTwo(bytes)) {
        const again = sseEvents(pieces)
        if (JSON.stringify(again) === read) continue
        t.strictSame(translated(translator(), again), told, `cut after ${pieces[0].length} bytes`)
        break
      }
      for (let length = 0; length < events.length; length++) {
        const cut = translated(translator(), events.slice(0, length))
        const whole = cut.failure === null
        t.strictSame(brokenRules(cut.chunks, { whole }), [], `ended after ${length} events`)
        t.equal(JSON.stringify(cut.chunks).includes('"finish_reason":"'), whole, `finished, or failed, after ${length} events`)
      }
    })
  }
}

/** The chat wire of a kind that translates all of it. */
export function chatOf({ kind, wires: { chat } }: Provider): Required<Pick<Wire, 'path' | 'request' | 'response' | 'events'>> {
  const { path, request, response, events } = chat ?? {}
  if (path && request && response && events) return { path, request, response, events }
  throw new TypeError(`${kind} does not translate chat.`)
}

export interface Told {
  readonly chunks: readonly JsonObject[]
  readonly failure: Failure | null
}

/** All that a translator tells of the events, and how it ends. */
export function translated(translator: EventTranslator, events: readonly SseEvent[]): Told {
  const chunks: JsonObject[] = []
  const failure = failureIn(() => {
    for (const event of events) chunks.push(...translator.event(event))
    chunks.push(...translator.end())
  })
  return { chunks, failure }
}

/** The failure that a provider's words became; `null` where nothing is thrown. */
export function failureIn(run: () => unknown): Failure | null {
  try {
    run()
    return null
  } catch (error) {
    if (error instanceof ProviderFailure) return error.failure
    throw error
  }
}
