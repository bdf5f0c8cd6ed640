import { request as httpRequest } from 'node:http'
import t, { type Test } from 'tap'
import { gateway, KEY, type RunningGateway, yaml } from '../support/gateway.js'
import { json, provider, chat as says } from '../support/provider.js'
import { wallClock } from '../support/wall-clock.js'

/*
 * The built-in page as it is served: who may come in, what is answered, and what never is. What a browser makes of it: test/browser/.
 */

const TOKEN = 'a-token-of-sixteen'
const OPEN = { authorization: `Bearer ${TOKEN}` }
const MORE = `admin: 127.0.0.1:0\nadmin_token: ${TOKEN}\n`
const PROMPT = 'zebra-prompt-words'
const ANSWER = 'giraffe-answer-words'

interface Running extends RunningGateway {
  readonly page: string
}

async function running(t: Test, given: Parameters<typeof yaml>[1] = {}, env: Record<string, string> = {}): Promise<Running> {
  const far = await provider(t, says({ text: ANSWER, usage: { prompt_tokens: 30, completion_tokens: 20, total_tokens: 50 } }))
  const started = await gateway(t, yaml(far.url, { more: MORE, ...given }), { env })
  const { admin: address } = await started.line('listening')
  return { ...started, page: address }
}

/** A clock at the begin of a minute: none ends while something is counted in it. */
const early = (t: Test) => wallClock(t, '2026-11-21T08:44:01Z').env

const chat = (more: object = {}) => ({ model: 'default', messages: [{ role: 'user', content: PROMPT }], ...more })

/** A request whose header is as given, Host included; fetch would not send it so. */
function raw(
  url: string,
  method: string,
  headers: Record<string, string>,
): Promise<{ status: number; headers: Record<string, unknown>; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method, headers, agent: false }, response => {
      let text = ''
      response.on('data', chunk => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

t.test('the page itself is there for all who may come in, under a policy that lets nothing else in', async t => {
  const { page, get } = await running(t)
  for (const path of ['/', '/?request=req_1', '/spend?range=7d', '/limits', '/providers']) {
    const { status, headers, text } = await get(page + path, {})
    t.equal(status, 200, path)
    t.equal(headers.get('content-type'), 'text/html; charset=utf-8')
    t.equal(headers.get('cache-control'), 'no-store')
    t.equal(headers.get('x-content-type-options'), 'nosniff')
    t.equal(headers.get('referrer-policy'), 'no-referrer')
    const policy = headers.get('content-security-policy') ?? ''
    t.match(policy, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:")
    t.notMatch(policy, /unsafe|\*|https?:/)
    t.notMatch(text, /<script(?![^>]*src="\/)|<style|\son\w+=|\sstyle=|src="(?!\/)/, 'no script or style stands in it')
    const addresses = [...text.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, address = '']) => address)
    t.same(
      addresses.filter(address => !/^(\/|#|data:image\/svg)/.test(address)),
      [],
      'nothing of any other place',
    )
  }
  t.equal((await get(`${page}/page.css`, {})).headers.get('content-type'), 'text/css; charset=utf-8')
  const script = await get(`${page}/page.js`, {})
  t.equal(script.headers.get('content-type'), 'text/javascript; charset=utf-8')
  t.notMatch(script.text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?:\/\/(?!www\.w3\.org\/2000\/svg)/)
})

t.test('every figure takes the token', async t => {
  const { page, get } = await running(t)
  for (const path of ['live', 'about', 'limits', 'providers', 'spend', 'requests/req_1', 'nothing']) {
    for (const headers of [
      {},
      { authorization: 'Bearer wrong' },
      { authorization: `Bearer ${KEY}` },
      { authorization: `Basic ${TOKEN}` },
    ]) {
      const { status, json, headers: told } = await get(`${page}/api/${path}`, headers)
      t.equal(status, 401, path)
      t.same(json, { error: 'this needs the token' })
      t.equal(told.get('www-authenticate'), 'Bearer')
    }
    t.equal((await get(`${page}/api/${path}?token=${TOKEN}`, {})).status, 401, 'not in the address, which logs keep')
  }
})

t.test('it only reads', async t => {
  const { page } = await running(t)
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    for (const path of ['/', '/api/live', '/api/limits']) {
      const { status, headers } = await raw(page + path, method, { host: '127.0.0.1', ...OPEN })
      t.equal(status, 405, `${method} ${path}`)
      t.equal(headers.allow, 'GET, HEAD')
      t.equal(headers['access-control-allow-origin'], undefined)
    }
  }
  const head = await raw(`${page}/api/live`, 'HEAD', { host: '127.0.0.1', ...OPEN })
  t.equal(head.status, 200)
  t.equal(head.text, '')
})

t.test('another Host, Origin or site is refused, with the token and without', async t => {
  const { page } = await running(t)
  const host = new URL(page).host
  const rows: [Record<string, string>, number][] = [
    [{ host, ...OPEN }, 200],
    [{ host: 'localhost:1234', ...OPEN }, 200],
    [{ host, origin: page, ...OPEN }, 200],
    [{ host: `evil.example:${new URL(page).port}`, ...OPEN }, 403],
    [{ host, origin: 'http://evil.example', ...OPEN }, 403],
    [{ host, origin: 'null', ...OPEN }, 403],
    [{ host, 'sec-fetch-site': 'cross-site', ...OPEN }, 403],
    [{ host: 'evil.example' }, 403],
  ]
  for (const [headers, status] of rows) t.equal((await raw(`${page}/api/about`, 'GET', headers)).status, status, JSON.stringify(headers))
  t.equal((await raw(`${page}/`, 'GET', { host: 'evil.example' })).status, 403, 'nor the page itself')
})

t.test('a request and a refusal are told with how they were decided; nothing of what was said is', async t => {
  const { page, get, post } = await running(t, { plan: '{requests_per_minute: 2}', budget: '{daily_rial: 1000000}' }, early(t))
  const told: string[] = []
  const ask = async (path: string) => {
    const { status, text, json } = await get(`${page}/api/${path}`, OPEN)
    t.equal(status, 200, path)
    told.push(text)
    return json
  }
  const first = await post('/v1/chat/completions', chat())
  await post('/v1/chat/completions', chat())
  const third = await post('/v1/chat/completions', chat())
  await post('/v1/chat/completions', { ...chat(), temperature: 'zebra-prompt-words' })
  await post('/v1/chat/completions', chat({ model: 'zebra-prompt-words' }))
  t.same([first.status, third.status], [200, 429])

  const live = await ask('live?after=0')
  t.equal(live.seq, 5)
  t.equal(live.rows.length, 5)
  t.match(live.rows[0], {
    seq: 1,
    id: first.headers.get('x-request-id'),
    key: 'a',
    model: 'up/m',
    provider: 'up',
    status: 200,
    code: null,
    state: 'settled',
    input: 30,
    output: 20,
    rial: '70',
  })
  t.same(
    live.refused.map(({ code }: { code: string }) => code),
    ['rate_limit_rpm', 'invalid_request', 'model_not_found'],
  )
  t.equal(live.seconds.length, 120)
  t.equal(
    live.seconds.reduce((sum: number, [requests]: number[]) => sum + (requests ?? 0), 0),
    5,
  )
  t.same((await ask('live?after=4')).rows.length, 1)
  t.same((await ask('live?after=5')).rows, [])

  const settled = await ask(`requests/${first.headers.get('x-request-id')}`)
  t.equal(settled.why, null)
  t.same(
    settled.claims.map(({ policy, code, posted, held, ceiling }: Record<string, string>) => [policy, code, posted, held, ceiling]),
    [
      ['rate', 'rate_limit_rpm', '0', '0', '2'],
      ['rate', 'rate_limit_rph', '0', '0', null],
      ['rate', 'rate_limit_rpd', '0', '0', null],
      ['rate', 'rate_limit_tpm', '0', '0', null],
      ['budget', 'key_daily_token_budget_reached', '0', '0', null],
      ['budget', 'key_daily_budget_reached', '0', '0', '1000000'],
      ['budget', 'monthly_cap_reached', '0', '0', null],
      ['hold', 'insufficient_balance', '0', '0', '1000000000'],
    ],
  )
  t.match(settled.attempts, [{ target: 'up/m', result: 'answered' }])
  t.match(settled.line, { cost_rial: '70', usage_source: 'provider' })

  const refused = await ask(`requests/${third.headers.get('x-request-id')}`)
  t.match(refused.why, {
    title: 'Requests per minute: the ceiling is reached',
    figures: { ceiling: '2', posted: '2', held: '0', asked: '1', over: '1' },
    change: { at: /gateway\.yaml:\d+:\d+$/, lines: [{}, {}, { text: '    requests_per_minute: 2', mark: true }] },
  })
  t.same(refused.attempts, [])

  const today = (await ask('about')).now
  const day = new Date(today + 3.5 * 3_600_000).toISOString().slice(0, 10)
  t.match(await ask(`spend?from=${day}&to=${day}`), {
    total: { requests: 2, failed: 0, input: '60', output: '40', rial: '140' },
    days: [{ name: day, rial: '140' }],
    keys: [{ name: 'a', rial: '140' }],
    models: [{ name: 'up/m', rial: '140' }],
  })
  t.match(await ask(`spend?from=${day}&to=${day}&key=nobody`), { total: { requests: 0 }, keys: [] })

  const limits = await ask('limits?search=')
  t.match(limits.keys, [{ key: 'a', plan: 'p', account: 'acme' }])
  t.match(limits.keys[0].gauges[0], { name: 'requests_per_minute', posted: '2', held: '0', ceiling: '2' })
  t.match(limits.keys[0].gauges[1], { name: 'requests_per_hour', posted: '2', ceiling: null })
  t.match(limits.wallets, [{ account: 'acme', credited: '1000000000', posted: '140', held: '0' }])
  t.same(limits.holds, [])
  t.same((await ask('limits?search=nobody')).keys, [])

  t.match(await ask('providers'), {
    providers: [{ name: 'up', kind: 'openai', targets: [{ name: 'up/m', up: true, tries: 2, failed: 0 }] }],
  })

  const everything = told.join('\n')
  t.notMatch(everything, new RegExp([PROMPT, ANSWER, KEY, 'sk-upstream-secret', TOKEN, '127\\.0\\.0\\.1'].join('|')))
})

t.test('what is under way is shown, with what is held for it', async t => {
  let go = (): void => {}
  const waiting = new Promise<void>(resolve => {
    go = resolve
  })
  const far = await provider(t, async (_, answer) => {
    await waiting
    json(answer, 400, { error: { message: 'no' } })
  })
  const { post, get, line } = await gateway(t, yaml(far.url, { more: MORE }))
  const { admin: address } = await line('listening')
  const asked = post('/v1/chat/completions', chat())
  const until = async (found: (live: { running: { count: number; oldest: { stage: string; held_rial: string }[] } }) => boolean) => {
    for (;;) {
      const live = (await get(`${address}/api/live`, OPEN)).json
      if (found(live)) return live
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }
  const live = await until(({ running }) => running.oldest[0]?.stage === 'waiting')
  t.equal(live.running.count, 1)
  t.match(live.running.oldest[0], { key: 'a', model: 'up/m', surface: 'chat' })
  t.equal(live.holds.open, 1)
  t.equal(live.holds.rial, live.running.oldest[0].held_rial)
  const limits = (await get(`${address}/api/limits`, OPEN)).json
  t.match(limits.holds, [{ key: 'a', model: 'up/m', rial: live.holds.rial }])
  go()
  await asked
  await until(({ running }) => running.count === 0)
})

t.test('what can not be is said in words, and what is not there is not', async t => {
  const { page, get } = await running(t)
  const rows: [string, number, string][] = [
    ['spend?from=2026-02-30&to=2026-03-01', 400, '"2026-02-30" is no day: write 2026-07-28'],
    ['spend?from=2026-03-02&to=2026-03-01', 400, 'the first day is after the last'],
    ['spend?from=2020-01-01&to=2026-03-01', 400, 'that is more than 400 days'],
    ['spend', 400, '"" is no day: write 2026-07-28'],
    ['live?after=-1', 400, 'after is a whole number'],
    ['requests/req_01', 404, 'not found'],
    ['nothing', 404, 'not found'],
    ['__proto__', 404, 'not found'],
  ]
  for (const [path, status, error] of rows) {
    const answer = await get(`${page}/api/${path}`, OPEN)
    t.same([answer.status, answer.json], [status, { error }], path)
  }
  t.equal((await get(`${page}/../package.json`, {})).status, 404)
  t.equal((await get(`${page}/%2e%2e/package.json`, {})).status, 404)
})

t.test('a reload changes the token, and takes the new place of a line', async t => {
  const started = await running(t, { plan: '{requests_per_minute: 1}' }, early(t))
  const { page, get, post } = started
  await post('/v1/chat/completions', chat())
  const id = (await post('/v1/chat/completions', chat())).headers.get('x-request-id')
  const place = async (headers = OPEN) => (await get(`${page}/api/requests/${id}`, headers)).json.why.change
  const before = await place()
  await started.reload(
    yaml('http://127.0.0.1:9', {
      plan: '{requests_per_minute: 5}',
      more: `# one line more\n${MORE.replace(TOKEN, 'another-token-of-sixteen')}`,
    }).replace('ledger:', '# another\nledger:'),
  )
  t.equal((await get(`${page}/api/about`, OPEN)).status, 401)
  const after = await place({ authorization: 'Bearer another-token-of-sixteen' })
  t.not(after.at, before.at)
  t.equal(after.note, 'It was 1 then.')
  t.match(after.lines.at(-1).text, 'requests_per_minute: 5')
})

t.test('without admin there is no page, and nothing is kept for it', async t => {
  const far = await provider(t)
  const { lines } = await gateway(t, yaml(far.url))
  t.notOk(lines().some(({ admin }) => admin !== undefined))
})

t.test('a token that nobody was shown is said to be none', async t => {
  const far = await provider(t)
  const { line, get, output } = await gateway(t, yaml(far.url, { more: 'admin: 127.0.0.1:0\n' }))
  const { admin: address } = await line('listening')
  t.match(await line('nobody can open the page'), { level: 'warn' })
  t.equal((await get(`${address}/api/about`, OPEN)).status, 401)
  t.notMatch(output(), /mgp_/)
})
