/* A process that has a ledger, for tests that refuse it one, kill it, or take its disk away. */
import { writeSync } from 'node:fs'
import { copyLedger } from '../../src/control/copy.js'
import { requestIds, ulids } from '../../src/ids.js'
import { openLedger } from '../../src/ledger/sqlite.js'
import { windows } from '../../src/ledger/windows.js'
import { admissionRecord, endingRecord } from './figures.js'
import { claim } from './script.js'

const [, , verb = '', path = '', durability = 'process'] = process.argv
const newId = requestIds(ulids())
const find = windows('UTC', 'gregorian')
const DAY = 86_400_000
const say = (value: unknown) => write(`${typeof value === 'string' ? value : JSON.stringify(value)}\n`)

/** Waits for a reader that is behind: a pipe may be set so that it does not wait by itself. */
function write(text: string): void {
  for (let rest = Buffer.from(text); rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}
const hold = (id: string, at = Date.now()) => ({
  id,
  at,
  claims: [claim('tokens/a/day@0=5'), claim('requests/a/day@0=1:counted')],
  record: admissionRecord(),
})

if (verb === 'open' || verb === 'open-as-nobody') {
  if (verb === 'open-as-nobody') process.setuid?.(65534)
  try {
    const ledger = await openLedger({ path, durability: 'process', create: true })
    await ledger.close()
    say({ opened: true })
  } catch (error) {
    say({ error: (error as Error).message })
  }
} else if (verb === 'work') {
  const ledger = await openLedger({ path, durability: durability === 'power' ? 'power' : 'process', create: true })
  const one = async () => {
    for (;;) {
      const id = newId(Date.now())
      await ledger.hold(hold(id))
      say(`held ${id}`)
      await ledger.settle(id, { state: 'settled', actual: { tokens: 3n }, record: endingRecord() })
      say(`settled ${id}`)
    }
  }
  // One that is open whenever the kill comes.
  const left = newId(Date.now())
  await ledger.hold(hold(left))
  say(`held ${left}`)
  await Promise.all(Array.from({ length: 64 }, one))
} else if (verb === 'cycles') {
  // Work, pruning of half of it, a backup, and a new start, over and over; what it is at is said before it begins.
  const dayOf = (at: number) => find('day', at)
  for (let cycle = 0; ; cycle++) {
    say('at opening')
    const ledger = await openLedger({ path, durability: 'power', create: true })
    await ledger.recover(Date.now())
    say('at work')
    await Promise.all(
      Array.from({ length: 12 }, async (_, i) => {
        const at = Date.now() - (i % 2) * DAY
        const id = newId(at)
        await ledger.hold(hold(id, at))
        say(`held ${id}`)
        await ledger.settle(id, { state: 'settled', actual: { tokens: 3n }, record: endingRecord() })
        say(`settled ${id}`)
      }),
    )
    say('at pruning')
    for (let from: string | null = ''; from !== null; ) {
      const { next }: { next: string | null } = await ledger.prune({ before: dayOf(Date.now()).start, dayOf, from })
      from = next
    }
    say('at backup')
    const copy = `${path}.${process.pid}-${cycle}.copy`
    await copyLedger(ledger, copy)
    say(`copied ${copy}`)
    say('at closing')
    await ledger.close()
  }
} else if (verb === 'fill') {
  const ledger = await openLedger({ path, durability: 'process', create: true })
  const admitted: string[] = []
  const rejections: string[] = []
  while (ledger.failure === null) {
    const ids = Array.from({ length: 20 }, () => newId(Date.now()))
    const answers = await Promise.allSettled(ids.map(id => ledger.hold(hold(id))))
    for (const [i, answer] of answers.entries()) {
      if (answer.status === 'fulfilled') admitted.push(ids[i] as string)
      else rejections.push(answer.reason.code)
    }
  }
  const last = await ledger.open().catch(error => error.code)
  say({ admitted, rejections, failure: ledger.failure, last })
  await ledger.close()
}
