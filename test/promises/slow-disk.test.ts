import { spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { talk } from '../support/client.js'
import { gateway, inspect, yaml } from '../support/gateway.js'
import { chat, type OpenStream, openStream, provider } from '../support/provider.js'
import { disk } from '../support/slow-disk.js'

/*
 * A disk that is slow, or fails, under a gateway that waits for it (durability: power).
 */

const CHAT = '/v1/chat/completions'
const BODY = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] }
const SYNC_MS = 200
const slow = disk({ calls: 'fdatasync', how: `delay_enter=${SYNC_MS * 1000}` })
const power = (url: string): string => yaml(url).replace('durability: process', 'durability: power')

t.test(
  'a disk that takes 200 ms: requests wait for it before they are forwarded, streams under way do not',
  { skip: typeof slow === 'string' && slow },
  async t => {
    const up = await provider(t)
    const running = await gateway(t, power(up.url), { wrap: slow as readonly string[] })
    let stream!: OpenStream
    up.script = (seen, response) => {
      stream = openStream(seen, response)
      stream.say('Once ')
    }
    const talking = talk(running.url + CHAT, { body: { ...BODY, stream: true } })
    await talking.until('Once ')

    const waits: number[] = []
    const durations: number[] = []
    const asked = new Map<string, number>()
    const reply = chat()
    up.script = (seen, response, request) => {
      waits.push(performance.now() - (asked.get(seen.body.messages[0].content) ?? Number.NaN))
      return reply(seen, response, request)
    }
    const ask = async (client: string): Promise<void> => {
      for (let i = 0; i < 2; i++) {
        const content = `${client} ${i}`
        const started = performance.now()
        asked.set(content, started)
        await running.post(CHAT, { ...BODY, messages: [{ role: 'user', content }] })
        durations.push(performance.now() - started)
      }
    }
    /** Delays of the chunks that flow while 8 clients wait for the disk, the shortest first. */
    const round = async (number: number): Promise<number[]> => {
      let over = false
      const all = Promise.all(Array.from({ length: 8 }, (_, client) => ask(`${number} ${client}`))).then(() => {
        over = true
      })
      const said: number[] = []
      while (!over) {
        said.push(performance.now())
        stream.say(`#${number} ${said.length}.`)
        await sleep(10)
      }
      await all
      await talking.until(`#${number} ${said.length}.`)
      const came = (i: number): number =>
        talking.pieces.find(piece => piece.text.includes(`#${number} ${i + 1}.`))?.at ?? Number.POSITIVE_INFINITY
      return said.map((at, i) => came(i) - at).sort((a, b) => a - b)
    }
    // A machine that is busy with something else may spoil one round; a disk that holds up the event loop spoils all.
    let p99 = Number.POSITIVE_INFINITY
    for (let i = 0; i < 20 && p99 >= 50; i++) {
      const delays = await round(i)
      p99 = delays[Math.floor(delays.length * 0.99)] as number
      t.comment(`${delays.length} chunks: median ${delays[delays.length >> 1]?.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`)
    }
    t.ok(p99 < 50, `p99 ${p99} ms`)
    t.ok(Math.min(...waits) >= SYNC_MS, `forwarded ${Math.min(...waits)} ms after it was asked at the earliest`)
    t.ok(Math.min(...durations) >= 2 * SYNC_MS, 'and answered when the settlement was durable, too')
    const finished = performance.now() // before it is written: the gateway may have it before we go on
    stream.finish({ prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 })
    await talking.until('[DONE]')
    const doneMs = (talking.pieces.at(-1)?.at ?? 0) - finished
    t.ok(doneMs >= SYNC_MS, `[DONE] comes ${doneMs} ms later, when the settlement is durable`)
  },
)

const noAttach = typeof slow === 'string' ? slow : whyNotAttach()

t.test(
  'a disk that fails: nothing is admitted, nothing is told as whole, and a start on a mended disk goes on from there',
  { skip: noAttach },
  async t => {
    const up = await provider(t)
    const running = await gateway(t, power(up.url))
    t.equal((await running.post(CHAT, BODY)).status, 200)
    let stream!: OpenStream
    up.script = (seen, response) => {
      stream = openStream(seen, response)
      stream.say('Once ')
    }
    const talking = talk(running.url + CHAT, { body: { ...BODY, stream: true } })
    await talking.until('Once ')
    up.script = chat()

    const breaker = spawn('strace', [
      '-f',
      '-q',
      '-o',
      '/dev/null',
      '-e',
      'trace=fdatasync',
      '-e',
      'inject=fdatasync:error=EIO',
      '-p',
      String(running.process.pid),
    ])
    t.teardown(() => breaker.kill('SIGKILL'))
    const { pid } = running.process
    const traced = (task: string) => /^TracerPid:\t[1-9]/m.test(readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8'))
    while (!readdirSync(`/proc/${pid}/task`).every(traced)) await sleep(5)
    const seen = up.seen.length
    for (let i = 0; i < 3; i++) {
      const { status, headers, json } = await running.post(CHAT, BODY)
      t.match({ status, json }, { status: 503, json: { error: { code: 'ledger_unavailable', type: 'service_unavailable', param: null } } })
      t.equal(headers.get('retry-after'), '1')
      t.notMatch(json.error.message, /EIO|ledger\.db/, 'the operator’s matter')
    }
    t.equal(up.seen.length, seen, 'none of them was forwarded')
    const ready = await running.get(`${running.ops}/readyz`)
    t.equal(ready.status, 503)
    t.match(ready.text, /ledger: .*EIO/)

    stream.finish({ prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 })
    await talking.ended
    t.notMatch(talking.text(), /\[DONE\]/)
    t.match(talking.text(), /data: \{"error":\{.*"code":"ledger_unavailable".*\n\n$/)

    await running.kill()
    const next = await gateway(t, power(up.url), { folder: running.folder })
    t.equal((await next.post(CHAT, BODY)).status, 200)
    t.equal(await next.stop(), 0)
    await inspect(next.folder, async ledger => {
      t.same(await ledger.verify(), [])
      t.same(await ledger.open(), [])
      t.ok((await ledger.records({ state: 'settled' })).length >= 2)
    })
  },
)

/** False where strace can meddle with a process that runs; else why it can not. */
function whyNotAttach(): string | false {
  const sleeper = spawn('sleep', ['30'], { stdio: 'ignore' })
  const { stderr } = spawnSync('strace', ['-o', '/dev/null', '-p', String(sleeper.pid)], { encoding: 'utf8', timeout: 300 })
  sleeper.kill('SIGKILL')
  return /not permitted|denied/i.test(stderr) ? `strace may not attach to a process here: ${stderr.trim()}` : false
}
