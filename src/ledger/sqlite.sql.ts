/** `MGWL` in ASCII: tells a ledger from any other SQLite file. */
export const APPLICATION_ID = 0x4d47574c

/** `MGWU`: a ledger that is in use, or whose process has died. It is whole only together with its log. */
export const IN_USE_ID = 0x4d475755

/** Raised with every change of the tables; a file of a newer gateway is refused. */
export const SCHEMA_VERSION = 4

/** What models have taught (metering/calibrations.ts); nothing is billed by it. */
const CALIBRATIONS = `
CREATE TABLE calibrations (
  model TEXT NOT NULL,
  basis TEXT NOT NULL,
  state TEXT NOT NULL CHECK (json_valid(state)),
  PRIMARY KEY (model, basis)
) STRICT, WITHOUT ROWID;
`

/**
 * What is left of records that were pruned: their sums by day, whose bounds are those of the zone in which they were made, and what they have posted on
 * each counter.
 */
const SUMS = `
CREATE TABLE daily_sums (
  id INTEGER PRIMARY KEY,
  day INTEGER NOT NULL,
  until INTEGER NOT NULL CHECK (until > day),
  key TEXT,
  account TEXT,
  plan TEXT,
  model TEXT NOT NULL,
  provider TEXT NOT NULL,
  surface TEXT NOT NULL,
  requests INTEGER NOT NULL CHECK (requests > 0),
  partial INTEGER NOT NULL CHECK (partial >= 0),
  failed INTEGER NOT NULL CHECK (failed >= 0),
  estimated INTEGER NOT NULL CHECK (estimated >= 0),
  input_tokens INTEGER NOT NULL CHECK (input_tokens >= 0),
  cached_input_tokens INTEGER NOT NULL CHECK (cached_input_tokens >= 0),
  output_tokens INTEGER NOT NULL CHECK (output_tokens >= 0),
  reasoning_tokens INTEGER NOT NULL CHECK (reasoning_tokens >= 0),
  cost_rial INTEGER NOT NULL CHECK (cost_rial >= 0),
  overrun_rial INTEGER NOT NULL CHECK (overrun_rial >= 0)
) STRICT;

CREATE INDEX daily_sums_of_day ON daily_sums (day, key, model);

CREATE TABLE pruned_counters (
  id INTEGER PRIMARY KEY,
  posted INTEGER NOT NULL CHECK (posted > 0)
) STRICT;
`

/**
 * What the credits come to, by account: their sum, their number and the sum of their digests; and the sum of the digests of all these rows, so that none of
 * them can change or go missing unseen.
 */
const WALLETS = `
CREATE TABLE wallets (
  account TEXT NOT NULL PRIMARY KEY,
  credited INTEGER NOT NULL CHECK (credited BETWEEN -9007199254740991 AND 9007199254740991),
  credits INTEGER NOT NULL CHECK (credits > 0),
  digest INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE wallets_digest (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  digest INTEGER NOT NULL
) STRICT;

INSERT INTO wallets_digest (one, digest) VALUES (1, 0);
`

/** Files of this version and older ones have no wallets: they are summed up from the credits. */
export const LAST_WITHOUT_WALLETS = 3

/** By version: what makes a file of it one of the next. */
export const MIGRATIONS: ReadonlyMap<number, string> = new Map([
  [1, CALIBRATIONS],
  [2, SUMS],
  [3, WALLETS],
])

/** The columns of a usage record that are known at admission. */
const ADMISSION = `
  key TEXT,
  account TEXT,
  plan TEXT,
  surface TEXT NOT NULL,
  model TEXT NOT NULL,
  provider TEXT NOT NULL,
  stream INTEGER NOT NULL CHECK (stream IN (0, 1)),
  client_request_id TEXT,
  trace_id TEXT,
  held_tokens INTEGER NOT NULL CHECK (held_tokens >= 0),
  held_rial INTEGER NOT NULL CHECK (held_rial >= 0),
  price TEXT NOT NULL`

/**
 * A usage record is a row of `holds` until its hold ends, and one of `records` from then on. What is pending is nowhere but in
 * `holds`, and is summed up when the file is opened: an admission writes one page, and nothing can come to disagree.
 * Pages are small, because each commit writes and sums up whole ones: 2 kB instead of 4 made a hold and its settlement 8 µs faster, as long
 * as no row needs a page of its own, which rows of a table without rowid would from 488 bytes on.
 * `claims` is `[[counter id, amount, ends], …]`, `posted` is `[[counter id, amount], …]`.
 */
export const SCHEMA = `
CREATE TABLE counters (
  id INTEGER PRIMARY KEY,
  meter TEXT NOT NULL,
  subject TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('minute', 'hour', 'day', 'month', 'all')),
  start INTEGER NOT NULL,
  until INTEGER CHECK (until > start),
  posted INTEGER NOT NULL CHECK (posted BETWEEN 0 AND 9007199254740991),
  UNIQUE (meter, subject, kind, start)
) STRICT;

CREATE TABLE holds (
  id TEXT NOT NULL PRIMARY KEY,
  at INTEGER NOT NULL,
  claims TEXT NOT NULL CHECK (json_valid(claims)),${ADMISSION}
) STRICT, WITHOUT ROWID;

CREATE TABLE records (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('settled', 'partial', 'voided', 'recovered')),
  posted TEXT NOT NULL CHECK (json_valid(posted)),${ADMISSION},
  ended_at INTEGER NOT NULL,
  ended_by TEXT NOT NULL CHECK (ended_by IN ('provider', 'client', 'upstream_error', 'drain', 'recovery')),
  usage_source TEXT NOT NULL CHECK (usage_source IN ('provider', 'counted', 'estimate', 'none')),
  input_tokens INTEGER NOT NULL CHECK (input_tokens >= 0),
  cached_input_tokens INTEGER NOT NULL CHECK (cached_input_tokens >= 0),
  output_tokens INTEGER NOT NULL CHECK (output_tokens >= 0),
  reasoning_tokens INTEGER NOT NULL CHECK (reasoning_tokens >= 0),
  cost_rial INTEGER NOT NULL CHECK (cost_rial >= 0),
  overrun_rial INTEGER NOT NULL CHECK (overrun_rial >= 0),
  status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 999),
  code TEXT,
  upstream_request_id TEXT,
  attempts TEXT NOT NULL,
  ttft_ms INTEGER,
  duration_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE credits (
  id TEXT NOT NULL PRIMARY KEY,
  account TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount BETWEEN -9007199254740991 AND 9007199254740991),
  note TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX credits_of_account ON credits (account);

-- One row: how far the times in the ids of records are from the records' own, and whether all ids have one.
CREATE TABLE timeline (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  least INTEGER NOT NULL,
  most INTEGER NOT NULL,
  timed INTEGER NOT NULL CHECK (timed IN (0, 1))
) STRICT;

INSERT INTO timeline (one, least, most, timed) VALUES (1, 0, 0, 1);
${CALIBRATIONS}${SUMS}${WALLETS}`
