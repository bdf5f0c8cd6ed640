import type { Test } from 'tap'
import { accountRial, keyRequests, keyTokens } from '../../src/ledger/counters.js'
import type { Claim, Hold, Ledger } from '../../src/ledger/ledger.js'
import { admissionRecord, endingRecord } from './figures.js'
import { AT, claim, counter, script } from './script.js'

const MAX = BigInt(Number.MAX_SAFE_INTEGER)

/** What every ledger keeps to. `open` gives an empty one, which the test closes. */
export function contract(t: Test, open: (t: Test) => Promise<Ledger>): void {
  const scripted = (name: string, text: string) => {
    t.test(name, async t => script(t, await open(t), text))
  }

  scripted(
    'a hold is pending until it is settled, and counts against the wallet meanwhile',
    `
    hold   r0 acme 1      -> insufficient_balance   # nothing credited
    credit c1 acme 1000   -> credited
    hold   r1 acme 600    -> admitted
    balance acme          -> posted=0 pending=600
    hold   r2 acme 600    -> insufficient_balance   # pending counts
    hold   r3 acme 400    -> admitted               # exactly what is left
    hold   r4 acme 1      -> insufficient_balance
    settle r1 450         -> ended
    balance acme          -> posted=450 pending=400
    hold   r5 acme 150    -> admitted
    verify                -> same
    `,
  )
  scripted(
    'each hold ends once',
    `
    credit c1 acme 1000 -> credited
    hold   r1 acme 600  -> admitted
    settle r1 450       -> ended
    settle r1 450       -> already_ended
    void   r1           -> already_ended
    settle r2 1         -> unknown
    void   r2           -> unknown
    hold   r2 acme 100  -> admitted
    void   r2           -> ended
    void   r2           -> already_ended
    settle r2 100       -> already_ended
    balance acme        -> posted=450 pending=0
    records             -> r1 r2
    records state=held  -> -
    records state=voided -> r2
    verify              -> same
    `,
  )
  scripted(
    'an id is held once: neither while it is held nor after it has ended is it counted again',
    `
    credit c1 acme 1000 -> credited
    hold   r1 acme 600  -> admitted
    hold   r1 acme 100  -> ! hold r1: this id was held before
    balance acme        -> posted=0 pending=600
    settle r1 600       -> ended
    hold   r1 acme 100  -> ! hold r1: this id was held before
    balance acme        -> posted=600 pending=0
    hold   r9 acme 9000 -> insufficient_balance
    hold   r9 acme 10   -> admitted               # a refused hold was never held
    `,
  )
  scripted(
    'a credit counts once, and may be negative',
    `
    credit c1 acme 1000  -> credited
    credit c1 acme 1000  -> already_credited
    credit c1 other 5    -> already_credited
    credit c2 acme -400  -> credited
    hold   r1 acme 601   -> insufficient_balance
    hold   r2 acme 600   -> admitted
    credit c3 acme -1    -> credited              # taken out from under a hold
    hold   r3 acme 0     -> insufficient_balance
    settle r2 600        -> ended
    hold   r4 other 1    -> insufficient_balance
    verify               -> same
    `,
  )
  scripted(
    'all claims or none: the first that does not fit is the refusal, and nothing is left of the others',
    `
    credit c1 acme 1000 -> credited
    hold r1 requests/a/minute@0=1<=10 tokens/a/minute@0=50<=40 acme 5000 -> tokens_minute
    hold r2 requests/a/minute@0=1<=10 acme 5000 tokens/a/minute@0=50<=40 -> insufficient_balance
    read requests/a/minute@0 -> posted=0 pending=0
    balance acme             -> posted=0 pending=0
    open                     -> -
    records                  -> -
    hold r1 requests/a/minute@0=1<=10 tokens/a/minute@0=40<=40 acme 1000 -> admitted
    read tokens/a/minute@0   -> posted=0 pending=40
    `,
  )
  scripted(
    'two claims of one hold on one counter add up, each under its own ceiling',
    `
    hold r1 tokens/a/day@0=6<=10 tokens/a/day@0=5<=10 -> tokens_day
    hold r2 tokens/a/day@0=6<=10 tokens/a/day@0=5<=11 -> admitted
    read tokens/a/day@0      -> posted=0 pending=11
    hold r3 tokens/a/day@0=1<=11 -> tokens_day
    settle r2 tokens=7       -> ended
    read tokens/a/day@0      -> posted=7 pending=0      # what was used, once
    hold r4 tokens/a/day@0=2 tokens/a/day@0=3 -> admitted
    settle r4                -> ended                   # nothing was measured: all that was held
    read tokens/a/day@0      -> posted=12 pending=0
    verify                   -> same
    `,
  )
  scripted(
    'a ceiling of null counts and never refuses; a ceiling of 0 refuses all',
    `
    hold r1 tokens/a/day@0=9000000000000000   -> admitted
    hold r2 tokens/a/day@0=1<=0               -> tokens_day
    read tokens/a/day@0                       -> posted=0 pending=9000000000000000
    hold r3 tokens/b/day@0=0<=0               -> admitted
    hold r4 tokens/b/day@0=1<=0               -> tokens_day
    `,
  )
  scripted(
    'what becomes of a claim: measured, counted, released',
    `
    hold r1 requests/a/minute@0=1:counted tokens/a/minute@0=50 flights/a/all@0=1<=2:released -> admitted
    hold r2 requests/a/minute@0=1:counted tokens/a/minute@0=50 flights/a/all@0=1<=2:released -> admitted
    hold r3 requests/a/minute@0=1:counted tokens/a/minute@0=50 flights/a/all@0=1<=2:released -> flights_all
    settle r1 tokens=20 requests=7 flights=7 -> ended
    void r2                  -> ended
    read requests/a/minute@0 -> posted=2 pending=0
    read tokens/a/minute@0   -> posted=20 pending=0
    read flights/a/all@0     -> posted=0 pending=0
    verify                   -> same
    `,
  )
  scripted(
    'an actual amount above the held one is posted in full, and the next claim sees it',
    `
    credit c1 acme 1000 -> credited
    hold r1 acme 600    -> admitted
    settle r1 1700      -> ended
    balance acme        -> posted=1700 pending=0
    hold r2 acme 0      -> insufficient_balance
    verify              -> same
    `,
  )
  scripted(
    'a claim settles into the window in which it was admitted; a past window keeps what it counted',
    `
    hold r1 requests/a/minute@0=1<=1:counted      -> admitted
    hold r2 requests/a/minute@60000=1<=1:counted  -> admitted
    settle r1                                     -> ended
    hold r3 requests/a/minute@0=1<=1:counted      -> requests_minute
    read requests/a/minute@0                      -> posted=1 pending=0
    read requests/a/minute@60000                  -> posted=0 pending=1
    read requests/a/hour@0                        -> posted=0 pending=0
    `,
  )
  scripted(
    'recovery ends what is open, at no cost; what is counted stays',
    `
    credit c1 acme 1000 -> credited
    hold r2 acme 300 requests/a/day@0=1:counted -> admitted
    hold r1 acme 300 requests/a/day@0=1:counted -> admitted
    hold r3 acme 300 requests/a/day@0=1:counted -> admitted
    settle r3 200        -> ended
    open                 -> r1 r2
    recover              -> r1 r2
    recover              -> -
    balance acme         -> posted=200 pending=0
    read requests/a/day@0 -> posted=3 pending=0
    settle r1 300        -> already_ended
    records state=recovered -> r1 r2
    verify               -> same
    `,
  )

  t.test('readings: of an admission with its own claims, of a refusal without them', async t => {
    const ledger = await open(t)
    await ledger.credit({ id: 'c', account: 'acme', amount: 1000n, note: '', at: AT })
    const requests = claim('requests/a/minute@0=1:counted')
    const wallet: Claim = { counter: accountRial('acme'), amount: 600n, ceiling: 'credits', code: 'insufficient_balance' }
    const hold = (id: string): Hold => ({ id, at: AT, claims: [requests, wallet], record: admissionRecord() })
    t.strictSame(await ledger.hold(hold('r1')), {
      admitted: true,
      readings: [
        { counter: requests.counter, ceiling: null, posted: 0n, pending: 1n },
        { counter: wallet.counter, ceiling: 1000n, posted: 0n, pending: 600n },
      ],
    })
    const full = { counter: wallet.counter, ceiling: 1000n, posted: 0n, pending: 600n }
    t.strictSame(await ledger.hold(hold('r2')), {
      admitted: false,
      refused: wallet,
      reading: full,
      readings: [{ counter: requests.counter, ceiling: null, posted: 0n, pending: 1n }, full],
    })
    t.strictSame(await ledger.wallet('acme'), { account: 'acme', credited: 1000n, posted: 0n, pending: 600n })
    t.strictSame(await ledger.wallet('nobody'), { account: 'nobody', credited: 0n, posted: 0n, pending: 0n })
  })

  t.test('2,000 holds at once under a ceiling of 500: exactly 500 are admitted', async t => {
    const ledger = await open(t)
    const window = { kind: 'minute', start: 0, end: 60_000 } as const
    const claims: Claim[] = [
      { counter: keyRequests('a', window), amount: 1n, ceiling: 500n, code: 'rate_limit_rpm', ends: 'counted' },
      { counter: keyTokens('a', window), amount: 10n, ceiling: null, code: 'rate_limit_tpm' },
    ]
    const ids = Array.from({ length: 2000 }, (_, i) => `r${i}`)
    const admissions = await Promise.all(ids.map(id => ledger.hold({ id, at: AT, claims, record: admissionRecord() })))
    t.strictSame(
      admissions.map(({ admitted }) => admitted),
      ids.map((_, i) => i < 500),
      'in the order in which they came',
    )
    const endings = ids
      .slice(0, 500)
      .map((id, i) =>
        i % 2 ? ledger.void(id, endingRecord()) : ledger.settle(id, { state: 'settled', actual: { tokens: 3n }, record: endingRecord() }),
      )
    t.ok((await Promise.all(endings)).every(ending => ending === 'ended'))
    t.strictSame(
      (await ledger.read(claims.map(({ counter }) => counter))).map(({ posted, pending }) => [posted, pending]),
      [
        [500n, 0n],
        [750n, 0n],
      ],
    )
    t.strictSame(await ledger.verify(), [])
  })

  t.test('usage records: as they were held, and as they ended', async t => {
    const ledger = await open(t)
    const record = admissionRecord({ stream: false, client_request_id: 'mine', plan: null, held_rial: MAX })
    await ledger.hold({ id: 'r1', at: AT, claims: [], record })
    const nothing = Object.fromEntries(Object.keys(endingRecord()).map(name => [name, null]))
    t.strictSame(await ledger.records({}), [{ ...nothing, ...record, id: 'r1', at: AT, state: 'held' }])
    t.strictSame(await ledger.open(), [{ id: 'r1', at: AT, record }])
    const ending = endingRecord({
      provider: 'fallback',
      price: '{"input":2}',
      cost_rial: MAX,
      overrun_rial: 3n,
      ttft_ms: null,
      code: 'upstream_error',
    })
    await ledger.settle('r1', { state: 'partial', actual: {}, record: ending })
    t.strictSame(await ledger.records({}), [{ ...record, ...ending, id: 'r1', at: AT, state: 'partial' }])
  })

  t.test('usage records by key, account, model, state, time; oldest first, no more than asked for', async t => {
    const ledger = await open(t)
    for (let i = 0; i < 10; i++) {
      const record = admissionRecord({ key: i % 2 ? 'a' : null, account: i % 5 ? 'acme' : 'other', model: `m/${i % 3}` })
      await ledger.hold({ id: `r${i}`, at: AT + i, claims: [], record })
      if (i !== 4) await ledger.void(`r${i}`, endingRecord())
    }
    const asked: [Parameters<Ledger['records']>[0], string][] = [
      [{}, '0123456789'],
      [{ key: 'a' }, '13579'],
      [{ account: 'other' }, '05'],
      [{ model: 'm/1' }, '147'],
      [{ state: 'held' }, '4'],
      [{ state: 'voided', model: 'm/1' }, '17'],
      [{ since: AT + 3, until: AT + 7 }, '3456'],
      [{ since: AT + 3, until: AT + 7, limit: 2 }, '34'],
      [{ limit: 0 }, ''],
      [{ until: AT }, ''],
    ]
    for (const [query, found] of asked)
      t.equal((await ledger.records(query)).map(({ id }) => id.slice(1)).join(''), found, JSON.stringify(query))
  })

  t.test('amounts are bigints from 0 to 2^53 - 1, and so are what is held and credited: others are rejected', async t => {
    const ledger = await open(t)
    const counted = counter('tokens/a/day@0')
    const hold = (id: string, amount: unknown) =>
      ledger.hold({
        id,
        at: AT,
        claims: [claim('requests/a/day@0=1'), { counter: counted, amount: amount as bigint, ceiling: null, code: 'x' }],
        record: admissionRecord(),
      })
    for (const amount of [-1n, MAX + 1n, 1, Number.NaN, undefined, '5']) await t.rejects(hold('r', amount), RangeError, String(amount))
    t.equal((await hold('r1', MAX - 5n)).admitted, true)
    await t.rejects(hold('r2', 6n), RangeError)
    const settle = (tokens: bigint) => ledger.settle('r1', { state: 'settled', actual: { tokens }, record: endingRecord() })
    await t.rejects(settle(-1n), RangeError)
    await t.rejects(settle(MAX + 1n), RangeError)
    await script(t, ledger, 'read tokens/a/day@0 -> posted=0 pending=9007199254740986')
    t.equal(await settle(MAX), 'ended')
    t.equal((await hold('r3', 0n)).admitted, true)
    await t.rejects(hold('r4', 1n), RangeError)
    await t.rejects(ledger.credit({ id: 'c', account: 'acme', amount: MAX + 1n, note: '', at: AT }), RangeError)
    await ledger.credit({ id: 'c', account: 'acme', amount: MAX, note: '', at: AT })
    await t.rejects(ledger.credit({ id: 'd', account: 'acme', amount: 1n, note: '', at: AT }), RangeError)
    await script(t, ledger, 'read requests/a/day@0 -> posted=1 pending=1\nverify -> same')
    t.equal(ledger.failure, null)
  })

  t.test('a hold ends whatever its counters have come to: one that is full stays so, and admits nothing more', async t => {
    const ledger = await open(t)
    await script(
      t,
      ledger,
      `
      hold   r1 tokens/a/day@0=1            -> admitted
      hold   r2 tokens/a/day@0=1            -> admitted
      hold   r3 tokens/a/day@0=1            -> admitted
      hold   r4 tokens/a/day@0=1:counted    -> admitted
      settle r1 tokens=${MAX - 3n}          -> ended
      settle r2 tokens=5                    -> ended
      read   tokens/a/day@0                 -> posted=${MAX} pending=2
      settle r3 tokens=${MAX}               -> ended
      void   r4                             -> ended
      read   tokens/a/day@0                 -> posted=${MAX} pending=0
      hold   r5 tokens/a/day@0=1            -> ! hold r5: tokens of key:a would come to more than ${MAX}
      hold   r5 tokens/a/day@0=1 acme 1     -> insufficient_balance   # a ceiling is told first
      verify                                -> same
    `,
    )
    t.strictSame([await ledger.open(), ledger.failure], [[], null])
  })

  t.test('an operation with a value that can not be fails alone, whatever is in its batch', async t => {
    const ledger = await open(t)
    const hold = (id: string, fields: object, counted = 'tokens/a/day@0=1') =>
      ledger.hold({ id, at: AT, claims: [claim(counted)], record: admissionRecord(), ...fields }).then(
        ({ admitted }) => admitted,
        () => 'rejected',
      )
    const broken = (fields: object) => ({ claims: [claim('tokens/a/day@0=1')], record: { ...admissionRecord(), ...fields } })
    const window = (fields: object) => ({
      claims: [{ ...claim('tokens/a/day@0=1'), counter: { ...counter('tokens/a/day@0'), ...fields } }],
    })
    t.strictSame(
      await Promise.all([
        hold('r1', {}),
        hold('r2', { at: 1.5 }),
        hold('r3', { at: Number.NaN }),
        hold('r4', broken({ model: null })),
        hold('r5', broken({ held_tokens: -1 })),
        hold('r6', broken({ held_rial: 1n << 70n })),
        hold('r7', window({ window: { kind: 'day', start: 0.5, end: 9 } })),
        hold('r8', window({ window: { kind: 'week', start: 0, end: 9 } })),
        hold('r9', window({ subject: 'key:\ud800' })),
        hold('s1', {}),
      ]),
      [true, ...Array.from({ length: 8 }, () => 'rejected'), true],
    )
    const settle = (id: string, fields: object) =>
      ledger.settle(id, { state: 'settled', actual: { tokens: 2n }, record: { ...endingRecord(), ...fields } }).catch(() => 'rejected')
    t.strictSame(
      await Promise.all([
        settle('r1', { input_tokens: 1.5 }),
        settle('r1', { ended_by: 'nobody' }),
        settle('s1', {}),
        settle('r1', { cost_rial: -1n }),
      ]),
      ['rejected', 'rejected', 'ended', 'rejected'],
    )
    await script(t, ledger, 'read tokens/a/day@0 -> posted=2 pending=1\nopen -> r1\nverify -> same\nsettle r1 tokens=3 -> ended')
    t.equal(ledger.failure, null)
  })

  t.test('after close everything is rejected as unavailable, and what was under way has come to its end', async t => {
    const ledger = await open(t)
    const under = [ledger.credit({ id: 'c', account: 'acme', amount: 9n, note: '', at: AT }), ledger.wallet('acme')]
    const closed = ledger.close()
    t.strictSame(await Promise.all(under), ['credited', { account: 'acme', credited: 9n, posted: 0n, pending: 0n }])
    await closed
    await ledger.close()
    const after: (() => Promise<unknown>)[] = [
      () => ledger.open(),
      () => ledger.records({}),
      () => ledger.verify(),
      () => ledger.void('r', endingRecord()),
      () => ledger.recover(AT),
    ]
    for (const operation of after) await t.rejects(operation(), { code: 'ledger_unavailable', status: 503 })
    t.equal(ledger.failure, 'the ledger is closed')
  })
}
