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
