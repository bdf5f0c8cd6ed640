import { createRequire } from 'node:module'
import type * as undici from 'undici'

/*
 * Of undici what connects and asks, each by its own file. Its entry also reads fetch, caches, mocks, web sockets and what Node has of its own for
 * them: more than half of its time, and a tenth of a start.
 */

const require = createRequire(import.meta.url)

export type Client = undici.Client
export const Client: typeof undici.Client = require('undici/lib/dispatcher/client.js')
export const buildConnector: typeof undici.buildConnector = require('undici/lib/core/connect.js')
