import { hash } from 'node:crypto'
import type { Key } from '../src/config/config.js'
import type { Policy, PolicyFactory } from '../src/policy.js'

/*
 * auth: who asks? `Authorization: Bearer <key>`, looked up by the key's SHA-256, so that no comparison of secrets can be timed. An unknown, a
 * disabled and an expired key are told the same. Takes no options.
 */

const BEARER = /^Bearer +(\S+) *$/i
/** Header fields whose key is remembered: to hash one costs as much as a counter. */
const REMEMBERED_MAX = 1_000

export default ((_options, host): Policy => {
  const keys = new Map([...host.keys.values()].map(key => [key.sha256, key]))
  // Those that were right. A Map compares nothing of what it has with what it is asked for unless their hashes agree, and these are seeded.
  const remembered = new Map<string, Key>()
  const keyOf = (secret: string, field: string): Key | undefined => {
    const key = keys.get(hash('sha256', secret))
    if (key === undefined) return undefined
    if (remembered.size >= REMEMBERED_MAX) remembered.clear()
    remembered.set(field, key)
    return key
  }
  return {
    name: 'auth',
    identify({ headers, at }) {
      const field = headers.authorization ?? ''
      const secret = BEARER.exec(field)?.[1]
      if (secret === undefined) {
        throw host.error('missing_api_key', 'There is no API key. Send the header: Authorization: Bearer <key>.')
      }
      const key = remembered.get(field) ?? keyOf(secret, field)
      if (key === undefined || key.disabled || (key.expires !== null && at >= key.expires)) {
        throw host.error('invalid_api_key', 'This API key is not known here. Check it, or ask the operator of the gateway for another.')
      }
      return key
    },
  }
}) satisfies PolicyFactory
