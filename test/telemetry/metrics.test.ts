import { spawnSync } from 'node:child_process'
import t from 'tap'
import { CODES } from '../../src/errors.js'
import type { Collected } from '../../src/telemetry/collect.js'
import type { Labels } from '../../src/telemetry/labels.js'
import { createMetrics, type Finished, type Metrics, type MetricsOptions } from '../../src/telemetry/metrics.js'
import { cpuMs } from '../support/cpu.js'

const OPENMETRICS = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'

const LABELS: Labels = {
  models: new Set(['openai/gpt', 'sandbox/echo']),
  providers: new Set(['openai', 'sandbox']),
  keys: new Set(['app-a', 'app-b']),
  plans: new Set(['free']),
  accounts: new Set(['acme']),
  surfaces: new Set(['chat', 'rerank', 'key']),
  codes: new Set(['too_many_concurrent']),
}

const COLLECTED: Collected = {
  holdsOpen: 3,
  heldRial: 12_345n,
  oldestAgeSeconds: 1.5,
  ledgerBytes: 4096,
  walBytes: 512,
  wallets: [
    ['acme', 5_000_000n],
    ['gone', 1n],
  ],
  keyBudgets: [
    ['app-a', 'day', 0.25],
    ['app-a', 'day', 0.75],
    ['app-a', 'day', 0.5],
    ['gone', 'day', 1],
  ],
  corrections: [['openai/gpt', 1.07]],
}

function metrics(over: Partial<MetricsOptions> = {}): Metrics {
  return createMetrics({
    version: '1.2.3',
    node: 'v20.0.0',
    sqlite: '3.50.0',
    labels: LABELS,
    collect: () => COLLECTED,
    failed: error => {
      throw error
    },
    process: false,
    ...over,
  })
}

const FINISHED: Finished = {
  surface: 'chat',
  model: 'openai/gpt',
  provider: 'openai',
  key: 'app-a',
  status: 200,
  stream: true,
  durationMs: 1100,
  ttftMs: 100,
  overheadMs: 0.4,
  usage: { source: 'provider', input: 100, cached: 40, output: 11, reasoning: 5 },
  costRial: 250n,
  overrunRial: 0n,
  ending: 'settled',
  endedBy: 'provider',
  estimatedInput: 120,
}

/** The samples of an exposition, without the name's prefix: `requests_total{surface="chat"}` → 1. */
async function samples(from: Metrics, accept?: string): Promise<Map<string, number>> {
  const { body } = await from.render(accept)
  const found = new Map<string, number>()
  for (const line of body.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const space = line.lastIndexOf(' ')
    found.set(line.slice(0, space).replace('model_gateway_', ''), Number(line.slice(space + 1)))
  }
  return found
}

t.test('a finished exchange is counted in everything that it touched, in base units', async t => {
  const all = metrics()
  all.finished(FINISHED)
  all.finished({ ...FINISHED, overrunRial: 7n, status: 499, endedBy: 'client', ending: 'partial', key: 'app-b' })
  const found = await samples(all)
  const expected: Record<string, number> = {
    'requests_total{surface="chat",model="openai/gpt",status="200"}': 1,
    'requests_total{surface="chat",model="openai/gpt",status="499"}': 1,
    'request_duration_seconds_sum{surface="chat",model="openai/gpt",provider="openai"}': 2.2,
    'request_duration_seconds_bucket{le="0.64",surface="chat",model="openai/gpt",provider="openai"}': 0,
    'request_duration_seconds_bucket{le="1.28",surface="chat",model="openai/gpt",provider="openai"}': 2,
    'request_duration_seconds_bucket{le="+Inf",surface="chat",model="openai/gpt",provider="openai"}': 2,
    'time_to_first_token_seconds_bucket{le="0.1",model="openai/gpt",provider="openai"}': 2,
    'time_to_first_token_seconds_bucket{le="0.08",model="openai/gpt",provider="openai"}': 0,
    'time_per_output_token_seconds_sum{model="openai/gpt",provider="openai"}': 0.2,
    'overhead_seconds_count{surface="chat"}': 2,
    'tokens_total{model="openai/gpt",provider="openai",type="input",source="provider"}': 200,
    'tokens_total{model="openai/gpt",provider="openai",type="cached_input",source="provider"}': 80,
    'tokens_total{model="openai/gpt",provider="openai",type="output",source="provider"}': 22,
    'tokens_total{model="openai/gpt",provider="openai",type="reasoning",source="provider"}': 10,
    'spend_rial_total{model="openai/gpt",provider="openai"}': 500,
    'key_spend_rial_total{key="app-a"}': 250,
    'key_requests_total{key="app-b"}': 1,
    'holds_total{ending="settled"}': 1,
    'holds_total{ending="partial"}': 1,
    'holds_total{ending="voided"}': 0,
    'hold_overrun_rial_total{model="openai/gpt"}': 7,
    'estimate_error_ratio_sum{model="openai/gpt"}': 2.4,
    'streams_aborted_total{by="client"}': 1,
  }
  for (const [series, value] of Object.entries(expected)) t.equal(found.get(series), value, series)
  t.equal(found.has('streams_aborted_total{by="provider"}'), false, 'a stream that ended is not aborted')
})

t.test('what an exchange did not reach is not counted', async t => {
  const all = metrics()
  all.finished({
    ...FINISHED,
    model: null,
    provider: null,
    key: null,
    status: 401,
    stream: false,
    ttftMs: null,
    overheadMs: null,
    usage: null,
    costRial: 0n,
    ending: null,
    endedBy: null,
    estimatedInput: null,
  })
  const names = [...(await samples(all)).keys()].filter(name => name.includes('none') || name.includes('tokens') || name.includes('first'))
  t.equal((await samples(all)).get('requests_total{surface="chat",model="none",status="401"}'), 1)
  t.equal((await samples(all)).get('key_requests_total{key="none"}'), 1)
  t.equal(names.filter(name => !/^(requests_total|request_duration|key_)/.test(name)).length, 0)
})

t.test('the other calls each move their own metric', async t => {
  const all = metrics()
  all.refused('rate_limit_rpm', 'free')
  all.refused('too_many_concurrent', 'anonymous')
  all.refused('from-a-client', null)
  all.inFlight('chat', 1)
  all.inFlight('chat', 1)
  all.inFlight('chat', -1)
  all.upstream('openai', 'ok')
  all.upstream('openai', 'upstream_timeout')
  all.upstream('openai', 'nonsense')
  all.upstreamRetry('openai')
  all.upstreamUp('openai', false)
  all.upstreamUp('unheard-of', true)
  all.ledgerCommit(0.0004, 17)
  all.recovered(2, 'openai/gpt')
  all.configReload(false)
  const found = await samples(all)
  const expected: Record<string, number> = {
    'refusals_total{code="rate_limit_rpm",plan="free"}': 1,
    'refusals_total{code="too_many_concurrent",plan="anonymous"}': 1,
    'refusals_total{code="other",plan="none"}': 1,
    'requests_in_flight{surface="chat"}': 1,
    'upstream_requests_total{provider="openai",result="ok"}': 1,
    'upstream_requests_total{provider="openai",result="upstream_timeout"}': 1,
    'upstream_requests_total{provider="openai",result="other"}': 1,
    'upstream_retries_total{provider="openai"}': 1,
    'upstream_up{provider="openai"}': 0,
    'ledger_commit_seconds_bucket{le="0.00025"}': 0,
    'ledger_commit_seconds_bucket{le="0.0005"}': 1,
    'ledger_batch_size_bucket{le="16"}': 0,
    'ledger_batch_size_bucket{le="32"}': 1,
    'holds_recovered_total{model="openai/gpt"}': 2,
    'holds_total{ending="recovered"}': 2,
    'config_reloads_total{result="failed"}': 1,
    'config_reloads_total{result="ok"}': 0,
    config_last_reload_successful: 0,
    'build_info{version="1.2.3",node="v20.0.0",sqlite="3.50.0"}': 1,
  }
  for (const [series, value] of Object.entries(expected)) t.equal(found.get(series), value, series)
  t.equal(found.has('upstream_up{provider="other"}'), false)
})

t.test('gauges of the ledger are read at each scrape, known accounts and keys alone', async t => {
  let holdsOpen = 3
  const all = metrics({ collect: async () => ({ ...COLLECTED, holdsOpen: holdsOpen++ }) })
  const first = await samples(all)
  t.equal(first.get('holds_open'), 3)
  t.equal(first.get('held_rial'), 12_345)
  t.equal(first.get('hold_oldest_age_seconds'), 1.5)
  t.equal(first.get('ledger_bytes'), 4096)
  t.equal(first.get('ledger_wal_bytes'), 512)
  t.equal(first.get('wallet_balance_rial{account="acme"}'), 5_000_000)
  t.equal(first.get('estimate_correction{model="openai/gpt"}'), 1.07)
  t.equal(first.get('key_budget_used_ratio{key="app-a",window="day"}'), 0.75, 'the budget nearest to its end')
  t.equal(first.get('collect_successful'), 1)
  t.equal([...first.keys()].filter(name => name.includes('gone')).length, 0)
  t.equal((await samples(all)).get('holds_open'), 4)
})

t.test('a ledger that cannot be read leaves its gauges out, and the rest in', async t => {
  const heard: unknown[] = []
  let broken = false
  const all = metrics({
    collect: () => {
      if (broken) throw new Error('disk gone')
      return COLLECTED
    },
    failed: error => heard.push(error),
  })
  t.equal((await samples(all)).get('holds_open'), 3)
  broken = true
  all.finished(FINISHED)
  const found = await samples(all)
  t.match(heard, [{ message: 'disk gone' }])
  t.equal(found.get('collect_successful'), 0)
  t.equal(found.get('key_requests_total{key="app-a"}'), 1)
  for (const name of ['holds_open', 'held_rial', 'wallet_balance_rial{account="acme"}', 'estimate_correction{model="openai/gpt"}'])
    t.equal(found.has(name), false, name)
})

t.test('a ledger that does not answer delays a scrape by two seconds at most, and is asked once', async t => {
  let asked = 0
  const heard: unknown[] = []
  const all = metrics({
    collect: () => {
      asked++
      return new Promise<Collected>(() => {})
    },
    failed: error => heard.push(error),
  })
  // Without a bound it would take for ever.
  const [a, b] = await Promise.all([samples(all), samples(all)])
  t.equal(a.get('collect_successful'), 0)
  t.equal(b.get('collect_successful'), 0)
  t.equal(asked, 1)
  t.equal(heard.length, 2)
})

t.test('text and OpenMetrics may be scraped in turn, and at once, and neither changes the other', async t => {
  const all = metrics({ process: true })
  all.finished(FINISHED)
  const names = (body: string) => body.split('\n').flatMap(line => (line.startsWith('# TYPE') ? [line] : []))
  const before = await all.render(undefined)
  for (let round = 0; round < 3; round++) {
    const [open, text] = await Promise.all([all.render(OPENMETRICS), all.render('text/plain')])
    t.equal(open.contentType, 'application/openmetrics-text; version=1.0.0; charset=utf-8')
    t.equal(text.contentType, 'text/plain; version=0.0.4; charset=utf-8')
    t.strictSame(names(text.body), names(before.body))
    t.match(text.body, /^# TYPE model_gateway_requests_total counter\nmodel_gateway_requests_total\{/m)
    t.match(open.body, /^# TYPE model_gateway_requests counter\nmodel_gateway_requests_total\{/m)
    t.match(open.body, /^# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total /m)
    t.notMatch(open.body, /_total counter|_total_total|\n\n|Nan/)
    t.ok(open.body.endsWith('\n# EOF\n'))
    t.equal(text.body.includes('# EOF'), false)
  }
  t.strictSame(await samples(all, OPENMETRICS).then(found => found.get('key_requests_total{key="app-a"}')), 1)
})

t.test('a scrape lets others have their turn after each family', async t => {
  const rendering = metrics().render(undefined)
  let turns = 0
  let over = false
  void rendering.finally(() => {
    over = true
  })
  while (!over) {
    await new Promise(setImmediate)
    turns++
  }
  const families = (await rendering).body.match(/^# TYPE /gm)?.length ?? 0
  t.ok(families > 20 && turns > families, `${turns} turns, ${families} families`)
})

t.test('how late the event loop is, while requests are under way', async t => {
  const all = metrics({ process: true })
  const lags = async () => {
    const { body } = await all.render(undefined)
    return new Map(
      [...body.matchAll(/^nodejs_eventloop_lag_(?:(\w+)_)?seconds (\S+)$/gm)].map(([, name = 'last', value]) => [name, Number(value)]),
    )
  }
  const names = ['last', 'min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99']
  const none = new Map(names.map(name => [name, 0]))
  t.strictSame(await lags(), none, 'nobody has asked for anything')
  all.inFlight('chat', 1)
  await new Promise(resolve => setTimeout(resolve, 200))
  const until = performance.now() + 300
  while (performance.now() < until);
  await new Promise(resolve => setTimeout(resolve, 200))
  const busy = await lags()
  t.strictSame([...busy.keys()], names)
  t.ok((busy.get('max') as number) >= 0.25, 'for so long the loop stood still')
  t.equal(busy.get('p99'), busy.get('max'))
  for (const name of ['min', 'p50', 'last']) t.ok((busy.get(name) as number) < 0.2, name)
  all.inFlight('chat', -1)
  await new Promise(resolve => setTimeout(resolve, 1_300))
  await lags()
  await new Promise(resolve => setTimeout(resolve, 100))
  t.strictSame(await lags(), none, 'it is not asked any more')
  all.inFlight('chat', 1)
  await new Promise(resolve => setTimeout(resolve, 100))
  t.ok(((await lags()).get('max') as number) > 0, 'it is asked again')
  all.inFlight('chat', -1)
})

t.test('whatever clients send, the series are bounded by the config', async t => {
  const all = metrics()
  for (let i = 0; i < 10_000; i++) {
    all.finished({
      ...FINISHED,
      surface: `/path/${i}`,
      model: `model-${i}`,
      provider: `provider-${i}`,
      key: `key-${i}`,
      status: 100 + (i % 1000),
      overrunRial: 1n,
    })
    all.refused(`code-${i}`, `plan-${i}`)
    all.upstream(`provider-${i}`, `result-${i}`)
    all.upstreamRetry(`provider-${i}`)
    all.upstreamUp(`provider-${i}`, true)
    all.inFlight(`/path/${i}`, 1)
    all.recovered(1, `model-${i}`)
  }
  const found = await samples(all)
  t.equal(found.get('key_requests_total{key="other"}'), 10_000)
  t.equal(found.get('refusals_total{code="other",plan="other"}'), 10_000)
  const statuses = [...found.keys()].filter(name => name.startsWith('requests_total'))
  t.ok(statuses.length <= new Set([...CODES.values()].map(({ status }) => status)).size + 7, `${statuses.length} statuses`)
  t.ok(found.size < 200, `${found.size} series`)
})

t.test('a config that takes over brings its names, and the series of those that it drops are gone', async t => {
  const all = metrics()
  all.finished(FINISHED)
  all.finished({ ...FINISHED, model: 'sandbox/echo', provider: 'sandbox', key: 'app-b' })
  all.upstreamUp('openai', true)
  await samples(all)
  all.labels({
    ...LABELS,
    models: new Set(['sandbox/echo', 'new/model']),
    providers: new Set(['sandbox', 'new']),
    keys: new Map([['app-b', {}]]),
    accounts: new Set(),
  })
  all.finished(FINISHED)
  all.finished({ ...FINISHED, model: 'sandbox/echo', provider: 'sandbox', key: 'app-b' })
  all.finished({ ...FINISHED, model: 'new/model', provider: 'new', key: 'app-b' })
  const found = await samples(all)
  t.equal([...found.keys()].filter(name => /openai|app-a|acme/.test(name)).length, 0)
  t.equal(found.get('requests_total{surface="chat",model="other",status="200"}'), 1, 'a request that began before it')
  t.equal(found.get('requests_total{surface="chat",model="sandbox/echo",status="200"}'), 2, 'what stays goes on')
  t.equal(found.get('requests_total{surface="chat",model="new/model",status="200"}'), 1)
  t.equal(found.get('key_requests_total{key="app-b"}'), 3)
})

t.test('wrong figures are left out instead of breaking a request', async t => {
  const all = metrics()
  all.finished({ ...FINISHED, durationMs: Number.NaN, ttftMs: -1, overheadMs: Number.POSITIVE_INFINITY, costRial: -5n })
  const found = await samples(all)
  t.equal(found.get('request_duration_seconds_count{surface="chat",model="openai/gpt",provider="openai"}'), 0)
  t.equal(found.get('overhead_seconds_count{surface="chat"}'), 0)
  t.equal(found.get('key_spend_rial_total{key="app-a"}'), 0)
  t.equal(found.get('key_requests_total{key="app-a"}'), 1)
})

t.test('counting one finished request costs under 5 µs', async t => {
  const all = metrics()
  const exchanges = Array.from({ length: 16 }, (_, i) => ({ ...FINISHED, key: i % 2 === 0 ? 'app-a' : 'app-b', durationMs: 10 * i }))
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 20; round++) {
    const ms = cpuMs(() => {
      for (let i = 0; i < 5000; i++) all.finished(exchanges[i % 16] as Finished)
    })
    best = Math.min(best, ms / 5)
  }
  t.comment(`${best.toFixed(2)} µs`)
  t.ok(best < 5, `${best.toFixed(2)} µs`)
})

t.test('every metric has a help text, a known type and a name as Prometheus wants it', async t => {
  const all = metrics({ process: true })
  all.finished(FINISHED)
  const { body } = await all.render(undefined)
  const types = [...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  t.ok(types.length > 40)
  for (const [, name = '', type = ''] of types) {
    t.match(type, /^(counter|gauge|histogram)$/, name)
    t.equal(name.endsWith('_total'), type === 'counter', `${name} is a ${type}`)
    t.notMatch(name, /[A-Z]|_(ms|milliseconds|kb|mb|percent)$|_(count|sum|bucket)$/)
    t.match(body, new RegExp(`^# HELP ${name} \\S[^"\\\\]*$`, 'm'), 'needs no escaping')
  }
})

const promtool = process.env.PROMTOOL ?? 'promtool'
const installed = spawnSync(promtool, ['--version']).error === undefined
t.test('promtool has nothing to say against it', { skip: installed ? false : 'promtool is not installed' }, async t => {
  const all = metrics({ process: true })
  all.finished(FINISHED)
  all.refused('rate_limit_rpm', 'free')
  const { body } = await all.render(undefined)
  const result = spawnSync(promtool, ['check', 'metrics'], { input: body, encoding: 'utf8' })
  t.equal(result.stderr + result.stdout, '')
  t.equal(result.status, 0)
})
