import { createRequire } from 'node:module'
import type * as undici from 'undici'

/*
 * Of undici what connects and asks, each by its own file. Its entry also reads fetch, caches, mocks, web sockets and what Node has of its own for
 * them: more than half of its time, and a tenth of a start.
 */

const require = createRequire(import.meta.url)
/** What Node says of a file that is not there, or not to be had from outside. */
const ELSEWHERE: ReadonlySet<unknown> = new Set(['MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED'])

export type Client = undici.Client
export const Client = part('Client', 'dispatcher/client.js')
export const buildConnector = part('buildConnector', 'core/connect.js')

/** Where its files lie is undici's own affair: a release that has moved one gives it by its entry, and the start takes longer. */
function part<Name extends 'Client' | 'buildConnector'>(name: Name, file: string): (typeof undici)[Name] {
  try {
    return require(`undici/lib/${file}`)
  } catch (error) {
    if (!ELSEWHERE.has((error as NodeJS.ErrnoException).code)) throw error
    return (require('undici') as typeof undici)[name]
  }
}
