import { join } from 'node:path'
import t from 'tap'
import { gateway, yaml } from '../support/gateway.js'
import { program } from '../support/program.js'
import { chat, provider } from '../support/provider.js'
import { wallClock } from '../support/wall-clock.js'

/*
 * Old usage records give way to their sums while the program runs: what it reports and proves stays the same.
 */

const BODY = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] }
const SUMMED = 'usage records from before 2026-11-22T00:00:00+03:30 were summed up by day'

t.test('ledger.retention: old records are pruned, and every report, counter and balance says what it said', async t => {
  const up = await provider(t, chat())
  const all = yaml(up.url)
  const config = all.replace('durability: process', 'durability: process, retention: 2d')
  const clock = wallClock(t, '2026-11-20T09:00:00Z')
  let running = await gateway(t, all, { env: clock.env })
  const verb = (...args: string[]) => program([...args, '-c', join(running.folder, 'gateway.yaml')])
  for (const day of ['20', '21', '22', '23']) {
    await clock.set(`2026-11-${day}T09:00:00Z`)
    for (let i = 0; i < 2; i++) t.equal((await running.post('/v1/chat/completions', BODY)).status, 200)
  }
  const { usage, wallet } = (await running.get('/v1/key')).json
  const { rows, summed_before } = JSON.parse((await verb('usage', '--json', '--group-by', 'key,model,day')).stdout)
  t.equal(rows.length, 4)
  t.equal(summed_before, null)
  await running.stop()

  await clock.set('2026-11-24T09:00:00Z')
  running = await gateway(t, config, { env: clock.env, folder: running.folder })
  t.equal((await running.line(SUMMED)).count, 4)
  const after = JSON.parse((await verb('usage', '--json', '--group-by', 'key,model,day')).stdout)
  t.strictSame(after.rows, rows)
  t.equal(after.summed_before, '2026-11-22T00:00:00+03:30')
  t.match((await running.get('/v1/key')).json, { usage: { requests_today: 0, spend_mtd_rial: usage.spend_mtd_rial }, wallet })
  t.match(await verb('ledger', 'verify'), { code: 0 })
  const lines = await verb('usage', '--records')
  t.equal(lines.stdout.trim().split('\n').length, 4)
  t.match(lines.stderr, /Requests before 2026-11-22T00:00:00\+03:30 are kept as sums of days \(ledger\.retention\)/)
  await running.kill()
  t.match(await verb('ledger', 'verify'), { code: 0 })
})
