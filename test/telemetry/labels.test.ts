import t from 'tap'
import { CODES } from '../../src/errors.js'
import { labels, statusLabel } from '../../src/telemetry/labels.js'

const models = new Map([['openai/gpt', {}]])
const known = labels({
  models,
  providers: new Set(['openai']),
  keys: new Set(['app-a']),
  plans: new Set(['free']),
  accounts: new Set(['acme']),
  surfaces: new Set(['chat']),
  codes: new Set(['of_a_policy']),
})

t.test('a name of the config is its own label, any other is other, none is none', async t => {
  for (const label of ['model', 'provider', 'key', 'plan', 'surface', 'code', 'result'] as const) {
    t.equal(known[label]('from a client'), 'other', label)
    t.equal(known[label]('__proto__'), 'other', label)
    t.equal(known[label](null), 'none', label)
  }
  t.strictSame(
    [known.model('openai/gpt'), known.key('app-a'), known.key('anonymous'), known.plan('anonymous')],
    ['openai/gpt', 'app-a', 'anonymous', 'anonymous'],
  )
  t.equal(known.code('of_a_policy'), 'of_a_policy')
  for (const code of CODES.keys()) t.equal(known.code(code), code)
  t.strictSame([known.result('ok'), known.result('aborted'), known.result('of_a_policy')], ['ok', 'aborted', 'other'])
})

t.test('the names are those of the moment', async t => {
  models.set('later/model', {})
  t.equal(known.model('later/model'), 'other')
})

t.test('a series is kept while all names in it are known', async t => {
  t.equal(known.keeps('model', 'openai/gpt'), true)
  t.equal(known.keeps('model', 'gone'), false)
  t.equal(known.keeps('model', 'other'), true)
  t.equal(known.keeps('ending', 'settled'), true, 'labels that the config does not name')
})

t.test('a status of our own is shown as it is, any other by its class', async t => {
  const rows: [number, string][] = [
    [200, '200'],
    [429, '429'],
    [499, '499'],
    [504, '504'],
    [418, '4xx'],
    [599, '5xx'],
    [201, '2xx'],
    [0, 'other'],
    [600, 'other'],
    [Number.NaN, 'other'],
  ]
  for (const [status, label] of rows) t.equal(statusLabel(status), label, String(status))
})
