import type { Key, Model } from './config/config.js'
import type { Body } from './endpoints/endpoint.js'
import type { GatewayError } from './errors.js'
import type { Arrived, Asked, Ended, Held } from './exchange.js'
import { checkField } from './field.js'
import type { Claim } from './ledger/ledger.js'
import type { HeaderFields, MaybePromise, Observation, Outcome, Policy } from './policy.js'

/** What went wrong in a hook whose failure must change nothing. */
export type HookFault = (policy: string, hook: string, error: unknown) => void

type Having<Hook extends keyof Policy> = Policy & Required<Pick<Policy, Hook>>

/** The policies of a config, each hook's in a list of its own: a hook that nobody has costs nothing. Runs them in order, and joins what they return. */
export class Chain {
  readonly #policies: readonly Policy[]
  readonly #fault: HookFault
  readonly #identify: readonly Having<'identify'>[]
  readonly #amend: readonly Having<'amend'>[]
  readonly #admit: readonly Having<'admit'>[]
  readonly #forward: readonly Having<'forward'>[]
  readonly #observe: readonly Having<'observe'>[]
  readonly #respond: readonly Having<'respond'>[]
  readonly #finish: readonly Having<'finish'>[]
  /** Which policy claims with a code, as far as it has been seen while it was kept. `null`: it is not kept. */
  authors: Map<string, string> | null = null

  constructor(policies: readonly Policy[], fault: HookFault) {
    this.#policies = policies
    this.#fault = fault
    this.#identify = having(policies, 'identify')
    this.#amend = having(policies, 'amend')
    this.#admit = having(policies, 'admit')
    this.#forward = having(policies, 'forward')
    this.#observe = having(policies, 'observe')
    this.#respond = having(policies, 'respond')
    this.#finish = having(policies, 'finish').reverse()
  }

  /** Does any policy want to see what passes, or to change what comes? */
  get observes(): boolean {
    return this.#observe.length > 0
  }

  get amends(): boolean {
    return this.#amend.length > 0
  }

  /** The codes that its policies call their own. */
  get codes(): ReadonlySet<string> {
    return new Set(this.#policies.flatMap(({ codes = [] }) => codes))
  }

  /** The first key that a policy returns. */
  identify(exchange: Arrived): MaybePromise<Key | undefined> {
    return first(this.#identify, 0, policy => policy.identify(exchange))
  }

  async amend(body: Body, exchange: Arrived): Promise<Body> {
    let amended = body
    for (const policy of this.#amend) amended = (await policy.amend(amended, exchange)) ?? amended
    return amended
  }

  /** All claims, in order. Synchronous as long as the policies are. */
  admit(exchange: Asked): MaybePromise<readonly Claim[]> {
    const claims: Claim[] = []
    for (let i = 0; i < this.#admit.length; i++) {
      const policy = this.#admit[i] as Having<'admit'>
      const claimed = policy.admit(exchange)
      if (claimed instanceof Promise) return this.#admitRest(exchange, claims, claimed, i)
      for (const claim of claimed ?? []) claims.push(claim)
      if (this.authors !== null) this.#author(policy, claimed)
    }
    return claims
  }

  async #admitRest(
    exchange: Asked,
    claims: Claim[],
    pending: Promise<readonly Claim[] | undefined>,
    at: number,
  ): Promise<readonly Claim[]> {
    for (let i = at; i < this.#admit.length; i++) {
      const policy = this.#admit[i] as Having<'admit'>
      const claimed = await (i === at ? pending : policy.admit(exchange))
      claims.push(...(claimed ?? []))
      this.#author(policy, claimed)
    }
    return claims
  }

  #author({ name }: Policy, claims: readonly Claim[] | undefined): void {
    if (this.authors !== null) for (const { code } of claims ?? []) this.authors.set(code, name)
  }

  /** By their names in small letters. Throws what a policy throws, and where a field could not be sent. */
  async forward(exchange: Held, target: Model): Promise<HeaderFields> {
    const fields: Record<string, string> = {}
    for (const policy of this.#forward) add(fields, await policy.forward(exchange, target))
    return fields
  }

  get forwards(): boolean {
    return this.#forward.length > 0
  }

  /** Throws what a policy throws: the answer is cut off. One that promises, against its contract, is too late for that. */
  observe(exchange: Held, seen: Observation): void {
    for (const policy of this.#observe) {
      const promised: unknown = policy.observe(exchange, seen)
      if (promised instanceof Promise) promised.catch(fault => this.#fault(policy.name, 'observe', fault))
    }
  }

  /** Never rejects: a fault, and a field that could not be sent, is reported and changes nothing. */
  respond(exchange: Ended, error?: GatewayError): MaybePromise<Record<string, string>> {
    const fields: Record<string, string> = {}
    for (let i = 0; i < this.#respond.length; i++) {
      const policy = this.#respond[i] as Having<'respond'>
      try {
        const given = policy.respond(exchange, error)
        if (given instanceof Promise) return this.#respondRest(exchange, error, fields, given, i)
        add(fields, given)
      } catch (fault) {
        this.#fault(policy.name, 'respond', fault)
      }
    }
    return fields
  }

  async #respondRest(
    exchange: Ended,
    error: GatewayError | undefined,
    fields: Record<string, string>,
    pending: Promise<HeaderFields | undefined>,
    at: number,
  ): Promise<Record<string, string>> {
    for (let i = at; i < this.#respond.length; i++) {
      const policy = this.#respond[i] as Having<'respond'>
      try {
        add(fields, await (i === at ? pending : policy.respond(exchange, error)))
      } catch (fault) {
        this.#fault(policy.name, 'respond', fault)
      }
    }
    return fields
  }

  /** Every policy's, in reverse order, whatever the others do. Never rejects. */
  finish(exchange: Ended, outcome: Outcome): MaybePromise<void> {
    if (this.#finish.length > 0) return this.#finishAll(exchange, outcome)
  }

  async #finishAll(exchange: Ended, outcome: Outcome): Promise<void> {
    for (const policy of this.#finish) {
      try {
        await policy.finish(exchange, outcome)
      } catch (fault) {
        this.#fault(policy.name, 'finish', fault)
      }
    }
  }

  async close(): Promise<void> {
    for (const policy of this.#policies) {
      try {
        await policy.close?.()
      } catch (fault) {
        this.#fault(policy.name, 'close', fault)
      }
    }
  }
}

function having<Hook extends keyof Policy>(policies: readonly Policy[], hook: Hook): Having<Hook>[] {
  return policies.filter((policy): policy is Having<Hook> => policy[hook] !== undefined)
}

/** All that a policy gives, or nothing of it. */
function add(fields: Record<string, string>, given: HeaderFields | undefined): void {
  for (const name in given) checkField(name, given[name])
  for (const name in given) fields[name.toLowerCase()] = given[name] as string
}

function first(
  policies: readonly Having<'identify'>[],
  from: number,
  ask: (policy: Having<'identify'>) => MaybePromise<Key | undefined>,
): MaybePromise<Key | undefined> {
  for (let i = from; i < policies.length; i++) {
    const key = ask(policies[i] as Having<'identify'>)
    if (key instanceof Promise) return key.then(found => found ?? first(policies, i + 1, ask))
    if (key) return key
  }
  return undefined
}
