import { GatewayError } from '../errors.js'

/** What a ledger rejects with that has failed, or is closed. Its message may reach a client, so it says nothing of files and disks; the cause is for the log. */
export function unavailable(failure: string, cause?: unknown): GatewayError {
  const message = 'The ledger cannot be written, so nothing is admitted. The gateway has to be restarted by its operator.'
  return new GatewayError('ledger_unavailable', message, { cause: new Error(failure, { cause }) })
}
