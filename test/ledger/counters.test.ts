import { randomUUID } from 'node:crypto'
import t from 'tap'
import { accountOf, accountRial, accountSubject, keyRequests, keyRial, keyTokens } from '../../src/ledger/counters.js'

const WINDOW = { kind: 'day', start: 0, end: 86_400_000 } as const

t.test('counters go by the names of keys and accounts, however many there are', async t => {
  for (let i = 0; i < 10_002; i++) {
    // One that nobody has named before.
    const name = randomUUID()
    for (const time of ['the first time', 'again']) {
      if (keyRequests(name, WINDOW).subject !== `key:${name}`) t.fail(`a key, ${time}`)
      if (accountSubject(name) !== `account:${name}`) t.fail(`an account, ${time}`)
    }
  }
  t.strictSame(
    [keyRequests('a', WINDOW), keyTokens('a', WINDOW), keyRial('a', WINDOW)],
    ['requests', 'tokens', 'rial'].map(meter => ({ meter, subject: 'key:a', window: WINDOW })),
  )
  t.strictSame(accountRial('acme'), {
    meter: 'rial',
    subject: 'account:acme',
    window: { kind: 'all', start: 0, end: Number.POSITIVE_INFINITY },
  })
})

t.test('of an account is what is named so', async t => {
  t.strictSame(['account:acme', 'account:', 'key:acme', 'account'].map(accountOf), ['acme', '', null, null])
})
