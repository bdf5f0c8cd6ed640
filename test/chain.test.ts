import t from 'tap'
import { Chain } from '../src/chain.js'
import { GatewayError } from '../src/errors.js'
import type { Claim } from '../src/ledger/ledger.js'
import type { Outcome, Policy } from '../src/policy.js'
import { asked, keyOf, tehran } from './support/exchanges.js'

const EXCHANGE = { ...asked(), readings: [] }
const MODEL = EXCHANGE.model

const claim = (code: string): Claim => ({
  counter: { meter: 'requests', subject: 'key:a', window: tehran('minute', EXCHANGE.at) },
  amount: 1n,
  ceiling: null,
  code,
})

/** A chain, and the faults that were reported of it. */
function chained(...policies: Policy[]) {
  const faults: string[] = []
  const chain = new Chain(policies, (policy, hook, error) => faults.push(`${policy} ${hook}: ${(error as Error).message}`))
  return { chain, faults }
}

/** Each hook in both of its kinds: at once, and by a promise. */
const later = <T>(value: T): Promise<T> => new Promise(resolve => setImmediate(resolve, value))

t.test('identify: the first key that is returned counts, and later policies are not asked', async t => {
  const order: string[] = []
  const policy = (name: string, key: ReturnType<typeof keyOf> | undefined | null, async: boolean): Policy => ({
    name,
    identify() {
      order.push(name)
      return (async ? later(key) : key) as undefined
    },
  })
  for (const async of [false, true]) {
    order.length = 0
    const first = keyOf({ name: 'first' })
    const { chain } = chained(
      policy('none', undefined, async),
      policy('null', null, async),
      policy('b', first, async),
      policy('c', keyOf(), false),
    )
    t.equal(await chain.identify(EXCHANGE), first)
    t.strictSame(order, ['none', 'null', 'b'])
  }
  t.equal(await chained({ name: 'x' }).chain.identify(EXCHANGE), undefined)
  const refusing = chained(
    { name: 'x', identify: () => Promise.reject(new GatewayError('invalid_api_key', '')) },
    policy('y', keyOf(), false),
  )
  await t.rejects(Promise.resolve(refusing.chain.identify(EXCHANGE)), { code: 'invalid_api_key' })
})

t.test('amend: each policy gets what the one before made', async t => {
  const add = (word: string, async: boolean): Policy => ({
    name: word,
    amend: body => (async ? later({ ...body, said: `${body.said ?? ''}${word}` }) : { ...body, said: `${body.said ?? ''}${word}` }),
  })
  const { chain } = chained(add('a', false), { name: 'reads', amend: () => undefined }, add('b', true), { name: 'without' })
  t.ok(chain.amends)
  t.strictSame(await chain.amend({ model: 'm' }, EXCHANGE), { model: 'm', said: 'ab' })
  t.notOk(chained({ name: 'x' }).chain.amends)
})

t.test('admit: the claims in the order of the chain, whoever is quick', async t => {
  const policy = (name: string, async: boolean): Policy => ({
    name,
    admit: () => (async ? later([claim(name), claim(`${name}2`)]) : [claim(name), claim(`${name}2`)]),
  })
  const none: Policy = { name: 'none', admit: () => undefined }
  const nothing = { name: 'null', admit: () => null as unknown as undefined }
  const codes = async (...policies: Policy[]) => (await chained(...policies).chain.admit(EXCHANGE)).map(({ code }) => code)
  t.strictSame(await codes(policy('a', false), none, nothing, policy('b', false)), ['a', 'a2', 'b', 'b2'])
  t.strictSame(await codes(policy('a', true), none, policy('b', false), nothing, policy('c', true)), ['a', 'a2', 'b', 'b2', 'c', 'c2'])
  t.notOk(chained(policy('a', false)).chain.admit(EXCHANGE) instanceof Promise, 'at once where the policies are')
  const reached: string[] = []
  const refusing: Policy = { name: 'no', admit: () => Promise.reject(new GatewayError('busy', '', { status: 429 })) }
  const after: Policy = { name: 'after', admit: () => void reached.push('after') as undefined }
  await t.rejects(Promise.resolve(chained(policy('a', true), refusing, after).chain.admit(EXCHANGE)), { code: 'busy', status: 429 })
  t.strictSame(reached, [], 'nobody is asked after a refusal')
})

t.test('admit: who claims with which code is noted where it is asked for, and nowhere else', async t => {
  for (const async of [false, true]) {
    const policy = (name: string, codes: string[]): Policy => ({
      name,
      admit: () => (async ? later(codes.map(claim)) : codes.map(claim)) as Claim[],
    })
    const { chain } = chained(policy('rate', ['rpm', 'tpm']), { name: 'quiet', admit: () => undefined }, policy('hold', ['balance']))
    t.equal((await chain.admit(EXCHANGE)).length, 3)
    t.equal(chain.authors, null)
    chain.authors = new Map()
    await chain.admit(EXCHANGE)
    t.same(
      [...chain.authors],
      [
        ['rpm', 'rate'],
        ['tpm', 'rate'],
        ['balance', 'hold'],
      ],
    )
  }
})

t.test('forward: fields are joined, the later one wins', async t => {
  const { chain } = chained(
    { name: 'a', forward: () => ({ one: '1', two: '1' }) },
    { name: 'b', forward: () => later({ two: '2' }) },
    { name: 'c', forward: () => undefined },
  )
  t.ok(chain.forwards)
  t.strictSame(await chain.forward(EXCHANGE, MODEL), { one: '1', two: '2' })
  t.notOk(chained({ name: 'x' }).chain.forwards)
})

t.test('observe: each in order; what one throws comes through, and cuts', async t => {
  const seen: string[] = []
  const { chain } = chained(
    { name: 'a', observe: (_exchange, { kind }) => void seen.push(`a ${kind}`) },
    {
      name: 'b',
      observe: (_exchange, { kind }) => {
        if (kind === 'usage') throw new Error('enough')
      },
    },
    { name: 'c', observe: (_exchange, { kind }) => void seen.push(`c ${kind}`) },
  )
  t.ok(chain.observes)
  chain.observe(EXCHANGE, { kind: 'head', status: 200, target: MODEL })
  t.throws(
    () => chain.observe(EXCHANGE, { kind: 'usage', usage: { source: 'none', input: 0, cached: 0, output: 0, reasoning: 0 } }),
    /enough/,
  )
  t.strictSame(seen, ['a head', 'c head', 'a usage'])
})

t.test('respond: a fault is reported, and the fields of the others are there', async t => {
  const { chain, faults } = chained(
    { name: 'a', respond: () => ({ one: '1', two: '1' }) },
    {
      name: 'throws',
      respond: () => {
        throw new Error('x')
      },
    },
    { name: 'b', respond: () => later({ two: '2' }) },
    { name: 'rejects', respond: () => Promise.reject(new Error('y')) },
    {
      name: 'throws late',
      respond: () => {
        throw new Error('z')
      },
    },
    { name: 'c', respond: (_exchange, error) => ({ code: error?.code ?? 'none' }) },
  )
  t.strictSame(await chain.respond(EXCHANGE, new GatewayError('busy', '')), { one: '1', two: '2', code: 'busy' })
  t.strictSame(faults, ['throws respond: x', 'rejects respond: y', 'throws late respond: z'])
  t.strictSame(
    chained({ name: 'a', respond: () => ({ one: '1' }) }).chain.respond(EXCHANGE),
    { one: '1' },
    'at once where the policies are',
  )
})

t.test('finish: every policy, exactly once, in reverse order, whatever the others do', async t => {
  const order: string[] = []
  const outcome: Outcome = { state: 'refused', error: null }
  const policy = (name: string, end: (name: string) => void | Promise<void>): Policy => ({
    name,
    finish(exchange, told) {
      t.equal(exchange, EXCHANGE)
      t.equal(told, outcome)
      order.push(name)
      return end(name)
    },
  })
  const { chain, faults } = chained(
    policy('a', () => {}),
    policy('b', name => {
      throw new Error(name)
    }),
    { name: 'without' },
    policy('c', name => Promise.reject(new Error(name))),
    policy('d', () => later(undefined)),
  )
  await chain.finish(EXCHANGE, outcome)
  t.strictSame(order, ['d', 'c', 'b', 'a'])
  t.strictSame(faults, ['c finish: c', 'b finish: b'])
  t.equal(chained({ name: 'x' }).chain.finish(EXCHANGE, outcome), undefined)
})

t.test('close: every policy, whatever the others do', async t => {
  const order: string[] = []
  const { chain, faults } = chained(
    { name: 'a', close: () => void order.push('a') },
    { name: 'b', close: () => Promise.reject(new Error('b')) },
    { name: 'c' },
    { name: 'd', close: () => later(undefined).then(() => void order.push('d')) },
  )
  await chain.close()
  t.strictSame(order, ['a', 'd'])
  t.strictSame(faults, ['b close: b'])
})

t.test('a policy keeps its `this`', async t => {
  class Counting implements Policy {
    readonly name = 'counting'
    count = 0
    admit(): undefined {
      this.count++
    }
    finish(): void {
      this.count++
    }
  }
  const policy = new Counting()
  const { chain } = chained(policy)
  await chain.admit(EXCHANGE)
  await chain.finish(EXCHANGE, { state: 'answered' })
  t.equal(policy.count, 2)
})

t.test('respond: what could not be sent is reported, with all that the policy gave', async t => {
  const bad: [string, unknown, RegExp][] = [
    ['x-team', 'تیم', /Invalid character in header content/],
    ['x-team', 'a\r\nset-cookie: b', /Invalid character in header content/],
    ['x team', 'a', /valid HTTP token/],
    ['', 'a', /valid HTTP token/],
    ['x-team', 1, /x-team has to be a text, got number/],
    ['x-team', undefined, /x-team has to be a text, got undefined/],
    ['x-team', ['a'], /x-team has to be a text, got object/],
    ['Content-Length', '3', /Content-Length is set by the gateway/],
    ['x-request-id', 'mine', /x-request-id is set by the gateway/],
  ]
  for (const async of [false, true]) {
    for (const [name, value, message] of bad) {
      const fields = { 'x-well': 'a', [name]: value } as Record<string, string>
      const { chain, faults } = chained(
        { name: 'bad', respond: () => (async ? later(fields) : fields) },
        { name: 'good', respond: () => ({ 'X-Good': 'caf\u00e9' }) },
      )
      t.strictSame(await chain.respond(EXCHANGE), { 'x-good': 'caf\u00e9' })
      t.match(faults, [message])
      t.equal(faults.length, 1)
    }
  }
})

t.test('forward: names in small letters, so that none is there twice; what could not be sent is thrown', async t => {
  const { chain } = chained(
    { name: 'a', forward: () => ({ Authorization: 'Bearer a' }) },
    { name: 'b', forward: () => ({ authorization: 'Bearer b' }) },
  )
  t.strictSame(await chain.forward(EXCHANGE, MODEL), { authorization: 'Bearer b' })
  for (const fields of [{ 'x-who': 'کاربر' }, { 'transfer-encoding': 'chunked' }, { host: 'elsewhere' }])
    await t.rejects(chained({ name: 'a', forward: () => later(fields as never) }).chain.forward(EXCHANGE, MODEL), TypeError)
})

t.test('observe: one that rejects is reported, and ends nothing', async t => {
  const observe = (() => Promise.reject(new Error('late'))) as unknown as () => void
  const { chain, faults } = chained({ name: 'slip', observe })
  chain.observe(EXCHANGE, { kind: 'head', status: 200, target: MODEL })
  await later(null)
  t.strictSame(faults, ['slip observe: late'])
})
