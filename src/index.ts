/** What other packages may rely on: the contracts of policies, and a gateway to run in a process of one's own. */
export type { Key, Model, Plan } from './config/config.js'
export { type ErrorDetails, type ErrorOptions, GatewayError, isGatewayError } from './errors.js'
export type { Arrived, Asked, Ended, Held } from './exchange.js'
export { Gateway, type GatewayOptions } from './gateway.js'
export type { Claim, Counter, Reading } from './ledger/ledger.js'
export type { Window, WindowKind } from './ledger/windows.js'
export type { HeaderFields, Host, Observation, Outcome, Policy, PolicyFactory } from './policy.js'
