import fc from 'fast-check'
import t from 'tap'
import { type Finding, Health, type Report } from '../../src/upstream/health.js'
import type { Trouble } from '../../src/upstream/trouble.js'

const SETTINGS = { failures: 3, ejection: 1000 }
const PATIENT = { name: 'up/m', provider: 'up', settings: SETTINGS }
const DOWN: Trouble = { against: 'firm', passing: false }
const FAINT: Trouble = { against: 'faint', passing: false }
const limit = (waitS: number): Trouble => ({ against: 'limit', passing: true, waitS })

function watched() {
  const reports: Report[] = []
  const health = new Health(report => reports.push(report))
  const visit = (finding: Finding, at: number) => health.enter(PATIENT, at).leave(finding, at)
  return { reports, health, visit, condition: (at: number) => health.condition('up/m', at) }
}

t.test('so many failures in a row put a target out; after a time one request tries it', async t => {
  const { reports, health, visit, condition } = watched()
  visit(DOWN, 0)
  visit(DOWN, 0)
  t.equal(condition(0), 'up')
  visit(DOWN, 0)
  t.equal(condition(999), 'out')
  t.equal(health.waitMs('up/m', 400), 600)
  t.equal(condition(1000), 'probe')
  const probe = health.enter(PATIENT, 1000)
  t.equal(condition(1000), 'out', 'one at a time')
  probe.leave(DOWN, 1500)
  t.equal(condition(3499), 'out', 'twice the time')
  t.equal(condition(3500), 'probe')
  const second = health.enter(PATIENT, 3500)
  second.leave(null, 3600)
  t.equal(condition(3600), 'probe', 'a client that left says nothing: another one tries it')
  health.enter(PATIENT, 3600).leave('well', 3700)
  t.equal(condition(3700), 'up')
  t.strictSame(
    reports.map(({ up, failures, waitMs }) => ({ up, failures, waitMs })),
    [
      { up: false, failures: 3, waitMs: 1000 },
      { up: true, failures: 0, waitMs: 0 },
    ],
    'what changes is told once',
  )
})

t.test('an answer in between begins the row anew', async t => {
  const { visit, condition } = watched()
  for (let i = 0; i < 10; i++) for (const finding of [DOWN, DOWN, 'well'] as const) visit(finding, i)
  t.equal(condition(10), 'up')
})

t.test('requests that were under way when it went out make it no longer', async t => {
  const { health, condition } = watched()
  const visits = Array.from({ length: 20 }, () => health.enter(PATIENT, 0))
  for (const visit of visits) visit.leave(DOWN, 100)
  t.equal(condition(1099), 'out')
  t.equal(condition(1100), 'probe')
})

t.test('failures that may be the requests own fault leave it in doubt', async t => {
  const { visit, condition } = watched()
  for (let i = 0; i < 3; i++) visit(FAINT, 0)
  t.equal(condition(0), 'doubtful')
  visit('well', 1)
  t.equal(condition(1), 'up', 'it may be asked when nobody else is left, and that counts')
})

t.test('a rate limit puts it out at once, for as long as it says, and no longer than an hour', async t => {
  const { health, visit, condition } = watched()
  visit(limit(7), 0)
  t.equal(condition(6999), 'out')
  t.ok(health.limited('up/m'))
  visit(limit(2), 0)
  t.equal(condition(6999), 'out', 'the longest counts')
  t.equal(condition(7000), 'probe')
  const far = watched()
  far.visit(limit(86_400), 0)
  t.equal(far.health.waitMs('up/m', 0), 3_600_000)
  const unsaid = watched()
  for (let i = 0; i < 10; i++) unsaid.visit({ against: 'limit', passing: true }, 0)
  t.equal(unsaid.condition(0), 'up', 'without a time there is nothing to obey')
})

t.test('without settings it is never left alone; what is no more is forgotten', async t => {
  const { health } = watched()
  for (let i = 0; i < 100; i++) health.enter({ ...PATIENT, settings: null }, 0).leave(limit(5), 0)
  t.equal(health.condition('up/m', 0), 'up')
  t.equal(health.reports(0).length, 1)
  health.keep(new Set())
  t.strictSame(health.reports(0), [])
})

t.test('whatever happens, it comes back: never out for longer than 32 times the first, or what a limit says', async t => {
  const step = fc.record({
    finding: fc.constantFrom<Finding>('well', DOWN, FAINT, null, limit(3)),
    waitMs: fc.integer({ min: 0, max: 5000 }),
    lastsMs: fc.integer({ min: 0, max: 2000 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const { health, condition } = watched()
      let now = 0
      for (const { finding, waitMs, lastsMs } of steps) {
        now += waitMs
        const before = condition(now)
        const visit = health.enter(PATIENT, now)
        if (before === 'probe' && condition(now) === 'probe') return false
        now += lastsMs
        visit.leave(finding, now)
        if (health.waitMs('up/m', now) > 32 * SETTINGS.ejection) return false
        if (finding === 'well' && condition(now) !== 'up') return false
        if (!['up', 'probe'].includes(condition(now + 32 * SETTINGS.ejection))) return false
      }
      return true
    }),
  )
  t.pass('for any order of findings')
})
