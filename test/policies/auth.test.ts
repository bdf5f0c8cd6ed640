import { createHash } from 'node:crypto'
import t from 'tap'
import auth from '../../policies/auth.js'
import type { Key } from '../../src/config/config.js'
import { AT, asked, host, keyOf } from '../support/exchanges.js'

const sha256 = (secret: string) => createHash('sha256').update(secret).digest('hex')
const KEYS = [
  keyOf({ name: 'a', sha256: sha256('mgk_a') }),
  keyOf({ name: 'disabled', sha256: sha256('mgk_disabled'), disabled: true }),
  keyOf({ name: 'expired', sha256: sha256('mgk_expired'), expires: AT }),
  keyOf({ name: 'expiring', sha256: sha256('mgk_expiring'), expires: AT + 1 }),
]

/** The key's name, or the refusal: code, status and words. */
function asks(authorization: string | undefined): string | [string, number, string] {
  try {
    const key = auth({} as never, host(KEYS)).identify?.(asked({ headers: authorization === undefined ? {} : { authorization } }))
    return (key as Key).name
  } catch (error) {
    const { code, status, message } = error as { code: string; status: number; message: string }
    return [code, status, message]
  }
}

t.test('a key is known by its secret', async t => {
  for (const header of ['Bearer mgk_a', 'bearer mgk_a', 'BEARER   mgk_a  ']) t.equal(asks(header), 'a', header)
  t.equal(asks('Bearer mgk_expiring'), 'expiring', 'until the moment of its end')
})

t.test('a key that is remembered ends when it ends, and however its header is written it is one key', async t => {
  const policy = auth({} as never, host(KEYS))
  const ask = (at: number, spaces = 1) =>
    policy.identify?.(asked({ at, headers: { authorization: `Bearer${' '.repeat(spaces)}mgk_expiring` } }))
  for (let i = 1; i <= 3000; i++) if ((ask(AT, i) as Key | undefined)?.name !== 'expiring') t.fail(`${i} spaces`)
  t.match(ask(AT), { name: 'expiring' })
  t.throws(() => ask(AT + 1), { code: 'invalid_api_key' })
})

t.test('without a bearer token there is no key', async t => {
  const missing = ['missing_api_key', 401, 'There is no API key. Send the header: Authorization: Bearer <key>.']
  for (const header of [undefined, '', 'Bearer', 'Bearer ', 'mgk_a', 'Basic bWdrX2E=', 'Bearer mgk_a mgk_b', 'Bearermgk_a'])
    t.strictSame(asks(header), missing, String(header))
})

t.test('an unknown, a disabled and an expired key are told the very same', async t => {
  const invalid = ['invalid_api_key', 401, 'This API key is not known here. Check it, or ask the operator of the gateway for another.']
  for (const secret of ['mgk_b', 'mgk_disabled', 'mgk_expired', sha256('mgk_a'), 'MGK_A', '__proto__', 'x'.repeat(10_000)]) {
    t.strictSame(asks(`Bearer ${secret}`), invalid, secret.slice(0, 40))
  }
})

t.test('how long a wrong key takes says nothing of how much of it is right', async t => {
  const right = `mgk_${'k'.repeat(39)}`
  const policy = auth({} as never, host([keyOf({ name: 'a', sha256: sha256(right) })]))
  // It is remembered from here on.
  t.match(policy.identify?.(asked({ headers: { authorization: `Bearer ${right}` } })), { name: 'a' })
  const kinds = { near: `${right.slice(0, -1)}x`, far: `x${right.slice(1)}` }
  const fields = { near: Buffer.from(`Bearer ${kinds.near}`), far: Buffer.from(`Bearer ${kinds.far}`) }
  let times = { near: [] as number[], far: [] as number[] }
  const ask = (kind: keyof typeof kinds): void => {
    // As it comes from a socket: new each time, and in one piece. To put it together first takes a time that depends on its parts.
    const exchange = asked({ headers: { authorization: fields[kind].toString('latin1') } })
    const from = process.hrtime.bigint()
    try {
      policy.identify?.(exchange)
    } catch {
      // Refused, as it should be.
    }
    times[kind].push(Number(process.hrtime.bigint() - from))
  }
  // What a machine does besides is in both alike: they take turns, at random. What is there to be seen is seen each time that one looks.
  const looks = Array.from({ length: 3 }, () => {
    times = { near: [], far: [] }
    for (let i = 0; i < 20_000; i++) ask(Math.random() < 0.5 ? 'near' : 'far')
    return Math.abs(welch(middle(times.near.slice(1_000)), middle(times.far.slice(1_000))))
  })
  t.comment(`60,000 tries, t = ${looks.map(z => z.toFixed(2)).join(', ')}`)
  t.ok(Math.min(...looks) < 5, `t = ${looks}`)
  // The comparison that it must not be: byte by byte, it shows at once.
  const slow = (kind: keyof typeof kinds): number => {
    const given = kinds[kind]
    const from = process.hrtime.bigint()
    for (let n = 0; n < 50; n++) for (let i = 0; i < right.length && right.charCodeAt(i) === given.charCodeAt(i); i++);
    return Number(process.hrtime.bigint() - from)
  }
  const shown = { near: [] as number[], far: [] as number[] }
  for (let i = 0; i < 4_000; i++) for (const kind of ['near', 'far'] as const) shown[kind].push(slow(kind))
  t.ok(Math.abs(welch(middle(shown.near), middle(shown.far))) > 5, 'this test sees a difference where there is one')
})

/** Without the tenth that took longest: a collection of garbage, another process. */
function middle(times: readonly number[]): number[] {
  return [...times].sort((a, b) => a - b).slice(0, Math.floor(times.length * 0.9))
}

/** Welch's t: beyond 4.5, two sets of times differ by more than chance. */
function welch(a: readonly number[], b: readonly number[]): number {
  const mean = (of: readonly number[]): number => of.reduce((all, one) => all + one, 0) / of.length
  const variance = (of: readonly number[], at: number): number => of.reduce((all, one) => all + (one - at) ** 2, 0) / (of.length - 1)
  const [ma, mb] = [mean(a), mean(b)]
  return (ma - mb) / Math.sqrt(variance(a, ma) / a.length + variance(b, mb) / b.length)
}
