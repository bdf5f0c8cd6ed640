import fc from 'fast-check'
import t from 'tap'
import { parseTraceparent, traces } from '../../src/telemetry/trace.js'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'

t.test('a valid traceparent is read', async t => {
  const rows: [string, number][] = [
    [`00-${TRACE}-${SPAN}-00`, 0],
    [`00-${TRACE}-${SPAN}-01`, 1],
    [`00-${TRACE}-${SPAN}-ff`, 3],
    [`cc-${TRACE}-${SPAN}-01`, 1],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-brings`, 1],
  ]
  for (const [header, flags] of rows) t.strictSame(parseTraceparent(header), { traceId: TRACE, parentId: SPAN, flags }, header)
})

t.test('what is not valid is no parent', async t => {
  const zero = (digits: number) => '0'.repeat(digits)
  const rows = [
    '',
    'nonsense',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${zero(32)}-${SPAN}-01`,
    `00-${TRACE}-${zero(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-0G`,
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01-`,
    `00-${TRACE}-${SPAN}-01 `,
    ` 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01\n`,
    `cc-${TRACE}-${SPAN}-01.more`,
    `0-${TRACE}-${SPAN}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
  ]
  for (const header of rows) t.equal(parseTraceparent(header), null, JSON.stringify(header))
})

t.test('a trace is continued with a span of its own and the defined flags', async t => {
  const trace = traces()
  const first = trace(`00-${TRACE}-${SPAN}-fd`)
  const second = trace(`cc-${TRACE}-${SPAN}-01-x`)
  t.match(first, { traceId: TRACE, continued: true, outgoing: new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`) })
  t.match(second.outgoing, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`))
  t.notMatch(first.outgoing, SPAN)
  t.not(first.outgoing, second.outgoing)
})

t.test('a trace is begun, unsampled, where there is none', async t => {
  const trace = traces()
  const seen = new Set<string>()
  for (let i = 0; i < 2000; i++) {
    const { traceId, outgoing, continued } = trace(i % 2 === 0 ? undefined : 'nonsense')
    t.equal(continued, false)
    t.ok(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`).test(outgoing))
    t.ok(parseTraceparent(outgoing))
    seen.add(traceId)
  }
  t.equal(seen.size, 2000)
})

t.test('an id of zeros alone is never given out', async t => {
  let fills = 0
  const trace = traces(bytes => bytes.fill(fills++ === 0 ? 0 : 0xab))
  t.strictSame(trace(undefined), { traceId: 'ab'.repeat(16), outgoing: `00-${'ab'.repeat(16)}-${'ab'.repeat(8)}-00`, continued: false })
})

t.test('any header gives a valid trace', async t => {
  const trace = traces()
  const header = fc.oneof(fc.string(), fc.stringMatching(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}-?$/))
  const holds = fc.property(header, given => {
    const { traceId, outgoing, continued } = trace(given)
    return parseTraceparent(outgoing)?.traceId === traceId && continued === (parseTraceparent(given) !== null)
  })
  t.doesNotThrow(() => fc.assert(holds))
})
