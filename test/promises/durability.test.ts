import t from 'tap'
import { talk } from '../support/client.js'
import { AUTH, gateway, inspect, yaml } from '../support/gateway.js'
import { chat, provider } from '../support/provider.js'
import { disk } from '../support/slow-disk.js'
import { killLoop } from './kill-loop.js'

/*
 * A hold is durable before its request is forwarded, a settlement before the last byte, and kill -9 at any instant loses neither. What is
 * found is the file as the killed process left it.
 */

// Writes take a while: what is sent before it is written is then certainly seen before it is written.
const slow = disk({ calls: 'pwrite64,fdatasync', how: 'delay_enter=2000' })
const wrap = typeof slow === 'string' ? [] : slow
if (typeof slow === 'string') t.comment(`the disk is as fast as it is: ${slow}`)

const USAGE = { prompt_tokens: 321, completion_tokens: 45, total_tokens: 366 }
const COST = 321n + 2n * 45n
const BODY = { model: 'up/m', max_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] }

t.jobs = 2
for (const durability of ['process', 'power'] as const) {
  for (const stream of [false, true]) {
    const config = (url: string): string => yaml(url).replace('durability: process', `durability: ${durability}`)
    const what = `${stream ? 'a stream' : 'a whole answer'}, durability ${durability}`

    t.test(`${what}: when the provider sees a request, its hold is in the file`, async t => {
      const up = await provider(t)
      const running = await gateway(t, config(up.url), { wrap })
      // A connection that is open already takes a request at once.
      await running.post('/v1/chat/completions', BODY)
      const found = new Promise<void>((resolve, reject) => {
        up.script = () => {
          const look = async (): Promise<void> => {
            await running.kill()
            await inspect(running.folder, async ledger => {
              const holds = await ledger.open()
              t.same(
                holds.map(hold => hold.record.client_request_id),
                ['mine'],
              )
              t.ok((holds[0]?.record.held_rial ?? 0n) > 0n)
              t.same(await ledger.verify(), [])
            })
          }
          look().then(resolve, reject)
        }
      })
      talk(`${running.url}/v1/chat/completions`, { body: { ...BODY, stream }, headers: { ...AUTH, 'x-request-id': 'mine' } })
      await found
    })

    t.test(`${what}: when the client has its last byte, the settlement is in the file`, async t => {
      const up = await provider(t, chat({ usage: USAGE }))
      const running = await gateway(t, config(up.url), { wrap })
      const talking = talk(`${running.url}/v1/chat/completions`, { body: { ...BODY, stream } })
      const last = stream ? 'data: [DONE]\n\n' : '"total_tokens":366}}'
      await talking.until(last)
      await running.kill()
      t.equal(talking.text().slice(-last.length), last)
      const id = (await talking.head).headers['x-request-id']
      await inspect(running.folder, async ledger => {
        t.match(await ledger.records({}), [
          { id, state: 'settled', input_tokens: 321, output_tokens: 45, cost_rial: COST, ended_by: 'provider' },
        ])
        t.same(await ledger.open(), [])
        t.equal((await ledger.wallet('acme')).posted, COST)
        t.same(await ledger.verify(), [])
      })
    })
  }
}

t.test(
  'kill -9 under load: what clients received in full is billed to the Rial, what was open is recovered, and counters are exact',
  async t => {
    const { faults, ...counts } = await killLoop(t, Number(process.env.KILLS ?? 4))
    t.comment(
      Object.entries(counts)
        .map(([name, count]) => `${name} ${count}`)
        .join(', '),
    )
    t.same(faults, [])
    t.equal(counts.differenceRial, 0n)
    t.equal(counts.reconciled, counts.received)
    t.ok(counts.received > 20 && counts.recovered > 0, 'there was something to lose')
  },
)
