import type { Exchange } from '../exchange.js'
import type { Json } from '../json.js'
import type { Runtime, Services } from '../runtime.js'

/** A GET that is answered by the gateway itself: authenticated, not metered, counted against nothing. */
export interface Page {
  readonly name: 'key' | 'models'
  /** The path, or the start of it when it ends with a slash: what follows is given as `rest`, decoded. */
  readonly path: string
  /** The answer's body. Throws GatewayErrors. */
  answer(exchange: Exchange, rest: string, runtime: Runtime, services: Services): Promise<Json>
}
