import { GatewayError, isGatewayError } from '../errors.js'
import type { JsonObject } from '../json.js'
import { bounded } from '../upstream/bounded.js'
import { ProviderFailure } from '../upstream/providers/provider.js'
import { ErrorEvent } from '../upstream/stream.js'
import type { Thrown } from './messages.js'

/** An error, for another thread. Of a provider's own, what is read of it. */
export function packed(error: unknown): Thrown {
  if (error instanceof ErrorEvent) return { kind: 'event', body: bounded(error.body) as JsonObject }
  if (error instanceof ProviderFailure) return { kind: 'failure', failure: error.failure }
  if (!isGatewayError(error)) return { kind: 'fault', stack: (error as Error).stack ?? String(error) }
  const { code, message, status, type, param, shouldRetry, origin } = error
  return { kind: 'error', code, message, options: { status, type, param, origin, ...(shouldRetry === undefined ? {} : { shouldRetry }) } }
}

/** The same error again. */
export function unpacked(thrown: Thrown): Error {
  if (thrown.kind === 'error') return new GatewayError(thrown.code, thrown.message, thrown.options)
  if (thrown.kind === 'failure') return new ProviderFailure(thrown.failure)
  if (thrown.kind === 'event') return new ErrorEvent(thrown.body)
  return new Error(`the thread for large bodies failed: ${thrown.stack}`)
}
