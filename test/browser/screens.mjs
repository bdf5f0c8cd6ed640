import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { requestIds, ulids } from '../../dist/src/ids.js'
import { openLedger } from '../../dist/src/ledger/sqlite.js'
import { open, tab } from './support/browser.mjs'
import { gateway, json, openStream, provider } from './support/gateway.mjs'

/*
 * node screens.mjs: makes the pictures of the README anew, from a gateway that has been busy for a minute and has a past of two weeks.
 */
const HERE = join(import.meta.dirname, 'screens')
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
let seed = 7
const random = () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}
const pick = list => list[Math.floor(random() * list.length)]

const far = await provider(async (seen, response) => {
  const { body } = seen
  await sleep(90 + random() * 420)
  if (body.model === 'gpt-4o-mini' && random() < 0.08) return json(response, 500, { error: { message: 'no' } })
  const output = 30 + Math.floor(random() * 240)
  const usage = { prompt_tokens: 800, completion_tokens: output, total_tokens: 800 + output, prompt_tokens_details: { cached_tokens: 512 } }
  if (body.stream !== true)
    return json(response, 200, {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: body.model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'Tea, then.' }, finish_reason: 'stop' }],
      usage,
    })
  const stream = openStream(seen, response)
  for (let i = 0; i < output / 12; i++) {
    stream.say('word word word ')
    await sleep(45)
  }
  stream.finish(usage)
})
const running = await gateway(far.url, past)
const { ask } = running
const long = 'Tell me a story about tea. '.repeat(60)
const story = [{ role: 'user', content: long }]

/** Two weeks of records, with quiet weekends. */
async function past(folder) {
  // So that the pictures show gateway.yaml by its name alone.
  process.chdir(folder)
  mkdirSync(join(folder, 'data'))
  const ledger = await openLedger({ path: join(folder, 'data', 'ledger.db'), durability: 'process', create: true })
  const newId = requestIds(ulids())
  const today = Date.now()
  for (let day = 20; day > 0; day--) {
    const at = today - day * 86_400_000
    const weekday = new Date(at).getUTCDay()
    const busy = (weekday === 4 || weekday === 5 ? 0.35 : 1) * (0.7 + random() * 0.6)
    for (let i = 0; i < 12; i++) {
      const when = at + i * 1_200_000
      for (const [key, account, model, share] of [
        ['checkout', 'initech', 'openai/gpt-4o-mini', 9],
        ['checkout', 'initech', 'openai/gpt-4o', 22],
        ['support-bot', 'initech', 'openai/gpt-4o', 41],
        ['support-bot', 'initech', 'openai/gpt-4o-mini', 13],
        ['nightly', 'globex', 'openai/gpt-4o-mini', 3],
        ['demo', 'acme', 'sandbox/echo', 1],
      ]) {
        const id = newId(when)
        const record = {
          key,
          account,
          plan: 'team',
          surface: 'chat',
          model,
          provider: model.split('/')[0],
          stream: false,
          client_request_id: null,
          trace_id: null,
          held_tokens: 1,
          held_rial: 0n,
          price: 'null',
        }
        await ledger.hold({ id, at: when, claims: [], record })
        await ledger.settle(id, {
          state: 'settled',
          actual: {},
          record: {
            ended_at: when + 800,
            ended_by: 'provider',
            usage_source: 'provider',
            input_tokens: Math.round(share * busy * 2100),
            cached_input_tokens: 0,
            output_tokens: Math.round(share * busy * 500),
            reasoning_tokens: 0,
            cost_rial: BigInt(Math.round(share * busy * 2600)),
            overrun_rial: 0n,
            price: 'null',
            status: 200,
            code: null,
            provider: record.provider,
            upstream_request_id: null,
            attempts: '[]',
            ttft_ms: null,
            duration_ms: 800,
          },
        })
      }
    }
  }
  await ledger.close()
}

const traffic = async until => {
  const under = new Set()
  while (performance.now() < until) {
    const kind = random()
    const asked =
      kind < 0.1
        ? ask('demo')
        : kind < 0.45
          ? ask('checkout', { model: 'openai/gpt-4o-mini', stream: true, messages: story })
          : kind < 0.82
            ? ask('support-bot', {
                model: pick(['openai/gpt-4o', 'openai/gpt-4o-mini', 'default']),
                stream: random() < 0.5,
                messages: story,
              })
            : kind < 0.96
              ? ask('nightly', { model: 'openai/gpt-4o-mini', messages: story, max_tokens: 300 })
              : kind < 0.97
                ? ask('a-wrong-key')
                : ask('demo', { max_tokens: 4096, messages: [{ role: 'user', content: long.repeat(20) }] })
    under.add(asked)
    void asked.finally(() => under.delete(asked))
    await sleep(25 + random() * (120 + 130 * Math.sin(performance.now() / 9000)))
  }
  await Promise.all(under)
}
const busy = traffic(performance.now() + Number(process.argv[2] ?? 140) * 1000)
await sleep(Number(process.argv[2] ?? 140) * 500)

async function shoot(name, path, { find, ...given }) {
  const { page } = await tab({ width: 1280, height: 800, ...given })
  await open(page, running.page, path)
  await sleep(1500)
  if (find !== undefined) {
    if (find.refused) await page.locator('[data-which=refused]').click()
    await page.locator('#search').fill(find.text)
    await page.locator('#rows li:not([hidden]) a').first().click()
    await page.locator('#drawer').waitFor()
    await page.locator('#search').evaluate(input => input.blur())
    await sleep(400)
  }
  const to = join(HERE, `${name}.png`)
  await page.screenshot({ path: to })
  await page.context().close()
  console.log(`${name}.png ${Math.round(statSync(to).size / 1024)} KiB`)
}

const refusal = { refused: true, text: 'rate_limit_rpm' }
const phone = { width: 360, height: 740, scale: 1.5, touch: true }
await shoot('requests-light', '/', {})
await shoot('refusal-light', '/', { find: refusal })
await shoot('refusal-dark', '/', { find: refusal, scheme: 'dark' })
await shoot('decided-dark', '/', { find: { text: 'gpt-4o-mini' }, scheme: 'dark' })
await shoot('spend-light', '/spend?range=30d', {})
await shoot('limits-dark', '/limits', { scheme: 'dark' })
await shoot('providers-light', '/providers', { height: 480 })
await shoot('phone-light', '/', phone)
await shoot('phone-dark', '/', { ...phone, find: refusal, scheme: 'dark' })
await busy
await running.stop()
process.exit(0)
