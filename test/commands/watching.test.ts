import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { gateway, KEY, type RunningGateway, yaml } from '../support/gateway.js'
import { programFile } from '../support/paths.js'
import { bare, program } from '../support/program.js'
import { chat, provider } from '../support/provider.js'
import { noTerminal, terminal } from '../support/terminal.js'

/*
 * tail and top, beside a running gateway: tail through a pipe and on a terminal, top on a terminal.
 */

const PROMPT = 'the-prompt-of-a-client'
const ANSWER = 'the-answer-of-a-provider'
const SECRETS = [PROMPT, ANSWER, KEY, 'sk-upstream-secret']
const ask = { model: 'default', messages: [{ role: 'user', content: PROMPT }], max_tokens: 50 }
const COMMAND = `${process.execPath} ${programFile()}`

async function watched(t: Test): Promise<RunningGateway> {
  const far = await provider(t, chat({ text: ANSWER }))
  return gateway(t, yaml(far.url))
}

/** `tail` in a pipe, once it watches. */
async function tailing(t: Test, running: RunningGateway, ...args: string[]) {
  const [command = '', ...rest] = bare([process.execPath, programFile(), 'tail', ...args])
  const child = spawn(command, rest, { cwd: running.folder, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  let out = ''
  let err = ''
  child.stdout.on('data', chunk => (out += chunk))
  child.stderr.on('data', chunk => (err += chunk))
  const ended = once(child, 'close').then(([code]) => code as number | null)
  // A tail says nothing when it begins: what is asked until it has told of one is not counted.
  return { child, out: () => out, err: () => err, ended }
}

/** Asks, one request after the other, until it is enough. */
async function askUntil(running: RunningGateway, enough: () => boolean, body: object = ask): Promise<void> {
  while (!enough()) {
    await running.post('/v1/chat/completions', body)
    // Who watches gets its turn, too.
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

/** The line of the log, which is written a moment later. */
async function logged(running: RunningGateway, id: string): Promise<unknown> {
  for (;;) {
    const line = running.lines().find(({ request_id }) => request_id === id)
    if (line !== undefined) return line
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

t.jobs = 4
t.test('tail in a pipe: the lines that the log has, filtered, and it ends with its count', async t => {
  const running = await watched(t)
  const tail = await tailing(t, running, '--count', '2')
  await askUntil(running, () => tail.out().split('\n').length > 2)
  t.equal(await tail.ended, 0)
  const told = tail
    .out()
    .trim()
    .split('\n')
    .map(text => JSON.parse(text))
  t.equal(told.length, 2)
  for (const line of told) t.strictSame(line, await logged(running, line.request_id))
  t.equal(tail.err(), '')

  const refused = await tailing(t, running, '--code', 'model_not_found', '--key', 'a', '--count', '1')
  let asked = 0
  await askUntil(running, () => refused.out() !== '', { ...ask, model: asked++ % 2 === 0 ? 'no/such' : 'default' })
  t.equal(await refused.ended, 0)
  t.match(JSON.parse(refused.out()), { key: 'a', code: 'model_not_found', status: 404 })

  const model = await tailing(t, running, '--model', 'default', '--key', 'aa')
  while (model.err() === '') await new Promise(resolve => setTimeout(resolve, 10))
  t.equal(model.err(), 'There is no key "aa" (did you mean "a"?); waiting for it all the same.\n', 'an alias is a model')
  model.child.kill('SIGTERM')
  t.equal(await model.ended, 0)
  for (const text of [tail.out(), refused.out()]) for (const secret of SECRETS) t.notOk(text.includes(secret))
})

t.test('tail and top where no gateway runs, and top where there is no terminal: what to do', async t => {
  const far = await provider(t)
  const running = await gateway(t, yaml(far.url))
  t.match(await program(['top'], { cwd: running.folder }), {
    code: 2,
    stdout: '',
    stderr: /top needs a terminal; for programs there is tail --json/,
  })
  t.match(await program(['tail', '--count', '0'], { cwd: running.folder }), { code: 2, stderr: /--count: "0" is no whole number above 0/ })
  t.equal(await running.stop(), 0)
  const { code, stdout, stderr } = await program(['tail'], { cwd: running.folder })
  t.strictSame({ code, stdout }, { code: 1, stdout: '' })
  t.equal(stderr, `model-gateway tail: no gateway runs on ${join(running.folder, 'data', 'ledger.db')}.\nStart it: model-gateway serve\n`)
})

t.test('tail on a terminal: a line for people; it bears the gateway going away and coming back', { skip: noTerminal }, async t => {
  const running = await watched(t)
  const shell = terminal(t, running.folder, 150, 20)
  shell.type(`${COMMAND} tail; echo "ended with $?"`)
  let over = false
  const asking = askUntil(running, () => over)
  const seen = await shell.until(/^\d\d:\d\d:\d\d\.\d{3} {2}200 chat up\/m a 9→2 tokens 13 Rial \d/m)
  over = true
  await asking
  await running.kill()
  await shell.until(/The gateway has gone away; waiting for it\./)
  const far = await provider(t)
  const again = await gateway(t, yaml(far.url, { plan: '{requests_per_minute: 0}' }), { folder: running.folder })
  await shell.until(/It is back\./)
  over = false
  const refused = askUntil(again, () => over)
  await shell.until(/ 429 chat up\/m a rate_limit_rpm /)
  over = true
  await refused
  shell.press('C-c')
  const last = await shell.until(/ended with 0/)
  for (const text of [seen, last]) for (const secret of SECRETS) t.notOk(text.includes(secret))
})

t.test(
  'top: sums, keys, models, refusals, the slowest; it follows the size, and gives the terminal back',
  { skip: noTerminal },
  async t => {
    const running = await watched(t)
    const shell = terminal(t, running.folder, 110, 30)
    shell.type('echo before; stty -a > modes')
    await shell.until(/^(?:[$#] )?before$/m)
    shell.type(`${COMMAND} top; echo "ended with $?"`)
    await shell.until(/^model-gateway \S+ {2}last \d+ s {2}\(q ends it\) {2}\//m)
    t.notMatch(shell.screen(), /before/, 'a screen of its own')
    for (let i = 0; i < 6; i++) await running.post('/v1/chat/completions', ask)
    await running.post('/v1/chat/completions', { ...ask, model: 'no/such' })
    // What is held is told by itself, each second; the rest as it ends.
    const parts = [/^refusals {2}404 model_not_found 1$/m, /^a +\S+ +1 +0 .*\b78\b/m, /^held +0 Rial in 0 holds; 0 under way$/m]
    const whole = await shell.until(screen => parts.every(part => part.test(screen)))
    t.match(whole, /^requests {2}[\d.]+\/s, 1 refused, 0 failed$/m)
    t.match(whole, /^tokens +[\d.]+\/s in, [\d.]+\/s out$/m)
    t.match(whole, /^spend +78 Rial, /m)
    t.match(whole, /^KEY +REQ\/S +REFUSED/m)
    t.match(whole, /^up\/m +\S+ +0 +0 /m)
    t.match(whole, /^ *SLOWEST +FIRST +KEY +MODEL/m)
    t.match(whole, / a +up\/m +9→2 +13 {2}req_[0-9A-Z]{26}$/m)

    shell.resize(40, 12)
    const small = await shell.until(screen => /^model-gateway .*…$/m.test(screen) && /^KEY /m.test(screen) && !/^MODEL /m.test(screen))
    t.ok(small.split('\n').every(line => [...line].length <= 40))
    shell.resize(12, 4)
    await shell.until(screen => /^model-gatew…$/m.test(screen) && /^requests {2}.…$/m.test(screen))
    shell.resize(110, 30)
    await shell.until(/^ *SLOWEST /m)

    await running.kill()
    await shell.until(/^The gateway has gone away; waiting for it\.$/m)
    const far = await provider(t)
    await gateway(t, yaml(far.url), { folder: running.folder })
    await shell.until(screen => !screen.includes('gone away') && /^requests /m.test(screen))

    shell.press('C-c')
    const after = await shell.until(/ended with 0/)
    t.match(after, /^(?:[$#] )?before$/m, 'what stood there is there again')
    shell.type('stty -a | cmp - modes && echo "the same modes"')
    await shell.until(/^(?:[$#] )?the same modes$/m)
    shell.type(`${COMMAND} top`)
    await shell.until(/^requests /m)
    shell.press('q')
    await shell.until(screen => /the same modes/.test(screen) && !/^requests /m.test(screen))
    for (const secret of SECRETS) t.notOk(whole.includes(secret))
  },
)
