import { startAdmin } from '../../../dist/src/admin/admin.js'
import { underWay } from '../../../dist/src/admin/live.js'
import { loadConfig } from '../../../dist/src/config/load.js'
import { Recent } from '../../../dist/src/telemetry/recent.js'
import { Health } from '../../../dist/src/upstream/health.js'

/*
 * node stream.mjs TOKEN RATE: the page's own listener without a gateway before it, which is told of so many ended requests a second, each second
 * in full. The first line on stdout is its address.
 */
const [token, rate] = process.argv.slice(2)
const file = '/gateway.yaml'
const text = 'providers: {sandbox: {kind: sandbox}}\nmodels: {sandbox/echo: {price: free, max_output_tokens: 9}}\n'
const { config, at } = loadConfig(file, {
  env: {},
  kinds: new Map([['sandbox', { baseUrl: '', surfaces: ['chat'] }]]),
  readFile: () => text,
})
const clock = { now: () => Date.now(), monotonic: () => performance.now() }
const recent = new Recent()
const admin = await startAdmin({
  address: { host: '127.0.0.1', port: 0 },
  token: () => token,
  recent,
  serving: { runtime: { config }, live: [], draining: false },
  underWay: () => underWay([]),
  ledger: { stats: () => ({ open_holds: 12, held_rial: 12345n, oldest_hold_at: Date.now() - 4000, bytes: 0, wal_bytes: 0 }) },
  health: new Health(),
  clock,
  places: { at },
  failed: error => console.error(error),
})
console.log(`http://${admin.host}:${admin.port}`)

const began = performance.now()
let told = 0
setInterval(() => {
  const due = Math.floor(((performance.now() - began) / 1000) * Number(rate))
  while (told < due) tell(++told)
}, 5)

function tell(i) {
  const code = i % 10 === 0 ? 'rate_limit_rpm' : i % 31 === 0 ? 'upstream_error' : null
  const line = {
    time: Date.now(),
    level: 'info',
    request_id: `req_${String(i).padStart(26, '0')}`,
    client_request_id: null,
    trace_id: null,
    key: `key-${i % 50}`,
    plan: 'free',
    surface: 'chat',
    model: `provider-${i % 7}/model-${i % 20}`,
    provider: `provider-${i % 7}`,
    stream: i % 2 === 0,
    status: code === null ? 200 : code === 'upstream_error' ? 502 : 429,
    code,
    input_tokens: code === null ? i % 4000 : null,
    output_tokens: code === null ? i % 900 : null,
    cached_tokens: 0,
    usage_source: code === null ? 'provider' : null,
    held_rial: 5000n,
    cost_rial: code === null ? BigInt(i % 5000) : null,
    ttft_ms: 12,
    duration_ms: (i * 7) % 3000,
    upstream_ms: 10,
    gateway_ms: 1,
    retries: 0,
    ended_by: null,
    upstream_request_id: null,
  }
  recent.add(line, null, null)
}
