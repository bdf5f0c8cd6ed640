/*
 * Runs test files again and again in one process, each time with another mutant switched on: to start Node and the test runner anew for each
 * would take most of the time. Told what to do by run.ts, over the channel between processes.
 */
import t from 'tap'

interface Order {
  /** -1: none, and what the tests reach is told. */
  readonly mutant: number
  readonly file: string
}

let active = -1
let reached = new Set<number>()
let runs = 0

;(globalThis as { mutation?: (id: number) => boolean }).mutation = id => {
  if (active === -1) reached.add(id)
  return id === active
}
process.on('unhandledRejection', () => process.exit(3))

process.on('message', async ({ mutant, file }: Order) => {
  active = mutant
  reached = new Set()
  const before = t.counts.fail
  try {
    await import(`${file}?run=${++runs}`)
    // Its tests wait in a row: when this one has run, they have.
    await t.test('the end of a file', async () => {})
    process.send?.({ passed: t.counts.fail === before, reached: [...reached] })
  } catch {
    process.send?.({ passed: false, reached: [] })
  }
})
// The test runner does not wait for the channel, and would end with its first tests.
setInterval(() => {}, 60_000)
process.on('disconnect', () => process.exit(0))
