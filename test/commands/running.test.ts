import { spawn } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { gateway, KEY, yaml } from '../support/gateway.js'
import { programFile } from '../support/paths.js'
import { bare } from '../support/program.js'
import { chat, provider } from '../support/provider.js'

interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** The program, as a user would call it. */
function cli(cwd: string, ...args: string[]): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const [command = '', ...rest] = bare([process.execPath, programFile(), ...args])
    const child = spawn(command, rest, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    let out = ''
    let err = ''
    child.stdout.on('data', chunk => (out += chunk))
    child.stderr.on('data', chunk => (err += chunk))
    child.on('error', reject)
    child.on('close', code => resolve({ code, out, err }))
  })
}

const ASK = { model: 'default', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 100 }

t.test('beside a running gateway', async t => {
  const far = await provider(t)
  const running = await gateway(t, yaml(far.url, { balance: 1 }))
  const { folder } = running
  t.equal(lstatSync(join(folder, 'data', 'ledger.db.sock')).mode & 0o777, 0o600)

  t.match(await running.post('/v1/chat/completions', ASK), { status: 402, json: { error: { code: 'insufficient_balance' } } })
  const credit = ['wallet', 'credit', 'acme', '1,000,000', '--idempotency-key', 'k']
  t.match(await cli(folder, ...credit), { code: 0, out: /acme +1,000,001 +0 +0 +1,000,001\n/ })
  t.match(await cli(folder, ...credit), { code: 0, err: /Nothing changed/ })
  t.equal((await running.post('/v1/chat/completions', ASK)).status, 200, 'the credit counts at once')

  let release = (): void => {}
  const released = new Promise<void>(resolve => {
    release = resolve
  })
  far.script = async (...call) => {
    await released
    return chat()(...call)
  }
  const slow = running.post('/v1/chat/completions', ASK)
  while (far.seen.length < 2) await new Promise(resolve => setTimeout(resolve, 5))
  const [holds, usage, verified] = await Promise.all([
    cli(folder, 'holds', '--json'),
    cli(folder, 'usage'),
    cli(folder, 'ledger', 'verify'),
  ])
  t.match(JSON.parse(holds.out), [{ key: 'a', model: 'up/m', surface: 'chat' }])
  t.match(usage.out, /^a +up\/m +1 +0 +9 +0 +2 +13$/m)
  t.match(verified, { code: 0, err: /agrees/ })
  release()
  t.equal((await slow).status, 200)

  t.match(await cli(folder, 'ledger', 'backup', 'copy.db'), { code: 0 })
  const before = await cli(folder, 'wallet', 'show', 'acme')
  t.equal(await running.stop(), 0)
  t.throws(() => lstatSync(join(folder, 'data', 'ledger.db.sock')), { code: 'ENOENT' })
  t.strictSame(await cli(folder, 'wallet', 'show', 'acme'), before, 'the same figures from the file')
  t.strictSame(await cli(folder, 'wallet', 'show', 'acme', '--ledger', 'copy.db'), before, 'and from the backup')
  for (const text of [running.output(), usage.out, holds.out]) t.notOk(text.includes(KEY) || text.includes('sk-upstream-secret'))
})

t.test("after kill -9: what it held shows, and the socket it left is in nobody's way", async t => {
  const far = await provider(t, () => {})
  const running = await gateway(t, yaml(far.url))
  running.post('/v1/chat/completions', ASK).catch(() => {})
  while (far.seen.length < 1) await new Promise(resolve => setTimeout(resolve, 5))
  await running.kill()
  t.ok(lstatSync(join(running.folder, 'data', 'ledger.db.sock')).isSocket())
  t.match(await cli(running.folder, 'holds'), { code: 0, out: /1 open/, err: /a crash has left these/ })
  const again = await gateway(t, yaml(far.url), { folder: running.folder })
  t.match(await cli(running.folder, 'holds'), { code: 0, out: '', err: 'No hold is open.\n' })
  t.notOk(again.lines().some(({ message }) => /no control socket/.test(message)))
})

t.test('a reader that has seen enough is no failure', async t => {
  const far = await provider(t)
  const running = await gateway(t, yaml(far.url))
  for (let i = 0; i < 3; i++) await running.post('/v1/chat/completions', ASK)
  const child = spawn(
    'sh',
    ['-c', `"${process.execPath}" "${programFile()}" usage --records | true; "${process.execPath}" "${programFile()}" check | head -1`],
    {
      cwd: running.folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let err = ''
  child.stderr.on('data', chunk => (err += chunk))
  t.equal(await new Promise(resolve => child.on('close', resolve)), 0)
  t.notMatch(err, /EPIPE|Error/)
})
