import { getHeapSpaceStatistics } from 'node:v8'
import fc from 'fast-check'
import t from 'tap'
import { InFlight } from '../src/in-flight.js'
import { type Held, OpenHolds } from '../src/ledger/open-holds.js'

const RECORD: Held['record'] = {
  key: 'app',
  account: 'acme',
  plan: 'paid',
  surface: 'chat',
  model: 'up/m',
  provider: 'up',
  stream: false,
  client_request_id: null,
  trace_id: null,
  held_tokens: 10,
  held_rial: 0n,
  price: '{}',
}

const commands = fc.array(fc.record({ add: fc.boolean(), which: fc.nat(7) }), { maxLength: 200 })

t.test('what is in flight is what was added and not removed', t => {
  fc.assert(
    fc.property(commands, steps => {
      const things = Array.from({ length: 8 }, () => ({ place: 0 }))
      const all = new InFlight<(typeof things)[number]>()
      const expected = new Set<(typeof things)[number]>()
      for (const { add, which } of steps) {
        const thing = things[which] as (typeof things)[number]
        if (!add) {
          all.remove(thing)
          expected.delete(thing)
        } else if (!expected.has(thing)) {
          all.add(thing)
          expected.add(thing)
        }
      }
      return all.size === expected.size && [...all].every(thing => expected.has(thing))
    }),
  )
  t.end()
})

t.test('open holds are those that came and did not end, in the order of their coming, with their Rial', t => {
  fc.assert(
    fc.property(commands, steps => {
      const open = new OpenHolds()
      const expected = new Map<string, Held>()
      for (const { add, which } of steps) {
        const known = expected.get(`h${which}`)
        if (add && known === undefined) {
          const held = holdOf(`h${which}`, BigInt(which))
          open.add(held)
          expected.set(held.id, held)
        } else if (!add) {
          open.remove(known ?? holdOf(`h${which}`, 1n))
          expected.delete(`h${which}`)
        }
      }
      t.strictSame([...open], [...expected.values()])
      t.equal(
        open.rial,
        [...expected.values()].reduce((sum, { record }) => sum + record.held_rial, 0n),
      )
      t.equal(open.size, expected.size)
      return Array.from({ length: 8 }, (_, i) => `h${i}`).every(id => open.get(id) === expected.get(id))
    }),
    { numRuns: 30 },
  )
  t.end()
})

t.test('what has come and gone is not kept for the next full collection', t => {
  const set = new Set<object>()
  const bySet = grown(
    thing => set.add(thing),
    thing => set.delete(thing),
  )
  // What else is there, and is not collected yet, is not the same each time.
  const least = (measure: () => number) => Math.min(...Array.from({ length: 3 }, measure))
  const byInFlight = least(() => {
    const flying = new InFlight<{ place: number }>()
    return grown(
      thing => flying.add(thing),
      thing => flying.remove(thing),
    )
  })
  const byOpen = least(() => {
    const open = new OpenHolds()
    return grown(
      thing => open.add(thing),
      thing => open.remove(thing),
    )
  })
  const told = `a Set kept ${bySet} bytes, InFlight ${byInFlight}, OpenHolds ${byOpen}`
  t.comment(told)
  // What else a test has in memory grows along, a third of it and more where few collections fall into it.
  t.ok(byInFlight < 0.6 * bySet, told)
  t.ok(byOpen < 0.6 * bySet, told)
  t.end()
})

function holdOf(id: string, rial: bigint): Held {
  return { id, at: 0, record: { ...RECORD, held_rial: rial }, parts: [] }
}

/** By how much the old generation grows when 50,000 things of a kilobyte come and go, 64 of them there at a time. Bytes. */
function grown(add: (thing: Held & { place: number }) => void, remove: (thing: Held & { place: number }) => void): number {
  const there: (Held & { place: number })[] = []
  const before = old()
  for (let i = 0; i < 50_000; i++) {
    const thing = { id: `hold ${i}`, at: i, record: RECORD, parts: [], place: 0, load: new Array(128).fill(i) }
    add(thing)
    const before = there[i % 64]
    if (before !== undefined) remove(before)
    there[i % 64] = thing
  }
  for (const thing of there) remove(thing)
  return old() - before
}

function old(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? Number.NaN
}
