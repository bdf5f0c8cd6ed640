import { hash } from 'node:crypto'
import type { Policy, PolicyFactory } from '../src/policy.js'

/*
 * auth: who asks? `Authorization: Bearer <key>`, looked up by the key's SHA-256, so that no comparison of secrets can be timed. An unknown, a
 * disabled and an expired key are told the same. Takes no options.
 */

const BEARER = /^Bearer +(\S+) *$/i

export default ((_options, host): Policy => {
  const keys = new Map([...host.keys.values()].map(key => [key.sha256, key]))
  return {
    name: 'auth',
    identify({ headers, at }) {
      const secret = BEARER.exec(headers.authorization ?? '')?.[1]
      if (secret === undefined) {
        throw host.error('missing_api_key', 'There is no API key. Send the header: Authorization: Bearer <key>.')
      }
      const key = keys.get(hash('sha256', secret))
      if (key === undefined || key.disabled || (key.expires !== null && at >= key.expires)) {
        throw host.error('invalid_api_key', 'This API key is not known here. Check it, or ask the operator of the gateway for another.')
      }
      return key
    },
  }
}) satisfies PolicyFactory
