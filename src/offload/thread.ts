import { parentPort } from 'node:worker_threads'
import { Catalog, type Place } from '../config/catalog.js'
import type { Body, Endpoint, Surface } from '../endpoints/endpoint.js'
import { ENDPOINTS } from '../endpoints/endpoints.js'
import { familyOf, textTokens } from '../metering/estimate.js'
import { joined } from '../pieces.js'
import { forwardedBody, readQuestion, understand, type Where } from '../understand.js'
import { loadProviders } from '../upstream/kinds.js'
import { outgoing } from '../upstream/outgoing.js'
import { Wires } from '../upstream/upstream.js'
import { wholeAnswer } from '../upstream/whole.js'
import type { AnswerWork, QuestionWork, Told, ToldAnswer, ToldQuestion, ToThread } from './messages.js'
import { packed } from './thrown.js'

/* The other end of `lane.ts`. */

const port = parentPort
if (port === null) throw new Error('this module is the entry of a thread')
const providers = loadProviders()
const configs = new Map<number, Where>()
const CONFIGS_MAX = 8

port.on('message', async (message: ToThread) => {
  const kinds = await providers
  if (message.kind === 'config') {
    configs.set(message.number, { catalog: new Catalog(message.config), upstreams: new Wires(message.config, kinds) })
    // Requests keep the config that they began with, but not for ever.
    for (const number of configs.keys()) if (configs.size > CONFIGS_MAX) configs.delete(number)
    return
  }
  const told = done(message)
  port.postMessage(told, 'done' in told ? handedOver(told.done) : [])
})

function done(message: Exclude<ToThread, { kind: 'config' }>): Told {
  const { id } = message
  try {
    const where = configs.get(message.config)
    if (where === undefined) throw new Error('the config is not known')
    return { id, done: message.kind === 'question' ? question(message.work, where) : answer(message.work, where) }
  } catch (error) {
    return { id, thrown: packed(error) }
  }
}

function question({ bytes, surface, key, call }: QuestionWork, where: Where): ToldQuestion {
  const endpoint = endpointOf(surface)
  const { model, targets, stream, includeUsage } = understand(readQuestion(joined(bytes), endpoint), endpoint, where, key)
  const names = where.catalog.targets(model).map(({ rank, name }) => `${rank} ${name}`)
  return {
    model: model.id,
    targets: targets.map(target => ({
      place: names.indexOf(`${target.rank} ${target.name}`),
      outgoing: encode(outgoing(target, surface, stream, where.upstreams, call)),
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
    metered: { usage: metered.usage, x_groq: metered.x_groq },
    counted: textTokens(endpoint.output(metered), familyOf(model)),
  }
}

function endpointOf(surface: Surface): Endpoint {
  const endpoint = ENDPOINTS.find(one => one.surface === surface)
  if (endpoint === undefined) throw new Error(`there is no endpoint for ${surface}`)
  return endpoint
}

/** In a buffer of its own, which can change hands. */
function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function handedOver(done: ToldQuestion | ToldAnswer): ArrayBuffer[] {
  const bytes = 'text' in done ? [done.text] : done.targets.map(target => target.outgoing)
  return bytes.map(({ buffer }) => buffer as ArrayBuffer)
}
