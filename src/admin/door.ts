import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

/*
 * Who may come in. A browser takes any page's requests to any address, with that page's script reading the answers where a name of its own
 * can be made to point here: so a Host that is a name of somebody else's is refused, and an Origin that is not our own.
 */

/** Why a request may not come in, whatever its token: what its header says of where it comes from. `null`: nothing is wrong. `own`: the host of the listener's address. */
export function objection({ headers }: IncomingMessage, own: string): string | null {
  const { host, origin } = headers
  if (host === undefined || !isOurs(host, own)) return 'this Host is not served: use an IP address, localhost, or the name in `admin`'
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) return 'requests of other origins are not served'
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'requests of other sites are not served'
  return null
}

/** An address can not be made to point elsewhere, and neither can localhost; the port may be another, behind a forwarded one. */
function isOurs(host: string, own: string): boolean {
  const [, name] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?$/i.exec(host) ?? []
  if (name === undefined) return false
  const bare = name.replace(/^\[|\]$/g, '').toLowerCase()
  return isIP(bare) !== 0 || bare === 'localhost' || bare.endsWith('.localhost') || bare === own.toLowerCase()
}

const BEARER = /^Bearer +(\S+) *$/i

/** Does it bring the token? Takes the same time whatever is wrong with it. */
export function opens({ headers }: IncomingMessage, token: string): boolean {
  const given = BEARER.exec(headers.authorization ?? '')?.[1] ?? ''
  return timingSafeEqual(digest(given), digest(token))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
