import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { familyOf, textTokens } from '../../src/metering/estimate.js'
import { AUTH, gateway, metric, yaml } from '../support/gateway.js'
import { program } from '../support/program.js'
import { chat, provider } from '../support/provider.js'
import { sampleModel } from '../support/sample-call.js'

const WORDS = 'The lamp at the end of the pier goes out when the boats are in. '
const ask = (content: string, over: object = {}) => ({ model: 'up/m', messages: [{ role: 'user', content }], max_tokens: 10, ...over })
const estimated = (text: string) => textTokens(text, familyOf(sampleModel({ upstream: 'm' }))) + 7 + 10
const requests = (result: string) => `model_gateway_tokenizer_requests_total{model="up/m",result="${result}"}`

/** A folder with modules in it, as an operator would write them: they import nothing of ours. */
function folderOf(t: Test): string {
  return t.testdir({
    'words.mjs': `
export default ({ surface, model, body }) => {
  console.log(JSON.stringify(body))
  if (surface !== 'chat' || model !== 'm') throw new Error('asked wrongly')
  return 1000 + body.messages.map(({ content }) => content.split(' ').length).reduce((a, b) => a + b)
}`,
    'later.mjs': `export default async ({ body }) => { await new Promise(r => setTimeout(r, 20)); return 5000 + body.messages.length }`,
    'hangs.mjs': `export default ({ body }) => { if (body.messages[0].content.startsWith('hang')) for (;;); return 7 }`,
    'waits.mjs': `export default () => new Promise(() => {})`,
    'throws.mjs': `export default ({ body }) => { throw new TypeError(body.messages[0].content) }`,
    'dies.mjs': `export default () => { process.exit(1) }`,
    'nonsense.mjs': `
let next = 0
const answers = [NaN, -5, 0, 1.5, Infinity, 2 ** 60, '12', null, undefined, {}]
export default () => answers[next++ % answers.length]`,
    'eats.mjs': `export default () => { const kept = []; for (;;) kept.push(new Array(1e6).fill(kept.length)) }`,
    'not-a-function.mjs': 'export default 7',
    'broken.mjs': 'export default (',
    'never.mjs': 'await new Promise(() => setTimeout(() => {}, 1e6))',
  })
}

async function running(t: Test, model: string) {
  const up = await provider(t, chat())
  return gateway(t, yaml(up.url, { model, provider: 'health: off' }), { folder: folderOf(t) })
}

t.jobs = 3
t.test('a module counts what is held, for small bodies and for large ones', async t => {
  const first = await running(t, 'tokenizer: ./words.mjs, tokenizer_timeout: 60s')
  const large = WORDS.repeat(4000)
  for (const text of ['one two three', large]) t.equal((await first.post('/v1/chat/completions', ask(text), AUTH)).status, 200)
  t.equal(await metric(first, requests('counted')), 2)
  await first.stop()
  t.strictSame(
    (await first.records()).map(record => record.held_tokens),
    [1003n, BigInt(1000 + large.split(' ').length)].map(held => Number(held) + 10),
  )
  t.notMatch(first.output(), /one two three/, 'what it prints, prompts for one, goes nowhere')
  const second = await running(t, 'tokenizer: ./later.mjs, tokenizer_timeout: 60s')
  await second.post('/v1/chat/completions', ask('Hello'), AUTH)
  await second.stop()
  t.equal((await second.records())[0]?.held_tokens, 5011)
})

t.test('what a module can not count is held for by the estimate, told and counted', async t => {
  const rows: readonly (readonly [module: string, result: string, reason: RegExp, timeout?: string])[] = [
    ['waits', 'timeout', /it took longer than 300 ms/, '300ms'],
    ['throws', 'failed', /it threw TypeError/],
    ['dies', 'failed', /its thread ended/],
    ['nonsense', 'failed', /it gave NaN, which is no number of tokens/],
  ]
  for (const [module, result, reason, timeout = '60s'] of rows) {
    const up = await running(t, `tokenizer: ./${module}.mjs, tokenizer_timeout: ${timeout}`)
    t.equal((await up.post('/v1/chat/completions', ask(WORDS), AUTH)).status, 200, module)
    t.equal(await metric(up, requests(result)), 1, module)
    await up.stop()
    t.equal((await up.records())[0]?.held_tokens, estimated(WORDS), module)
    const told = up.lines().filter(line => line.level === 'warn' && /tokenizer/.test(line.message))
    t.match(told, [{ message: reason, model: 'up/m' }], module)
    t.notMatch(up.output(), /lamp/, `${module}: no prompt in the log`)
  }
})

t.test('whatever nonsense a module gives, the hold is the estimate, or the bound where the model asks for it', async t => {
  const up = await running(t, 'tokenizer: ./nonsense.mjs, tokenizer_timeout: 60s, estimate: bound')
  for (let i = 0; i < 12; i++) await up.post('/v1/chat/completions', ask(WORDS), AUTH)
  await up.stop()
  for (const { held_tokens } of await up.records()) t.ok((held_tokens ?? 0) >= Buffer.byteLength(WORDS) + 10, `${held_tokens}`)
  t.equal(up.lines().filter(line => /tokenizer/.test(line.message)).length, 3, 'after three failures it is left alone')
})

t.test('a module that hangs for ever stops nobody else, and counts again with the next request', async t => {
  const up = await running(t, 'tokenizer: ./hangs.mjs, tokenizer_timeout: 3s')
  const since = performance.now()
  const hanging = up.post('/v1/chat/completions', ask('hang'), AUTH)
  t.equal((await up.get(`${up.ops}/livez`)).status, 200)
  t.ok(performance.now() - since < 3000, 'the event loop is free meanwhile')
  t.equal((await hanging).status, 200)
  let counted = 0
  // The thread starts again meanwhile, and may be too late for the first of them.
  for (let i = 0; i < 20 && counted === 0; i++) {
    await up.post('/v1/chat/completions', ask('Hello'), AUTH)
    counted = (await metric(up, requests('counted'))) ?? 0
    await new Promise(resolve => setTimeout(resolve, 1000 * Number(counted === 0)))
  }
  t.ok(counted > 0)
  await up.stop()
  const records = await up.records()
  t.equal(records[0]?.held_tokens, estimated('hang'))
  t.equal(records.at(-1)?.held_tokens, 17)
})

t.test('a module that eats memory loses its thread, and the gateway nothing', async t => {
  const up = await running(t, 'tokenizer: ./eats.mjs, tokenizer_timeout: 60s')
  t.equal((await up.post('/v1/chat/completions', ask(WORDS), AUTH)).status, 200)
  t.equal(await metric(up, requests('failed')), 1)
  t.equal(await up.stop(), 0)
})

t.test('a reload takes the module as the file then has it', async t => {
  const up = await provider(t, chat())
  const config = yaml(up.url, { model: 'tokenizer: ./mine.mjs, tokenizer_timeout: 60s', provider: 'health: off' })
  const folder = t.testdir({ 'mine.mjs': 'export default () => 100' })
  const first = await gateway(t, config, { folder })
  await first.post('/v1/chat/completions', ask('Hello'), AUTH)
  writeFileSync(join(folder, 'mine.mjs'), 'export default () => 200')
  await first.reload(`${config}\n# again\n`)
  await first.post('/v1/chat/completions', ask('Hello'), AUTH)
  await first.stop()
  t.strictSame(
    (await first.records()).map(record => record.held_tokens),
    [110, 210],
  )
})

t.test('check loads the module: a package, too', async t => {
  const folder = folderOf(t)
  const check = async (use: string) => {
    writeFileSync(join(folder, 'gateway.yaml'), yaml('http://127.0.0.1:9', { model: `tokenizer: ${use}` }))
    return program(['check'], { cwd: folder })
  }
  t.match(await check('./words.mjs'), { code: 0, stdout: /tokenizer: \.\/words\.mjs\n[\s\S]*tokenizer_timeout: 250ms\n/ })
  const at = (message: string) => ({
    code: 2,
    stderr: new RegExp(`gateway\\.yaml:\\d+:\\d+: models: tokenizer .* can not be loaded: ${message}`),
  })
  t.match(await check('./not-a-function.mjs'), at('it has no function as its default export'))
  t.match(await check('./none.mjs'), at('\\S+none\\.mjs: there is no such file'))
  t.match(await check('./broken.mjs'), at('Unexpected'))
  t.match(await check('./never.mjs'), at('it was not there after 10 s'))
  t.match(await check('o200'), at('there is no package of this name \\(did you mean "o200k"\\?\\)'))
  mkdirSync(join(folder, 'node_modules/@acme/counts'), { recursive: true })
  writeFileSync(join(folder, 'node_modules/@acme/counts/package.json'), '{"name":"@acme/counts","type":"module","exports":"./index.js"}')
  writeFileSync(join(folder, 'node_modules/@acme/counts/index.js'), 'export default () => 12')
  t.equal((await check('"@acme/counts"')).code, 0)
})
