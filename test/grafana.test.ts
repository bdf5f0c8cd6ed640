import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import t from 'tap'
import { stringify } from 'yaml'
import { define } from '../src/telemetry/definitions.js'
import { gateway, yaml } from './support/gateway.js'
import { prose } from './support/markdown.js'
import { ROOT } from './support/paths.js'
import { provider } from './support/provider.js'
import { wallClock } from './support/wall-clock.js'

/*
 * What is built on the metrics: the dashboard, held against the metrics of a running gateway, and those against Prometheus's own linter; and
 * the names that OpenTelemetry has for them.
 */

const FILE = `${ROOT}config/deploy/grafana/model-gateway.json`
interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string; readonly refId: string }[]
}
const dashboard = JSON.parse(readFileSync(FILE, 'utf8')) as {
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] }
  readonly annotations: { readonly list: readonly { readonly expr: string }[] }
}
const panels = dashboard.panels.filter(({ type }) => type !== 'row')
const expressions = [
  ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...dashboard.annotations.list.map(({ expr }) => expr),
  ...dashboard.templating.list.flatMap(({ definition }) =>
    definition === undefined ? [] : [/\((\w+),/.exec(definition)?.[1] ?? definition],
  ),
]

/** All that a gateway exports after one request of each ending: names with the labels of their samples. */
async function exported(): Promise<{ readonly text: string; readonly labels: ReadonlyMap<string, ReadonlySet<string>> }> {
  const far = await provider(t)
  const running = await gateway(t, yaml(far.url, { plan: '{requests_per_minute: 2}', budget: '{daily_rial: 1000000}' }), {
    // No minute ends in between.
    env: wallClock(t, '2026-11-21T08:44:01Z').env,
  })
  const ask = { model: 'default', messages: [{ role: 'user', content: 'Hi' }] }
  for (const body of [ask, { ...ask, stream: true }, ask]) await running.post('/v1/chat/completions', body)
  const { text } = await running.get(`${running.ops}/metrics`)
  const labels = new Map<string, Set<string>>()
  for (const [, name = ''] of text.matchAll(/^# TYPE (\w+) /gm)) labels.set(name, new Set())
  for (const [, name = '', inner = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const all = labels.get(name) ?? new Set()
    for (const [, label = ''] of inner.matchAll(/(\w+)="/g)) all.add(label)
    labels.set(name, all)
  }
  await running.stop()
  return { text, labels }
}

/** The metrics of our own, and their labels. */
const registry = new Registry()
define(registry)
const DEFINED = new Map(
  registry.getMetricsAsArray().map(metric => {
    const { name, labelNames } = metric as unknown as { readonly name: string; readonly labelNames: readonly string[] }
    return [name, labelNames] as const
  }),
)

const found = exported()

t.test('every expression asks for metrics and labels that a running gateway has', async t => {
  const { labels } = await found
  t.ok(expressions.length > 45, 'there are many')
  for (const expr of expressions) {
    const names = [...expr.matchAll(/\b((?:model_gateway|process|nodejs)_\w+)/g)].map(([, name]) => name as string)
    t.ok(names.length > 0, expr)
    // Series that need a fault to be there at all still have their names and labels from the definition.
    for (const name of names) t.ok(labels.has(name) || labels.has(name.replace(/_(bucket|sum|count)$/, '')), `${name} in ${expr}`)
    const known = new Set([
      'instance',
      ...names.flatMap(name => [...(labels.get(name) ?? [])]),
      ...names.flatMap(name => DEFINED.get(name) ?? []),
    ])
    const asked = [
      ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(',').map(label => label.trim())),
      ...[...expr.matchAll(/[{,](\w+)(?:=|!)~?"/g)].map(([, label]) => label as string),
    ]
    for (const label of asked) t.ok(known.has(label), `${label} in ${expr}`)
  }
})

t.test('it shows every metric of our own', async t => {
  const used = expressions.join('\n')
  const missing = [...DEFINED.keys()].filter(name => !new RegExp(`\\b${name}(_bucket|_sum|_count)?\\b`).test(used))
  t.strictSame(missing, [])
})

t.test('it is laid out: nothing overlaps, every row is full, every panel says what it shows', async t => {
  const taken = new Set<string>()
  for (const { title, gridPos } of dashboard.panels) {
    const { x, y, w, h } = gridPos
    t.ok(x + w <= 24, title)
    for (let column = x; column < x + w; column++) {
      for (let line = y; line < y + h; line++) {
        t.notOk(taken.has(`${column} ${line}`), `${title} has its own place`)
        taken.add(`${column} ${line}`)
      }
    }
  }
  const height = Math.max(...dashboard.panels.map(({ gridPos: { y, h } }) => y + h))
  t.equal(taken.size, 24 * height, 'no gaps')
  t.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
  for (const { title, description = '', targets = [] } of panels) {
    t.match(description, /^[A-Z0].*\.$/, title)
    t.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
    for (const { legendFormat, expr } of targets)
      for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) t.ok(expr.includes(label), `${title}: ${label}`)
  }
})

const promtool = spawnSync('promtool', ['--version']).status === 0 ? false : 'promtool is not installed'

t.test('Prometheus takes the metrics as they are, and every expression', { skip: promtool }, async t => {
  const { text } = await found
  const ours = text.replace(/^(# (HELP|TYPE) )?(process|nodejs)_.*\n/gm, '')
  const lint = spawnSync('promtool', ['check', 'metrics'], { input: ours, encoding: 'utf8' })
  t.strictSame({ status: lint.status, said: lint.stdout + lint.stderr }, { status: 0, said: '' })
  const folder = t.testdir()
  const rules = expressions.map((expr, i) => ({
    record: `of_the_dashboard:${i}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$__interval', '1m').replaceAll('$instance', '.*'),
  }))
  const rulesFile = join(folder, 'rules.yaml')
  const check = () => spawnSync('promtool', ['check', 'rules', rulesFile], { encoding: 'utf8' })
  writeFileSync(rulesFile, stringify({ groups: [{ name: 'dashboard', rules }] }))
  const { status, stdout, stderr } = check()
  t.equal(status, 0, `${stdout}${stderr}`)
  writeFileSync(rulesFile, stringify({ groups: [{ name: 'dashboard', rules: [...rules, { record: 'x', expr: 'sum(rate(a)' }] }] }))
  t.not(check().status, 0, 'and the check can say no')
})

t.test('every metric has its name among those of OpenTelemetry, or is said to be ours alone', async t => {
  const manual = prose(readFileSync(`${ROOT}config/README.md`, 'utf8'))
  const [, table = ''] = /### Names of OpenTelemetry\n([\s\S]*?)\n##? /.exec(`${manual}\n## `) ?? []
  const rows = table.split('\n').filter(line => line.startsWith('| `'))
  const named = rows.flatMap(row => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => `model_gateway_${name}`))
  const [, alone = ''] = /Ours alone:([\s\S]*?)\n\n/.exec(`${table}\n\n`) ?? []
  const own = [...alone.matchAll(/`(\w+)`/g)].map(([, name]) => `model_gateway_${name}`)
  t.ok(rows.length > 5)
  t.strictSame([...named, ...own].sort(), [...DEFINED.keys()].sort())
})
