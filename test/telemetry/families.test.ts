import fc from 'fast-check'
import { Histogram, Registry } from 'prom-client'
import t from 'tap'
import { CounterFamily, HistogramFamily } from '../../src/telemetry/families.js'

const BOUNDS = [0.01, 0.1, 1, 10]

t.test('a histogram of cells shows what a histogram of prom-client would show', async t => {
  const value = fc.oneof(fc.double({ min: 0, max: 20, noNaN: true }), fc.constantFrom(...BOUNDS, 0))
  const holds = fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom('a', 'b"\\\n', ''), value), { minLength: 1 }), async observations => {
    const ours = new Registry()
    const theirs = new Registry()
    const family = new HistogramFamily(ours, 'h', 'help', ['x', 'y'], BOUNDS)
    const histogram = new Histogram({ name: 'h', help: 'help', labelNames: ['x', 'y'], buckets: BOUNDS, registers: [theirs] })
    for (const [x, seen] of observations) {
      family.cell(x, 'y').observe(seen)
      histogram.observe({ x, y: 'y' }, seen)
    }
    t.equal(await ours.metrics(), await theirs.metrics())
  })
  await fc.assert(holds, { numRuns: 50 })
})

t.test('a counter tells prom-client at a scrape what came since the last', async t => {
  const registry = new Registry()
  const family = new CounterFamily(registry, 'c_total', 'help', ['x'])
  const cell = family.cell('a')
  t.match(await registry.metrics(), /^c_total\{x="a"\} 0$/m, 'a series shows from its first use on')
  cell.add(2)
  cell.add(0.5)
  for (const wrong of [-1, Number.NaN, Number.POSITIVE_INFINITY]) cell.add(wrong)
  t.match(await registry.metrics(), /^c_total\{x="a"\} 2\.5$/m)
  t.match(await registry.metrics(), /^c_total\{x="a"\} 2\.5$/m)
  t.equal(family.cell('a'), cell)
})

t.test('a metric without labels shows from the start', async t => {
  const registry = new Registry()
  new CounterFamily(registry, 'c_total', 'help', [])
  new HistogramFamily(registry, 'h', 'help', [], BOUNDS)
  const text = await registry.metrics()
  t.match(text, /^c_total 0$/m)
  t.match(text, /^h_count 0$/m)
})

t.test('series with a value that is not kept are forgotten, before and after a scrape', async t => {
  const registry = new Registry()
  const counter = new CounterFamily(registry, 'c_total', 'help', ['x', 'y'])
  const histogram = new HistogramFamily(registry, 'h', 'help', ['x'], BOUNDS)
  for (const x of ['a', 'b']) {
    counter.cell(x, 'y').add(1)
    histogram.cell(x).observe(1)
  }
  await registry.metrics()
  counter.cell('late', 'y').add(1)
  const keep = (label: string, value: string) => label !== 'x' || value === 'a'
  counter.retain(keep)
  histogram.retain(keep)
  const text = await registry.metrics()
  t.match(text, /^c_total\{x="a",y="y"\} 1$/m)
  t.match(text, /^h_count\{x="a"\} 1$/m)
  t.notMatch(text, /"b"|late/)
  t.equal(counter.cell('b', 'y').value, 0, 'and begin anew when they come back')
})
