import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fillLedger } from '../support/filled-ledger.js'
import { gateway, yaml } from '../support/gateway.js'
import { chat, provider } from '../support/provider.js'
import { type Bench, inProcess, type Measured, memory, note, requests, starts, verb } from './growth-parts.js'

/*
 * What a ledger of many records costs more than one of few: `node dist/test/bench/growth.js [records] [--folder F] [--brief]`, by default ten
 * million against ten thousand. Both are measured in turn, and the best round of each counts. Exits 1 where anything has grown that must not.
 * The ledgers are made in a temporary folder and removed; in a folder that is given they stay, and are used again. `--brief`: fewer rounds,
 * and nothing of what is as long as the file.
 */

const SMALL = 10_000
/** What must not grow is measured again before it is believed to have grown. */
const TRIES = 6
const GROWN = 1.5
const DAY = 86_400_000

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { folder: { type: 'string' }, brief: { type: 'boolean', default: false } },
})
const records = Number(positionals[0] ?? 10_000_000)
const rounds = options.brief ? { inProcess: 5, starts: 2, requests: 3 } : { inProcess: 15, starts: 5, requests: 10 }
const root = options.folder ?? mkdtempSync(join(tmpdir(), 'growth-'))
const undo: (() => unknown)[] = []
const bench: Bench = { teardown: fn => undo.push(fn), testdir: () => root }

async function file(size: number, until: number): Promise<Measured> {
  const folder = join(root, String(size))
  const path = join(folder, 'data', 'ledger.db')
  if (!existsSync(path)) {
    mkdirSync(join(folder, 'data'), { recursive: true })
    const started = performance.now()
    await fillLedger(path, size, until)
    const seconds = (performance.now() - started) / 1000
    console.error(`${size} records made in ${seconds.toFixed(0)} s: ${(statSync(path).size / 1e6).toFixed(0)} MB`)
  }
  return { folder, records: size, figures: new Map() }
}

/** What must stay the same. */
async function measureFlat(files: readonly Measured[], config: string): Promise<void> {
  await inProcess(files, rounds.inProcess)
  const up = await provider(bench, chat())
  const settings = config.replace('http://up.invalid', up.url)
  await starts(bench, files, settings, up, rounds.starts)
  const running = await Promise.all(files.map(({ folder }) => gateway(bench, settings, { folder })))
  await requests(running, files, rounds.requests)
  for (const [i, one] of running.entries()) {
    const measured = files[i] as Measured
    note(measured, 'resident memory after it, MB', await memory(one))
    const { seconds, stdout } = await verb(one, ['usage', '--since', '1h', '--group-by', 'key,model', '--format', 'csv'])
    if (stdout.split('\n').length < 20) throw new Error(`the usage of an hour: ${stdout}`)
    note(measured, 'usage of the last hour, s', seconds)
    await one.stop()
  }
}

function grown([small, large]: readonly [Measured, Measured]): string[] {
  return [...small.figures].filter(([name, figure]) => (large.figures.get(name) as number) > GROWN * figure).map(([name]) => name)
}

/** What is as long as the file, on a running gateway: how long, and what others feel of it. */
async function measureLong(measured: Measured, config: string): Promise<string[][]> {
  const up = await provider(bench, chat())
  const running = await gateway(bench, config.replace('http://up.invalid', up.url), { folder: measured.folder })
  const copy = join(measured.folder, 'copy.db')
  const since = new Date(Date.now() - 30 * DAY).toISOString()
  const rows: string[][] = []
  for (const [name, args] of [
    ['usage of 30 days by key, model and day', ['usage', '--since', since, '--group-by', 'key,model,day', '--format', 'csv']],
    ['ledger verify', ['ledger', 'verify']],
    ['ledger backup', ['ledger', 'backup', copy]],
  ] as const) {
    const ran = await verb(running, args)
    rows.push([
      name,
      `${ran.cpuSeconds.toFixed(1)} s`,
      `${ran.seconds.toFixed(1)} s`,
      `${ran.gatewayMemory.toFixed(0)} MB`,
      `${ran.keyP99.toFixed(1)} ms`,
    ])
  }
  rmSync(copy)
  await running.stop()
  return rows
}

function markdown(rows: readonly (readonly string[])[]): string {
  return rows.map((row, i) => `| ${row.join(' | ')} |${i === 0 ? `\n|${' --- |'.repeat(row.length)}` : ''}`).join('\n')
}

function digits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

try {
  const until = Date.now()
  const files: readonly [Measured, Measured] = [await file(SMALL, until), await file(records, until)]
  // The wallets were credited when the ledgers were made.
  const config = yaml('http://up.invalid', { balance: 0 })
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    await measureFlat(files, config)
    if (grown(files).length === 0) break
  }
  const [small, large] = files
  const named = (size: number) => size.toLocaleString('en')
  const flat = [...small.figures].map(([name, figure]) => {
    const other = large.figures.get(name) as number
    return [name, digits(figure), digits(other), (other / figure).toFixed(2)]
  })
  const machine = `${cpus().length} cores, Node.js ${process.versions.node}`
  console.log(
    `${new Date().toISOString().slice(0, 10)}, ${machine}, ${(statSync(join(large.folder, 'data', 'ledger.db')).size / 1e6).toFixed(0)} MB\n`,
  )
  console.log(markdown([['what', `${named(SMALL)} records`, named(records), 'ratio'], ...flat]))
  if (!options.brief) {
    const rows = await measureLong(small, config)
    const others = await measureLong(large, config)
    const long = others.map(([name = '', ...row], i) => [name, rows[i]?.[1] as string, ...row])
    console.log(
      `\n${markdown([['what, in CPU', `${named(SMALL)} records`, named(records), 'took', 'memory of the gateway', '`/v1/key` meanwhile, p99'], ...long])}`,
    )
  }
  const faults = grown(files)
  console.log(`\n${flat.length} compared, ${faults.length} grown${faults.length === 0 ? '' : `: ${faults.join('; ')}`}`)
  process.exitCode = faults.length === 0 ? 0 : 1
} finally {
  for (const fn of undo) await fn()
  if (options.folder === undefined) rmSync(root, { recursive: true })
}
