import t, { type Test } from 'tap'
import type { Ledger } from '../../src/ledger/ledger.js'
import { openLedger, type SqliteLedger } from '../../src/ledger/sqlite.js'
import { readAnswers } from '../../src/workers/answers.js'
import { FRAME, Frames } from '../../src/workers/frames.js'
import { LedgerDoor } from '../../src/workers/ledger-door.js'
import { OperationWriter } from '../../src/workers/operations.js'
import { RemoteLedger } from '../../src/workers/remote-ledger.js'
import { contract } from '../ledger/contract.js'
import { admissionRecord, endingRecord } from '../ledger/figures.js'
import { AT, claim } from '../ledger/script.js'
import { socketPair } from '../support/socket-pair.js'

interface Both {
  readonly remote: RemoteLedger
  readonly door: LedgerDoor
  readonly ledger: SqliteLedger
}

/** A ledger in memory, and a worker's view of it over a socket. */
async function both(t: Test, ledger?: SqliteLedger): Promise<Both> {
  const owned = ledger ?? (await openLedger({ path: ':memory:', durability: 'process', create: true }))
  const [near, far] = await socketPair()
  const owner = new Frames(far, (_kind, payload) => door.asked(payload.toString('utf8')))
  const door = new LedgerDoor(owned, text => owner.text(FRAME.answers, text))
  const worker = new Frames(near, (_kind, payload) => remote.answered(payload.toString('utf8')))
  const remote = new RemoteLedger(text => worker.text(FRAME.operations, text))
  t.teardown(async () => {
    near.destroy()
    far.destroy()
    if (ledger === undefined) await owned.close()
  })
  return { remote, door, ledger: owned }
}

/** Requests ask the worker's; all else is asked of the owner's. */
function together({ remote, ledger }: Both): Ledger {
  return {
    hold: hold => remote.hold(hold),
    settle: (id, settlement) => remote.settle(id, settlement),
    void: (id, record) => remote.void(id, record),
    read: counters => remote.read(counters),
    wallet: account => remote.wallet(account),
    credit: credit => ledger.credit(credit),
    open: () => ledger.open(),
    records: query => ledger.records(query),
    verify: () => ledger.verify(),
    recover: at => ledger.recover(at),
    get failure() {
      return ledger.failure
    },
    close: async () => {
      await remote.close()
      await ledger.close()
    },
  }
}

t.test('the contract, where a worker asks for what requests need', async t => contract(t, async t => together(await both(t))))

t.test('a worker is given what requests need, and nothing else of the ledger', async t => {
  const { ledger } = await both(t)
  await ledger.hold({ id: 'r1', at: AT, claims: [], record: admissionRecord() })
  const writer = new OperationWriter()
  const others = ['recover', 'credit', 'records', 'close', 'constructor'] as const
  for (const [place, name] of others.entries()) writer.call(place, name as never, [AT])
  const answered = await new Promise<string>(resolve => new LedgerDoor(ledger, resolve).asked(writer.take()))
  t.match(
    readAnswers(answered),
    others.map((name, place) => ({ place, kind: 'error', error: { message: `a worker can not ask for ${name}` } })),
  )
  t.equal((await ledger.open()).length, 1)
  t.equal(ledger.failure, null)
})

t.test('a worker that is gone: what it left open is released, and what others hold stays', async t => {
  const first = await both(t)
  const second = await both(t, first.ledger)
  const hold = (id: string) => ({
    id,
    at: AT,
    claims: [claim('requests/a/day@0=1<=10:counted'), claim('tokens/a/day@0=5')],
    record: admissionRecord(),
  })
  for (const id of ['r1', 'r2', 'r3']) await first.remote.hold(hold(id))
  await second.remote.hold(hold('s1'))
  await first.remote.settle('r1', { state: 'settled', actual: { tokens: 2n }, record: endingRecord() })
  await first.remote.void('r2', endingRecord())
  // On its way when it dies.
  const last = first.ledger.read([claim('tokens/a/day@0=5').counter])
  void first.remote.hold(hold('r4'))
  await last
  await new Promise(resolve => setTimeout(resolve, 50))
  const left = await first.door.gone(AT + 5)
  t.strictSame(
    left.map(({ id }) => id),
    ['r3', 'r4'],
  )
  t.strictSame(await first.door.gone(AT + 6), [], 'once')
  t.strictSame(
    (await first.ledger.open()).map(({ id }) => id),
    ['s1'],
  )
  const states = (await first.ledger.records({})).map(({ id, state, ended_by }) => [id, state, ended_by])
  t.strictSame(states, [
    ['r1', 'settled', 'provider'],
    ['r2', 'voided', 'provider'],
    ['r3', 'recovered', 'recovery'],
    ['r4', 'recovered', 'recovery'],
    ['s1', 'held', null],
  ])
  t.equal(await second.remote.void('s1', endingRecord()), 'ended')
  t.strictSame(await first.ledger.verify(), [])
})

t.test('two workers under one ceiling: together they are admitted as often as it allows', async t => {
  const first = await both(t)
  const second = await both(t, first.ledger)
  const ask = ({ remote }: Both, id: string) =>
    remote.hold({ id, at: AT, claims: [claim('requests/a/day@0=1<=100:counted')], record: admissionRecord() })
  const all = await Promise.all(Array.from({ length: 300 }, (_, i) => ask(i % 2 ? first : second, `r${i}`)))
  t.equal(all.filter(({ admitted }) => admitted).length, 100)
  t.strictSame(await first.ledger.verify(), [])
})

t.test('a ledger that has failed is one for all of its workers, with why', async t => {
  const { remote, ledger } = await both(t)
  await ledger.close()
  const failed = { code: 'ledger_unavailable', status: 503, cause: { message: 'the ledger is closed' } }
  await t.rejects(remote.wallet('acme'), failed)
  await t.rejects(remote.hold({ id: 'r', at: AT, claims: [], record: admissionRecord() }), failed)
})
