import { parentPort } from 'node:worker_threads'
import { Catalog } from './config/catalog.js'
import { ENDPOINTS } from './endpoints/endpoints.js'
import { isGatewayError } from './errors.js'
import type { Asking, Told, ToThread } from './offload.js'
import { readQuestion, understand, type Where } from './understand.js'
import { loadProviders } from './upstream/kinds.js'
import { outgoing } from './upstream/outgoing.js'
import { Wires } from './upstream/upstream.js'

/* The other end of `offload.ts`. */

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
  const told = answer(message)
  port.postMessage(told, told.question?.targets.map(target => target.outgoing.buffer as ArrayBuffer) ?? [])
})

function answer(asking: Asking): Told {
  const { id } = asking
  try {
    const where = configs.get(asking.config)
    const endpoint = ENDPOINTS.find(({ surface }) => surface === asking.surface)
    if (where === undefined || endpoint === undefined) throw new Error('the config or the endpoint is not known')
    const { buffer, byteOffset, byteLength } = asking.bytes
    const body = readQuestion(Buffer.from(buffer, byteOffset, byteLength), endpoint)
    const question = understand(body, endpoint, where, asking.key)
    const names = where.catalog.targets(question.model).map(({ rank, name }) => `${rank} ${name}`)
    const targets = question.targets.map(target => ({
      place: names.indexOf(`${target.rank} ${target.name}`),
      outgoing: encode(outgoing(target, endpoint.surface, question.stream, where.upstreams, asking.call)),
      estimate: target.estimate,
      ...(target.bound === undefined ? {} : { bound: target.bound }),
    }))
    const { stream, includeUsage } = question
    return { id, question: { model: question.model.id, targets, stream, includeUsage } }
  } catch (error) {
    if (!isGatewayError(error)) return { id, fault: (error as Error).stack ?? String(error) }
    const { code, message, status, type, param, shouldRetry, origin } = error
    return { id, error: { code, message, options: { status, type, param, origin, ...(shouldRetry === undefined ? {} : { shouldRetry }) } } }
  }
}

/** In a buffer of its own, which can change hands. */
function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}
