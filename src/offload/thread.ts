import { parentPort } from 'node:worker_threads'
import { Catalog, type Place } from '../config/catalog.js'
import type { Body, Endpoint, Surface } from '../endpoints/endpoint.js'
import { ENDPOINTS } from '../endpoints/endpoints.js'
import type { JsonObject } from '../json.js'
import { familyOf, textTokens } from '../metering/estimate.js'
import { filled, joined, lengthOf, sharedBytes } from '../pieces.js'
import { checked, forwardedBody, readQuestion, understand, type Where } from '../understand.js'
import { bounded } from '../upstream/bounded.js'
import { loadProviders } from '../upstream/kinds.js'
import { translated } from '../upstream/outgoing.js'
import { Wires } from '../upstream/upstream.js'
import { wholeAnswer } from '../upstream/whole.js'
import { LargeBody } from './large-body.js'
import type { AnswerWork, QuestionWork, Told, ToldAnswer, ToldQuestion, ToThread } from './messages.js'
import { packed } from './thrown.js'

/* The other end of `lane.ts`. */

const port = parentPort
if (port === null) throw new Error('this module is the entry of a thread')
const providers = loadProviders()
const configs = new Map<number, Where>()
const CONFIGS_MAX = 8
const TOGETHER_BYTES = 2 * 1024 * 1024

port.on('message', async (message: ToThread) => {
  const kinds = await providers
  if (message.kind === 'config') {
    configs.set(message.number, { catalog: new Catalog(message.config), upstreams: new Wires(message.config, kinds) })
    // Requests keep the config that they began with, but not for ever.
    for (const number of configs.keys()) if (configs.size > CONFIGS_MAX) configs.delete(number)
    return
  }
  const told = done(message)
  port.postMessage(told, handedOver(told))
})

function done(message: Exclude<ToThread, { kind: 'config' }>): Told {
  const { id } = message
  const bytes = message.kind === 'answer' ? {} : { bytes: message.work.shared ? [sharedBytes(message.work.bytes)] : message.work.bytes }
  try {
    const where = configs.get(message.config)
    if (where === undefined) throw new Error('the config is not known')
    return { id, ...bytes, done: message.kind === 'question' ? question(message.work, where) : answer(message.work, where) }
  } catch (error) {
    return { id, ...bytes, thrown: packed(error) }
  }
}

/** Where bodies of ordinary size are put together: memory that is new each time takes as long to be had as to be filled. */
const together = Buffer.alloc(TOGETHER_BYTES)

function question({ bytes: list, surface, key, call }: QuestionWork, where: Where): ToldQuestion {
  const endpoint = endpointOf(surface)
  const bytes = lengthOf(list) <= TOGETHER_BYTES ? filled(together, list) : joined(list)
  const large = new LargeBody(bytes)
  const { model, targets, stream, includeUsage } = understand(checked(large.body, endpoint), endpoint, where, key)
  let refusal: unknown
  const sent = targets.map(target => {
    try {
      return { outgoing: encode(translated(target, surface, stream, where.upstreams, call), large) }
    } catch (error) {
      refusal ??= error
      return { refused: packed(error) }
    }
  })
  // One that can be asked is enough. Where there is none, the first says why.
  if (sent.every(({ refused }) => refused !== undefined)) throw refusal
  const names = where.catalog.targets(model).map(({ rank, name }) => `${rank} ${name}`)
  return {
    model: model.id,
    targets: targets.map((target, index) => ({
      place: names.indexOf(`${target.rank} ${target.name}`),
      ...sent[index],
      fields: Object.keys(target.body),
      estimate: target.estimate,
      ...(target.bound === undefined ? {} : { bound: target.bound }),
    })),
    stream,
    includeUsage,
  }
}

function answer({ bytes, headers, surface, model: id, place, call: ids, asked }: AnswerWork, { catalog, upstreams }: Where): ToldAnswer {
  const endpoint = endpointOf(surface)
  const asking = catalog.find(id)
  const { model } = (asking === undefined ? [] : catalog.targets(asking))[place] as Place
  const call = {
    ...ids,
    surface,
    model,
    stream: false,
    get body() {
      return 'body' in asked ? asked.body : forwardedBody(readQuestion(joined(asked.bytes), endpoint) as Body, endpoint, model, false)
    },
  }
  const { metered, text } = wholeAnswer(joined(bytes), call, upstreams.wire(model, surface), endpoint, headers)
  return {
    text: encode(text),
    // What it says stays here: it has been counted.
    metered: bounded({ usage: metered.usage, x_groq: metered.x_groq }) as JsonObject,
    counted: textTokens(endpoint.output?.(metered) ?? '', familyOf(model)),
  }
}

function endpointOf(surface: Surface): Endpoint {
  const endpoint = ENDPOINTS.find(one => one.surface === surface)
  if (endpoint === undefined) throw new Error(`there is no endpoint for ${surface}`)
  return endpoint
}

/** In a buffer of its own, which can change hands. */
function encode(sent: JsonObject | string, large?: LargeBody): Uint8Array {
  if (typeof sent !== 'string' && large !== undefined) return large.written(sent)
  return new TextEncoder().encode(typeof sent === 'string' ? sent : JSON.stringify(sent))
}

function handedOver(told: Told): ArrayBuffer[] {
  const done = 'thrown' in told ? [] : 'text' in told.done ? [told.done.text] : told.done.targets.flatMap(({ outgoing }) => outgoing ?? [])
  const buffers = new Set([...done, ...(told.bytes ?? [])].map(({ buffer }) => buffer))
  return [...buffers].filter(buffer => buffer instanceof ArrayBuffer)
}
