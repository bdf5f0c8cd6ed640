import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { openLedger, type SqliteLedger } from '../../src/ledger/sqlite.js'
import { FRAME, Frames } from '../../src/workers/frames.js'
import { LedgerDoor } from '../../src/workers/ledger-door.js'
import { RemoteLedger } from '../../src/workers/remote-ledger.js'
import { contract } from '../ledger/contract.js'
import { admissionRecord, endingRecord } from '../ledger/figures.js'
import { AT, claim } from '../ledger/script.js'

interface Both {
  readonly remote: RemoteLedger
  readonly door: LedgerDoor
  readonly ledger: SqliteLedger
}

/** A ledger in memory, and a worker's view of it over a socket. */
async function both(t: Test, ledger?: SqliteLedger): Promise<Both> {
  const owned = ledger ?? (await openLedger({ path: ':memory:', durability: 'process', create: true }))
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const accepted = new Promise<Socket>(resolve => server.once('connection', resolve))
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const far = await accepted
  server.close()
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

t.test('the contract, from a worker', async t => contract(t, async t => (await both(t)).remote))

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
  t.equal(remote.failure, null)
  await ledger.close()
  await t.rejects(remote.wallet('acme'), { code: 'ledger_unavailable', status: 503 })
  t.equal(remote.failure, 'the ledger is closed')
  await t.rejects(remote.hold({ id: 'r', at: AT, claims: [], record: admissionRecord() }), { code: 'ledger_unavailable' })
})
