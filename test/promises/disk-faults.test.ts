import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { talk } from '../support/client.js'
import { gateway, inspect, type RunningGateway, yaml } from '../support/gateway.js'
import { chat, provider } from '../support/provider.js'
import { disk } from '../support/slow-disk.js'

/*
 * A disk that fails, or a file that is taken away, under the running program: nothing more is admitted, its readiness says why, and after a restart
 * all is there that a client was told.
 */

const BODY = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] }
const power = (url: string): string => yaml(url).replace('durability: process', 'durability: power')

/** Asks until the ledger fails; gives the ids of what was answered. */
async function askUntilClosed(t: Test, running: RunningGateway): Promise<string[]> {
  const answered: string[] = []
  for (let i = 0; i < 400; i++) {
    const { status, headers, json } = await running.post('/v1/chat/completions', BODY)
    if (status === 200) {
      answered.push(headers.get('x-request-id') as string)
      continue
    }
    t.match({ status, json }, { status: 503, json: { error: { code: 'ledger_unavailable' } } })
    return answered
  }
  t.fail('the ledger never failed')
  return answered
}

async function closed(t: Test, running: RunningGateway, words: RegExp): Promise<void> {
  const ready = await running.get(`${running.ops}/readyz`)
  t.equal(ready.status, 503)
  t.match(ready.text, words)
  t.equal((await running.get(`${running.ops}/livez`)).status, 200)
}

for (const [name, calls, how, words] of [
  ['a sync fails (EIO)', 'fdatasync', 'error=EIO:when=9+', /\[-] ledger: .*EIO.*restart the gateway/],
  ['the disk is full (ENOSPC)', 'pwrite64', 'error=ENOSPC:when=140+', /\[-] ledger: .*(full|disk).*restart the gateway/],
] as const) {
  const wrap = disk({ calls, how })
  t.test(name, { skip: typeof wrap === 'string' && wrap }, async t => {
    const up = await provider(t, chat())
    const failing = await gateway(t, power(up.url), { wrap: wrap as readonly string[] })
    const answered = await askUntilClosed(t, failing)
    t.ok(answered.length >= 2, `${answered.length} were answered before`)
    await closed(t, failing, words)
    const seen = up.seen.length
    t.equal((await failing.post('/v1/chat/completions', BODY)).status, 503)
    t.equal(up.seen.length, seen, 'what is not held is not forwarded')
    await failing.kill()

    const restarted = await gateway(t, power(up.url), { folder: failing.folder })
    t.equal((await restarted.get(`${restarted.ops}/readyz`)).status, 200)
    t.equal((await restarted.post('/v1/chat/completions', BODY)).status, 200)
    await restarted.stop()
    await inspect(restarted.folder, async ledger => {
      const settled = new Set((await ledger.records({ state: 'settled' })).map(({ id }) => id))
      t.strictSame(
        answered.filter(id => !settled.has(id)),
        [],
        'all that was answered is billed',
      )
      t.strictSame(await ledger.verify(), [])
      t.strictSame(await ledger.open(), [])
    })
  })
}

t.test('the file is removed while the gateway runs: readiness and clients hear of it', async t => {
  const up = await provider(t, chat())
  const running = await gateway(t, yaml(up.url))
  t.equal((await running.post('/v1/chat/completions', BODY)).status, 200)
  rmSync(join(running.folder, 'data', 'ledger.db'))
  await closed(t, running, /\[-] ledger: .*ledger\.db was removed while the gateway ran: bring back the right file.*restart the gateway/)
  t.match((await running.post('/v1/chat/completions', BODY)).json, { error: { code: 'ledger_unavailable' } })
  t.equal(up.seen.length, 1)
  await running.kill()
})

t.test('a file that can not be used stops the start, with what to do', async t => {
  const up = await provider(t, chat())
  const running = await gateway(t, yaml(up.url))
  await t.rejects(gateway(t, yaml(up.url), { folder: running.folder }), /is open in another process: stop that gateway/, 'a second gateway')
  t.equal((await running.post('/v1/chat/completions', BODY)).status, 200, 'the first one goes on')
  await running.stop()
  const path = join(running.folder, 'data', 'ledger.db')
  const whole = readFileSync(path)
  writeFileSync(path, whole.subarray(0, 4096))
  await t.rejects(gateway(t, yaml(up.url), { folder: running.folder }), /is damaged: restore a backup/, 'a file that was cut off')
  t.strictSame(readFileSync(path), whole.subarray(0, 4096), 'is left as it is')
  rmSync(path)
  const kept = yaml(up.url).replace('durability: process', 'durability: process, create: false')
  await t.rejects(
    gateway(t, kept, { folder: running.folder }),
    /does not exist and ledger\.create is false: bring back/,
    'a file that is gone',
  )
})

t.test('a stop does not wait for an answer that is read for its usage alone', async t => {
  const up = await provider(t, () => {})
  const running = await gateway(t, yaml(up.url, { provider: 'on_disconnect: drain', more: 'drain_timeout: 200ms' }))
  const talking = talk(`${running.url}/v1/chat/completions`, { body: BODY })
  talking.head.catch(() => {})
  talking.ended.catch(() => {})
  while (up.seen.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
  const began = performance.now()
  t.equal(await running.stop(), 0)
  t.ok(performance.now() - began < 20_000, 'the stop took its drain_timeout, and not more')
  t.match(await running.records(), [{ state: 'partial', ended_by: 'drain', status: 499 }])
})
