import t from 'tap'
import { formatFor, openMetrics } from '../../src/telemetry/exposition.js'

t.test('the format that Accept would rather have', async t => {
  const rows: [string | undefined, 'text' | 'openmetrics'][] = [
    [undefined, 'text'],
    ['', 'text'],
    ['*/*', 'text'],
    ['text/html, */*;q=0.1', 'text'],
    ['text/plain;version=0.0.4', 'text'],
    ['application/openmetrics-text', 'openmetrics'],
    ['Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8', 'openmetrics'],
    ['application/openmetrics-text;version="1.0.0"', 'openmetrics'],
    ['application/openmetrics-text;version=2.0.0', 'text'],
    ['application/openmetrics-text;q=0', 'text'],
    ['application/openmetrics-text;q=nonsense', 'text'],
    ['application/openmetrics-text;q=0.3,text/plain;q=0.7', 'text'],
    [
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
      'openmetrics',
    ],
    [
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
      'openmetrics',
    ],
  ]
  for (const [accept, format] of rows) t.equal(formatFor(accept), format, accept ?? 'no Accept')
})

t.test('OpenMetrics names a counter without _total and its samples with it, and ends with EOF', async t => {
  const text = `# HELP a_total Things, of which a_total tells.
# TYPE a_total counter
a_total{x="# TYPE a_total counter"} 1

# HELP b_seconds Time.
# TYPE b_seconds histogram
b_seconds_bucket{le="1"} 0

# HELP empty_total Nothing yet.
# TYPE empty_total counter

# HELP odd_total A gauge of that name.
# TYPE odd_total gauge
odd_total 1
`
  t.equal(
    openMetrics(text),
    `# HELP a Things, of which a_total tells.
# TYPE a counter
a_total{x="# TYPE a_total counter"} 1
# HELP b_seconds Time.
# TYPE b_seconds histogram
b_seconds_bucket{le="1"} 0
# HELP empty Nothing yet.
# TYPE empty counter
# HELP odd_total A gauge of that name.
# TYPE odd_total gauge
odd_total 1
# EOF
`,
  )
})
