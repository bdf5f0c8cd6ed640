import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openBooks } from '../src/control/books.js'
import { connectTo } from '../src/control/client.js'
import type { LiveEvent, State } from '../src/control/live.js'
import { addressOf, socketOf } from '../src/control/place.js'
import { decode, decodeRecord, encode, encodeRecord } from '../src/control/wire.js'
import { startControl } from '../src/control.js'
import { openLedger } from '../src/ledger/sqlite.js'
import type { Access } from '../src/telemetry/log.js'
import type { RecentExchange } from '../src/telemetry/recent.js'
import { request } from './support/command.js'
import { fakeTimers } from './support/timers.js'

const AT = Date.parse('2026-07-01T12:00:00+03:30')

async function controlled(t: Test, path = join(t.testdir(), 'ledger.db')) {
  const options = { path, durability: 'process', create: true } as const
  const ledger = await openLedger(options)
  const faults: unknown[] = []
  const control = await startControl({ ledger, path, failed: error => faults.push(error) })
  if (control === null) throw new Error('no socket')
  t.teardown(async () => {
    await control.close()
    await ledger.close()
  })
  return { ledger, control, faults, path, books: await openBooks(options) }
}

t.test('the socket lies beside the file, for its owner alone, and goes with the gateway', async t => {
  const { control, path, books } = await controlled(t)
  t.equal(control.socket, `${path}.sock`)
  t.equal(lstatSync(control.socket).mode & 0o777, 0o600)
  t.ok(lstatSync(control.socket).isSocket())
  t.equal(books.running, true)
  await control.close()
  t.notOk(existsSync(control.socket))
})

t.test('the same operations through the socket and on the file', async t => {
  const { ledger, control, books, path } = await controlled(t)
  const credit = { id: 'x', account: 'acme', amount: 9_007_199_254_740_991n, note: 'ریال', at: AT }
  const results = async (one: typeof books) => ({
    wallet: await one.ask('wallet', { account: 'acme' }),
    wallets: await one.ask('wallets', { after: 'ac' }),
    accounts: await one.ask('accounts', {}),
    credits: await one.ask('credits', { account: 'acme', limit: 5 }),
    holds: await one.ask('holds', {}),
    usage: await one.ask('usage', { by: ['key', 'day'], timezone: 'Asia/Tehran', calendar: 'gregorian' }),
    verify: await one.ask('verify', {}),
    records: await (async () => {
      const all = []
      for await (const record of one.records({ key: 'a' })) all.push(record)
      return all
    })(),
  })
  t.match(await books.ask('book', { credit, overdraw: false }), { outcome: 'credited', wallet: { credited: credit.amount }, credit })
  for (let i = 0; i < 250; i++) await request(ledger, { at: AT + i, rial: BigInt(i) })
  await request(ledger, { at: AT, state: 'held' })
  await request(ledger, { at: AT, key: 'b', state: 'voided' })
  const through = await results(books)
  t.equal(through.records.length, 250)
  t.match(through.usage, [
    { group: { key: 'a', day: '2026-07-01' }, requests: 250, cost_rial: 31_125n },
    { group: { key: 'b' }, failed: 1 },
  ])
  await control.close()
  await ledger.close()
  const alone = await openBooks({ path, durability: 'process', create: false })
  t.equal(alone.running, false)
  t.strictSame(await results(alone), through)
  await alone.close()
})

t.test('one idempotency key, sent two hundred times at once: credited once', async t => {
  const { ledger, books } = await controlled(t)
  const credit = { id: 'once', account: 'acme', amount: 100n, note: '', at: AT }
  const outcomes = await Promise.all(Array.from({ length: 200 }, () => books.ask('book', { credit, overdraw: false })))
  t.equal(outcomes.filter(({ outcome }) => outcome === 'credited').length, 1)
  t.equal(outcomes.filter(({ outcome }) => outcome === 'already_credited').length, 199)
  t.match(await ledger.wallet('acme'), { credited: 100n })
})

t.test('debits at once take out no more than there is', async t => {
  const { ledger, books } = await controlled(t)
  await ledger.credit({ id: 'x', account: 'acme', amount: 100n, note: '', at: AT })
  const debit = (i: number) => ({ id: `d${i}`, account: 'acme', amount: -30n, note: '', at: AT })
  const outcomes = await Promise.all(Array.from({ length: 10 }, (_, i) => books.ask('book', { credit: debit(i), overdraw: false })))
  t.equal(outcomes.filter(({ outcome }) => outcome === 'credited').length, 3)
  t.equal(outcomes.filter(({ outcome }) => outcome === 'short').length, 7)
  t.match(await ledger.wallet('acme'), { credited: 10n })
})

t.test('a socket that a crash has left is replaced; what is in its way otherwise is left alone', async t => {
  // Short enough for sockets that are not ours.
  const folder = mkdtempSync(join(tmpdir(), 'control-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'ledger.db')
  const listener = `require('node:net').createServer().listen(${JSON.stringify(`${path}.sock`)}, () => process.send('up'))`
  const script = join(folder, 'listener.cjs')
  writeFileSync(script, listener)
  const crashing = fork(script)
  await once(crashing, 'message')
  crashing.kill('SIGKILL')
  await once(crashing, 'exit')
  t.ok(existsSync(`${path}.sock`), 'it is still there')
  const { books } = await controlled(t, path)
  t.strictSame(await books.ask('accounts', {}), [])

  const other = join(folder, 'other.db')
  const ledger = await openLedger({ path: other, durability: 'process', create: true })
  t.teardown(() => ledger.close())
  const failed = (error: unknown) => t.fail(`${error}`)
  writeFileSync(`${other}.sock`, 'a file')
  await t.rejects(startControl({ ledger, path: other, failed }), { message: /is in the way and is no socket/ })
  t.ok(existsSync(`${other}.sock`))

  const third = join(folder, 'third.db')
  const stranger = createServer().listen(`${third}.sock`)
  await once(stranger, 'listening')
  t.teardown(() => stranger.close())
  await t.rejects(startControl({ ledger, path: third, failed }), { message: /another process answers on .*third\.db\.sock/ })
})

t.test('paths that are too long for a socket', async t => {
  const folder = join(t.testdir(), 'f'.repeat(100), 'g'.repeat(100))
  mkdirSync(folder, { recursive: true })
  if (process.platform === 'linux') {
    const { books, control } = await controlled(t, join(folder, `${'n'.repeat(150)}.db`))
    t.match(control.socket, /\/ledger-[0-9a-f]{16}\.sock$/)
    t.strictSame(await books.ask('accounts', {}), [])
    await control.close()
    t.notOk(existsSync(control.socket))
  }
  t.throws(() => addressOf(join(folder, 'ledger.db.sock'), 'darwin'), {
    message: /is too long for a socket .* choose a shorter ledger\.path/,
  })
  t.equal(socketOf(':memory:'), null)
  t.equal(socketOf('/data/ledger.db', 'win32'), null)
})

/** Bytes as another program might send them. */
function post(socketPath: string, path: string, body: string, method = 'POST'): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ socketPath, path, method, agent: false }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode, text }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

t.test('what cannot be asked is refused with words, and changes nothing', async t => {
  const { ledger, control, faults } = await controlled(t)
  const address = addressOf(control.socket)
  t.teardown(() => address.close())
  const credit = { id: 'x', account: 'acme', amount: '5', note: '', at: AT }
  const rows: [string, string, number, RegExp][] = [
    ['/frob', '{}', 404, /no operation .*frob.*wallet, wallets, accounts/],
    ['/toString', '{}', 404, /no operation/],
    ['/wallet', '{', 400, /no JSON/],
    ['/wallet', '[]', 400, /a JSON object/],
    ['/wallet', '{}', 400, /account is a text/],
    ['/wallet', `{"account":"${'x'.repeat(70_000)}"}`, 400, /at most 65536 bytes/],
    ['/wallets', '{}', 400, /after is a text/],
    ['/book', '{}', 400, /credit is missing/],
    ['/book', JSON.stringify({ credit: { ...credit, amount: 5 } }), 400, /amount is a whole number/],
    ['/book', JSON.stringify({ credit: { ...credit, amount: '1.5' } }), 400, /is no amount/],
    ['/book', JSON.stringify({ credit: { ...credit, amount: '0' } }), 400, /other than 0/],
    ['/book', JSON.stringify({ credit: { ...credit, amount: '9007199254740992' } }), 400, /beyond 9007199254740991/],
    ['/book', JSON.stringify({ credit: { ...credit, note: null } }), 400, /note is a text/],
    ['/credits', '{"account":"acme","limit":0}', 400, /limit/],
    ['/usage', '{"by":["key; DROP TABLE records"],"timezone":"UTC","calendar":"gregorian"}', 400, /by is a list of/],
    ['/usage', '{"by":[],"timezone":"Mars","calendar":"gregorian"}', 400, /no time zone/],
    ['/usage', '{"by":[],"timezone":"UTC","calendar":"lunar"}', 400, /calendar/],
    ['/records', '{"since":"x"}', 400, /since is in milliseconds/],
    ['/backup', '{"path":"relative.db"}', 400, /absolute/],
  ]
  for (const [path, body, status, words] of rows) {
    const answer = await post(address.path, path, body)
    t.equal(answer.status, status, `${path} ${body.slice(0, 60)}`)
    t.match(JSON.parse(answer.text).error, words)
  }
  t.equal((await post(address.path, '/wallet', '', 'GET')).status, 405)
  t.strictSame(await ledger.accounts(), [])
  t.strictSame(faults, [])
})

t.test('a ledger that has failed says so', async t => {
  const { ledger, books, faults } = await controlled(t)
  await ledger.close()
  await t.rejects(books.ask('wallet', { account: 'acme' }), { message: 'the ledger is closed' })
  t.equal(faults.length, 1)
})

t.test('a backup under load is whole', async t => {
  const { ledger, books, path } = await controlled(t)
  await ledger.credit({ id: 'x', account: 'acme', amount: 1_000_000n, note: '', at: AT })
  for (let i = 0; i < 3000; i += 100)
    await Promise.all(Array.from({ length: 100 }, (_, j) => request(ledger, { at: AT + i + j, rial: 1n })))
  let over = false
  let more = 0
  const load = (async () => {
    for (; !over; more++) await request(ledger, { at: AT + 10_000 + more, rial: 1n })
  })()
  const copy = `${path}.copy`
  await books.ask('backup', { path: copy })
  over = true
  await load
  t.ok(more > 0, `${more} requests meanwhile`)
  const opened = await openLedger({ path: copy, durability: 'process', create: false })
  t.strictSame(await opened.verify(), [])
  const { posted } = await opened.wallet('acme')
  t.ok(posted >= 3000n && posted <= 3000n + BigInt(more), `${posted}`)
  t.equal((await opened.usage({ by: [], timezone: 'UTC', calendar: 'gregorian' }))[0]?.cost_rial, posted)
  await opened.close()
})

t.test('amounts cross the wire with all their digits', async t => {
  const value = {
    amount: -9_007_199_254_740_993n,
    note: '9007199254740993n',
    cost_rial: 10n ** 20n,
    input_tokens: 5,
    list: [{ credited: 0n }],
  }
  t.strictSame(decode(encode(value)), value)
  t.throws(() => decode('{"amount":"5n"}'), SyntaxError)
  const { ledger } = await controlled(t)
  await request(ledger, { at: AT, rial: 77n })
  const [record] = await ledger.records({})
  if (record === undefined) throw new Error('no record')
  t.strictSame(decodeRecord(encodeRecord(record)), record)
  t.strictSame(decodeRecord(encodeRecord({ ...record, cost_rial: null, overrun_rial: null })), {
    ...record,
    cost_rial: null,
    overrun_rial: null,
  })
})

t.test('watching: what ends from then on, the state, and no more memory than a bound for a watcher that does not read', async t => {
  const path = join(t.testdir(), 'ledger.db')
  const ledger = await openLedger({ path, durability: 'process', create: true })
  const listeners = new Set<(exchange: RecentExchange) => void>()
  const state: State = { at: AT, version: '1', in_flight: 1, open_holds: 2, held_rial: 2n ** 60n, oldest_hold_at: null }
  const recent = {
    watch: (listener: (exchange: RecentExchange) => void = () => {}) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const control = await startControl({ ledger, path, live: { recent, state: () => state }, failed: error => t.fail(String(error)) })
  if (control === null) throw new Error('no socket')
  t.teardown(() => ledger.close())
  const end = (request_id: string): void => {
    const line = { request_id, cost_rial: 2n ** 60n, held_rial: null } as Access
    for (const listener of listeners) listener({ line, state: 'settled' } as RecentExchange)
  }

  const remote = await connectTo(control.socket)
  if (remote === null) throw new Error('nobody answers')
  const leaving = new AbortController()
  const seen: LiveEvent[] = []
  for await (const event of remote.watch(leaving.signal)) {
    seen.push(event)
    if (seen.length === 1) end('req_1')
    else leaving.abort()
  }
  t.strictSame(seen.slice(0, 2), [
    { kind: 'state', state },
    { kind: 'ended', state: 'settled', line: { request_id: 'req_1', cost_rial: 2n ** 60n, held_rial: null } },
  ])
  while (listeners.size > 0) await new Promise(resolve => setTimeout(resolve, 5))

  const slow = httpRequest({ socketPath: addressOf(control.socket).path, path: '/watch', method: 'POST', agent: false })
  slow.end()
  const [response] = (await once(slow, 'response')) as [IncomingMessage]
  response.pause()
  while (listeners.size < 1) await new Promise(resolve => setTimeout(resolve, 5))
  const count = 20_000
  for (let i = 0; i < count; i++) end(`req_${'x'.repeat(500)}${i}`)
  // It reads again: what is left of the flood comes, and then what was left out is told.
  let text = ''
  response.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  response.resume()
  while (!text.includes('"kind":"missed"')) await new Promise(resolve => setTimeout(resolve, 20))
  const missed = Number(/"kind":"missed","count":(\d+)/.exec(text)?.[1])
  t.equal(missed + (text.match(/"kind":"ended"/g)?.length ?? 0), count, 'told or counted')
  t.ok(missed > count / 2 && text.length < 4 * 1024 * 1024, `${missed} left out`)

  // No time passes from here: what waited for the watcher to go would wait for ever.
  fakeTimers(t)
  await control.close()
  t.equal(listeners.size, 0)
  slow.destroy()
})
