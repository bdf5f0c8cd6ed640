import { openDatabase } from '../../src/ledger/database.js'
import { openLedger } from '../../src/ledger/sqlite.js'
import { type Window, windows } from '../../src/ledger/windows.js'

/** What a filled ledger is about; the first key and account are those of `yaml` in gateway.ts. */
export const KEYS: readonly string[] = ['a', ...Array.from({ length: 19 }, (_, i) => `app-${i + 1}`)]
export const ACCOUNTS: readonly string[] = ['acme', ...Array.from({ length: 4 }, (_, i) => `team-${i + 1}`)]
export const RECORDS_PER_DAY = 100_000

const MODELS = [
  { name: 'up/m', provider: 'up', input: 1_000_000, output: 2_000_000 },
  { name: 'openai/gpt-4o-mini', provider: 'openai', input: 157_500, output: 630_000 },
  { name: 'anthropic/claude-haiku', provider: 'anthropic', input: 840_000, output: 4_200_000 },
  { name: 'cohere/rerank', provider: 'cohere', input: 2_100_000, output: 0 },
] as const
const CREDIT = 10n ** 14n
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const STEP = (24 * HOUR) / RECORDS_PER_DAY

/**
 * Makes a ledger of so many ended records, 100,000 a day, up to the moment `until`: as if a gateway in Tehran's zone had written them, with
 * the eight counters that each request has with the default policies, and all of them as `verify` wants them. It is written by SQL alone,
 * some 100,000 records a second.
 */
export async function fillLedger(path: string, records: number, until: number): Promise<void> {
  const made = await openLedger({ path, durability: 'process', create: true })
  for (const account of ACCOUNTS) await made.credit({ id: `fill:${account}`, account, amount: CREDIT, note: 'filled', at: until })
  await made.close()
  const db = openDatabase(path)
  try {
    // Without its log, which would be as long as the file.
    for (const setting of [
      'journal_mode = DELETE',
      'synchronous = OFF',
      'locking_mode = EXCLUSIVE',
      'temp_store = MEMORY',
      'cache_size = -200000',
    ])
      db.pragma(setting)
    db.exec(TABLES)
    const model = db.prepare('INSERT INTO temp.models VALUES (?, ?, ?, ?, ?, ?)')
    for (const [i, { name, provider, input, output }] of MODELS.entries())
      model.run(i, name, provider, input, output, JSON.stringify({ input, output }))
    // Integers, which numbers of JavaScript would not be.
    const run = (sql: string, values: Readonly<Record<string, number>>) =>
      db.prepare(sql).run(Object.fromEntries(Object.entries(values).map(([name, value]) => [name, BigInt(value)])))
    db.exec('BEGIN')
    const days = daysBefore(until, records)
    const months = [...new Map(days.map(({ month }) => [month.start, month])).values()]
    const monthIds = new Map(months.map((month, i) => [month.start, 1 + i * KEYS.length]))
    const wallets = 1 + months.length * KEYS.length
    let next = wallets + ACCOUNTS.length
    for (const { day, month, from, count, first } of days) {
      const minutes = next
      const hours = minutes + 24 * 60 * KEYS.length * 2
      const daily = hours + 24 * KEYS.length
      next = daily + KEYS.length * DAILY.length
      const ids = { minutes, hours, days: daily, month: monthIds.get(month.start) as number, wallets }
      db.exec('DELETE FROM temp.facts')
      run(FACTS, { first, count, from, start: day.start })
      run(RECORDS, ids)
      run(slots('requests', 'count(*)', 'minute', MINUTE, 2, 0), { id: minutes, start: day.start })
      run(slots('tokens', 'sum(tokens)', 'minute', MINUTE, 2, 1), { id: minutes, start: day.start })
      run(slots('requests', 'count(*)', 'hour', HOUR, 1, 0), { id: hours, start: day.start })
      for (const [i, [meter, sum]] of DAILY.entries()) run(daysOf(meter, sum, i), { id: daily, start: day.start, until: day.end })
      run(SPENT, { month: ids.month })
    }
    for (const { start, end } of months) run(MONTHS, { id: monthIds.get(start) as number, start, until: end })
    run(WALLETS, { id: wallets })
    db.exec('COMMIT')
  } finally {
    db.close()
  }
}

interface Day {
  readonly day: Window
  readonly month: Window
  /** When its first record begins. */
  readonly from: number
  readonly count: number
  /** The number of its first record. */
  readonly first: number
}

function daysBefore(until: number, records: number): Day[] {
  const window = windows('Asia/Tehran', 'gregorian')
  const days: Day[] = []
  for (let first = 0; first < records; ) {
    const from = until - (records - first) * STEP
    const day = window('day', from)
    const count = Math.min(records - first, Math.ceil((day.end - from) / STEP))
    days.push({ day, month: window('month', from), from, count, first })
    first += count
  }
  return days
}

const names = (list: readonly string[]): string => list.map((name, i) => `(${i}, '${name}', '${ACCOUNTS[i % ACCOUNTS.length]}')`).join(', ')

const TABLES = `
CREATE TEMP TABLE facts (i INTEGER PRIMARY KEY, at, minute, hour, key, model, state, input, output, tokens, cost);
CREATE TEMP TABLE models (model INTEGER PRIMARY KEY, name, provider, input INTEGER, output INTEGER, price);
CREATE TEMP TABLE keys (key INTEGER PRIMARY KEY, name, account);
CREATE TEMP TABLE spent (month, key, cost, PRIMARY KEY (month, key));
INSERT INTO temp.keys VALUES ${names(KEYS)};
`

// OFFSET keeps SQLite from putting the inner expressions in the place of each use of their names. Every 50th request came to nothing.
const FACTS = `
WITH RECURSIVE
  counted (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n + 1 < @count),
  drawn AS (
    SELECT @first + n AS i, @from + n * ${STEP} AS at, ((@first + n) * 2654435761 + 12345) >> 4 AS h FROM counted LIMIT -1 OFFSET 0
  ),
  asked AS (
    SELECT i, at, (h >> 5) % ${KEYS.length} AS key, (h >> 11) % ${MODELS.length} AS model,
      CASE WHEN h % 50 = 0 THEN 'voided' WHEN h % 97 = 0 THEN 'partial' ELSE 'settled' END AS state,
      20 + (h >> 3) % 2000 AS input, 1 + (h >> 7) % 500 AS output
    FROM drawn LIMIT -1 OFFSET 0
  ),
  used AS (
    SELECT i, at, key, model, state, iif(state = 'voided', 0, input) AS input, iif(state = 'voided', 0, output) AS output FROM asked LIMIT -1 OFFSET 0
  )
INSERT INTO temp.facts
SELECT i, at, (at - @start) / ${MINUTE}, (at - @start) / ${HOUR}, key, u.model, state, u.input, u.output, u.input + u.output,
  (u.input * m.input + u.output * m.output + 999999) / 1000000
FROM used u CROSS JOIN temp.models m ON m.model = u.model
`

const ULID_TIME = Array.from(
  { length: 10 },
  (_, i) => `substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((at >> ${45 - 5 * i}) & 31) + 1, 1)`,
).join(' || ')
const AFTER = (id: string) => `'],[' || (${id}) || ','`

const RECORDS = `
INSERT INTO main.records (id, at, state, posted, key, account, plan, surface, model, provider, stream, client_request_id, trace_id, held_tokens,
  held_rial, price, ended_at, ended_by, usage_source, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, cost_rial, overrun_rial,
  status, code, upstream_request_id, attempts, ttft_ms, duration_ms)
SELECT 'req_' || ${ULID_TIME} || printf('%016d', i), at, state,
  '[[' || (@minutes + (minute * ${KEYS.length} + f.key) * 2) || ',1' || ${AFTER(`@hours + hour * ${KEYS.length} + f.key`)} || '1' || ${AFTER('@days + f.key * 3')} || '1' ||
    iif(tokens = 0, '', ${AFTER(`@minutes + (minute * ${KEYS.length} + f.key) * 2 + 1`)} || tokens || ${AFTER('@days + f.key * 3 + 1')} || tokens ||
      ${AFTER('@days + f.key * 3 + 2')} || cost || ${AFTER('@month + f.key')} || cost || ${AFTER(`@wallets + f.key % ${ACCOUNTS.length}`)} || cost) || ']]',
  k.name, k.account, 'p', 'chat-completions', m.name, m.provider, i & 1, NULL, printf('%032x', i * 40503), 4096,
  cost + 1000, m.price, at + 300 + i % 5000, iif(state = 'voided', 'upstream_error', 'provider'), iif(state = 'voided', 'none', 'provider'),
  f.input, 0, f.output, 0, cost, 0, iif(state = 'voided', 502, 200), iif(state = 'voided', 'upstream_error', NULL), printf('req_%016x', i),
  '[{"target":"' || m.name || '","result":"' || iif(state = 'voided', 'upstream_error', 'ok') || '","ms":512}]', iif(i & 1, 210, NULL), 300 + i % 5000
FROM temp.facts f CROSS JOIN temp.keys k ON k.key = f.key CROSS JOIN temp.models m ON m.model = f.model ORDER BY i
`

const COUNTER = 'INSERT INTO main.counters (id, meter, subject, kind, start, until, posted)'

/** Counters of a key in minutes or hours; the id of a slot's first key and meter is `@id + slot * keys * meters`. */
const slots = (meter: string, sum: string, slot: 'minute' | 'hour', length: number, meters: number, nth: number) => `${COUNTER}
SELECT @id + (${slot} * ${KEYS.length} + f.key) * ${meters} + ${nth}, '${meter}', 'key:' || k.name, '${slot}', @start + ${slot} * ${length},
  @start + (${slot} + 1) * ${length}, ${sum}
FROM temp.facts f JOIN temp.keys k ON k.key = f.key GROUP BY ${slot}, f.key`

const DAILY = [
  ['requests', 'count(*)'],
  ['tokens', 'sum(tokens)'],
  ['rial', 'sum(cost)'],
] as const

const daysOf = (meter: string, sum: string, nth: number) => `${COUNTER}
SELECT @id + f.key * ${DAILY.length} + ${nth}, '${meter}', 'key:' || k.name, 'day', @start, @until, ${sum}
FROM temp.facts f JOIN temp.keys k ON k.key = f.key GROUP BY f.key`

const SPENT = `INSERT INTO temp.spent SELECT @month, key, sum(cost) AS cost FROM temp.facts WHERE true GROUP BY key
ON CONFLICT DO UPDATE SET cost = cost + excluded.cost`

const MONTHS = `${COUNTER}
SELECT @id + s.key, 'rial', 'key:' || k.name, 'month', @start, @until, s.cost FROM temp.spent s JOIN temp.keys k ON k.key = s.key
WHERE s.month = @id`

const WALLETS = `${COUNTER}
SELECT @id + s.key % ${ACCOUNTS.length}, 'rial', 'account:' || k.account, 'all', 0, NULL, sum(s.cost)
FROM temp.spent s JOIN temp.keys k ON k.key = s.key GROUP BY s.key % ${ACCOUNTS.length}`
