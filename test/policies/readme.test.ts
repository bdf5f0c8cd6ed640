import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { parse } from 'yaml'
import { AUTH, gateway, KEY, metric } from '../support/gateway.js'
import { blocks } from '../support/markdown.js'
import { ROOT } from '../support/paths.js'

const FOUND = blocks(readFileSync(`${ROOT}policies/README.md`, 'utf8'))
const CODE = found('js').find(({ info }) => info[1] === 'file=policies/in-flight.mjs')?.text ?? ''
const POLICIES = JSON.stringify(parse(found('yaml')[0]?.text ?? '').policies)

function found(language: string) {
  return FOUND.filter(({ info }) => info[0] === language)
}

const ASKED = { model: 'sandbox/slow', messages: [{ role: 'user', content: 'Hello' }] }

function config(policies: string): string {
  return `
ledger: {path: data/ledger.db, durability: process}
policies: ${policies}
providers: {sandbox: {kind: sandbox}}
models:
  sandbox/slow: {price: {input: 20000, output: 60000}, options: {first_byte: 1500}}
  sandbox/echo: {price: {input: 20000, output: 60000}}
plans: {p: {}}
keys: {a: {plan: p, secret: ${KEY}}}
`
}

function folderWith(t: { testdir(): string }, code: string): string {
  const folder = t.testdir()
  mkdirSync(join(folder, 'policies'))
  writeFileSync(join(folder, 'policies', 'in-flight.mjs'), code)
  return folder
}

t.test('the policy of the manual admits one request of a key at a time, and gives it back', async t => {
  t.notMatch(CODE, /import/, 'it needs nothing of ours')
  const running = await gateway(t, config(POLICIES), { folder: folderWith(t, CODE) })
  const first = running.post('/v1/chat/completions', ASKED)
  while ((await metric(running, 'model_gateway_holds_open')) !== 1) await sleep(5)
  const second = await running.post('/v1/chat/completions', { ...ASKED, model: 'sandbox/echo' })
  t.equal(second.status, 429)
  const shown = JSON.parse(found('json')[0]?.text ?? '')
  const { request_id, error } = second.json
  t.match(request_id, /^req_/)
  t.strictSame({ ...error, details: undefined }, { ...shown.error, details: undefined }, 'as the manual shows it')
  t.strictSame(error.details, { ceiling: 1, posted: 0, held: 1, asked: 1, resets_at: null, permanent: false })
  t.equal(second.headers.get('retry-after'), '1')
  t.equal((await first).status, 200)
  t.equal((await running.post('/v1/chat/completions', { ...ASKED, model: 'sandbox/echo' })).status, 200, 'there is room again')
  t.equal(await running.stop(), 0)
})

t.test('settings that the schema of a policy does not know stop the start, with their place', async t => {
  const policies = POLICIES.replace('"max":1', '"max":0,"min":1')
  const refused = gateway(t, config(policies), { folder: folderWith(t, CODE) })
  await t.rejects(refused, { message: /ended with 2[\s\S]*gateway\.yaml:\d+:\d+: .*with\.(max|min)/ })
})

t.test('what a policy throws before the admission refuses the request, and is not told', async t => {
  const broken = CODE.replace('return [', "throw new TypeError('secret of the policy')\n    return [")
  const running = await gateway(t, config(POLICIES), { folder: folderWith(t, broken) })
  const answer = await running.post('/v1/chat/completions', { ...ASKED, model: 'sandbox/echo' }, AUTH)
  t.equal(answer.status, 500)
  t.equal(answer.json.error.code, 'internal_error')
  t.notMatch(answer.text, /secret of the policy/)
  t.equal(await running.stop(), 0)
  t.match(running.output(), /secret of the policy/, 'but logged')
  t.strictSame(await running.records(), [], 'nothing was held')
})

t.test('a hook of the manual is a hook of the contract', async t => {
  const contract = readFileSync(`${ROOT}src/policy.ts`, 'utf8')
  const declared = [...contract.matchAll(/^ {2}(\w+)\?\(/gm)].map(match => match[1])
  const named = [...readFileSync(`${ROOT}policies/README.md`, 'utf8').matchAll(/^\| `(\w+)\(/gm)].map(match => match[1])
  t.strictSame(named, declared)
})
