import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { gateway, yaml } from '../support/gateway.js'
import { program } from '../support/program.js'
import { chat, provider } from '../support/provider.js'

/*
 * The running program is killed, and what lies beside its ledger is not what it was: no start goes on by itself from another balance, and none is refused
 * that lost nothing.
 */

const BODY = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] }

t.test('the log is gone, or is another one, after kill -9: the start is refused, until it is back or its loss is accepted', async t => {
  const up = await provider(t, chat())
  let running = await gateway(t, yaml(up.url))
  const again = () => gateway(t, yaml(up.url), { folder: running.folder })
  const path = join(running.folder, 'data', 'ledger.db')
  const log = `${path}-wal`
  const ask = async () => t.equal((await running.post('/v1/chat/completions', BODY)).status, 200)
  await ask()
  await running.kill()
  const first = readFileSync(log)
  running = await again()
  await ask()
  await running.kill()
  const second = readFileSync(log)
  for (const [name, take, words] of [
    [
      'gone',
      () => rmSync(log),
      /ledger\.db was in use when its gateway ended, and its log ledger\.db-wal is missing or empty: bring the right/,
    ],
    ['empty', () => writeFileSync(log, ''), /is missing or empty/],
    [
      'the one before',
      () => writeFileSync(log, first),
      /ledger\.db-wal is not the log that it was written with: bring the right ledger\.db-wal back/,
    ],
    ['cut off', () => writeFileSync(log, second.subarray(0, 2000)), /is missing or empty/],
  ] as const) {
    take()
    await t.rejects(again(), words, name)
    await t.rejects(again(), /or restore a backup.*model-gateway ledger accept-loss/, name)
    t.match(await program(['wallet', 'show', '-c', join(running.folder, 'gateway.yaml')]), { code: 1, stderr: words })
  }
  writeFileSync(log, second)
  running = await again()
  await ask()
  t.match(await program(['ledger', 'accept-loss', '-c', join(running.folder, 'gateway.yaml')]), { code: 1, stderr: /a gateway runs on/ })
  await running.kill()

  rmSync(log)
  t.match(await program(['ledger', 'accept-loss', '-c', join(running.folder, 'gateway.yaml')]), {
    code: 0,
    stderr: /every counter and balance agrees/,
  })
  running = await again()
  await ask()
  t.equal(await running.stop(), 0)
  t.equal((await running.records()).length, 3, 'the request of the lost log is gone, the others are there')
  running = await again()
  t.equal(await running.stop(), 0)
})

t.test('a backup, restored after kill -9 as its help says', async t => {
  const up = await provider(t, chat())
  let running = await gateway(t, yaml(up.url))
  const path = join(running.folder, 'data', 'ledger.db')
  const copy = join(running.folder, 'copy.db')
  const config = ['-c', join(running.folder, 'gateway.yaml')]
  t.equal((await running.post('/v1/chat/completions', BODY)).status, 200)
  t.match(await program(['ledger', 'backup', copy, ...config]), { code: 0 })
  t.equal((await running.post('/v1/chat/completions', BODY)).status, 200)
  await running.kill()
  copyFileSync(copy, path)
  const again = () => gateway(t, yaml(up.url), { folder: running.folder })
  await t.rejects(again(), /is a backup, but the log ledger\.db-wal beside it is of a ledger that was in use: move ledger\.db-wal away/)
  rmSync(`${path}-wal`)
  running = await again()
  t.equal((await running.post('/v1/chat/completions', BODY)).status, 200)
  t.equal(await running.stop(), 0)
  t.equal((await running.records()).length, 2)
  t.match(await program(['ledger', 'verify', ...config]), { code: 0 })
})
