/*
 * How much of the money's code could be wrong without a test noticing: `node dist/test/mutation/run.js [--figures] [part of a file's name]…`. Each
 * mutant is one small change of the code; it is killed when a test fails. `--figures`: comparisons and arithmetic alone. Exits 1 where a comparison or an arithmetic operator survives that equivalent.ts
 * does not explain.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { EQUIVALENT } from './equivalent.js'
import { instrument, type Mutant } from './mutants.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

const FILES = [
  ...[
    'parts',
    'cells',
    'digest',
    'wallets',
    'credit-check',
    'counters',
    'recovery',
    'records',
    'timeline',
    'accounts',
    'batch',
    'sqlite',
    'reports',
    'open-holds',
    'verify',
    'usage',
    'windows',
    'zone',
  ].map(name => `src/ledger/${name}.ts`),
  ...['auth', 'rate', 'budget', 'hold', 'concurrency'].map(name => `policies/${name}.ts`),
  ...['settlement', 'sizing', 'refusal', 'metering/price', 'config/price-drafts', 'config/prices', 'config/targets'].map(
    name => `src/${name}.ts`,
  ),
]

/** Those that are fast come first: most mutants get no further. */
const TESTS = [
  ...['settlement', 'settlement-boundaries', 'sizing', 'in-flight', 'refusal', 'refusal-boundaries', 'metering/price'],
  ...['auth', 'rate', 'budget', 'concurrency-claims', 'shipped'].map(name => `policies/${name}`),
  ...[
    'parts',
    'cells',
    'digest',
    'wallets',
    'credit-check',
    'records',
    'timeline',
    'accounts',
    'counters',
    'batch',
    'contract',
    'sqlite-edges',
    'usage',
    'retention',
    'verify',
    'windows',
  ].map(name => `ledger/${name}`),
  ...['values', 'models', 'problems', 'included', 'catalog', 'load'].map(name => `config/${name}`),
]

/** Beyond this a mutant is taken to run for ever. */
const PATIENCE_MS = 30_000
/** Modules that were loaded stay: a process is not used for ever. */
const RUNS_MAX = 400

type Fate = 'killed' | 'timeout' | 'survived' | 'unreached'

interface Outcome {
  readonly passed: boolean
  readonly reached: readonly number[]
  readonly timedOut?: boolean
}

class Worker {
  readonly #root: string
  #child: ChildProcess | undefined
  #runs = 0

  constructor(root: string) {
    this.#root = root
  }

  run(mutant: number, test: string): Promise<Outcome> {
    if (++this.#runs % RUNS_MAX === 0) this.stop()
    this.#child ??= fork(join(this.#root, 'dist/test/mutation/worker.js'), {
      cwd: this.#root,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: { ...process.env, TAP_TIMEOUT: '0' },
    })
    const child = this.#child
    return new Promise(resolve => {
      const over = (answer: Outcome) => {
        clearTimeout(timer)
        child.off('exit', gone).off('message', heard)
        resolve(answer)
      }
      const dead = (timedOut: boolean) => {
        this.stop()
        over({ passed: false, reached: [], timedOut })
      }
      const gone = () => dead(false)
      const timer = setTimeout(() => dead(true), PATIENCE_MS)
      child.once('exit', gone)
      // The test runner says things of its own there.
      const heard = (answer: { passed?: boolean; reached?: number[] }) => {
        if (answer.passed !== undefined) over({ passed: answer.passed, reached: answer.reached ?? [] })
      }
      child.on('message', heard)
      child.send({ mutant, file: pathToFileURL(join(this.#root, 'dist/test', `${test}.test.js`)).href })
    })
  }

  stop(): void {
    this.#child?.kill('SIGKILL')
    this.#child = undefined
  }
}

/** A tree like this one, whose files have their mutants in them. */
function mutatedTree(files: readonly string[]): { readonly root: string; readonly mutants: readonly Mutant[] } {
  const root = mkdtempSync(join(tmpdir(), 'mutation-'))
  for (const name of readdirSync(ROOT)) {
    if (name === 'dist') cpSync(join(ROOT, name), join(root, name), { recursive: true })
    else if (!name.startsWith('.')) symlinkSync(join(ROOT, name), join(root, name))
  }
  const mutants: Mutant[] = []
  for (const file of files) {
    const found = instrument(file, readFileSync(join(ROOT, file), 'utf8'), mutants.length)
    writeFileSync(join(root, 'dist', file.replace(/\.ts$/, '.js')), found.code)
    mutants.push(...found.mutants)
  }
  return { root, mutants }
}

async function fates(worker: Worker, mutants: readonly Mutant[]): Promise<Map<number, Fate>> {
  const reaching = new Map<number, string[]>()
  for (const test of TESTS) {
    const { passed, reached } = await worker.run(-1, test)
    if (!passed) throw new Error(`${test} fails without any mutant`)
    for (const id of reached) reaching.set(id, [...(reaching.get(id) ?? []), test])
  }
  const found = new Map<number, Fate>()
  for (const mutant of mutants) {
    let fate: Fate = reaching.has(mutant.id) ? 'survived' : 'unreached'
    for (const test of reaching.get(mutant.id) ?? []) {
      const { passed, timedOut = false } = await worker.run(mutant.id, test)
      if (passed) continue
      fate = timedOut ? 'timeout' : 'killed'
      break
    }
    found.set(mutant.id, fate)
    if (fate === 'survived' || fate === 'unreached') console.log(told(mutant, fate))
  }
  return found
}

function alive(fate: Fate | undefined): boolean {
  return fate === 'survived' || fate === 'unreached'
}

function asked({ file, figures }: Mutant): boolean {
  return (figures || !options.figures) && (only.length === 0 || only.some(part => file.includes(part)))
}

function told({ file, line, operator, original, replacement, figures }: Mutant, fate: Fate): string {
  return `${fate.padEnd(9)} ${figures ? '!' : ' '} ${file}:${line} ${operator}: ${original} -> ${replacement}`
}

function explained({ file, original, replacement }: Mutant): boolean {
  return EQUIVALENT.some(one => one.file === file && one.original === original && one.replacement === replacement)
}

const { values: options, positionals: only } = parseArgs({
  allowPositionals: true,
  options: { figures: { type: 'boolean', default: false } },
})
const { root, mutants } = mutatedTree(FILES)
const worker = new Worker(root)
try {
  const found = await fates(worker, mutants.filter(asked))
  const tried = mutants.filter(({ id }) => found.has(id))
  const count = (of: readonly Mutant[], fate: Fate) => of.filter(({ id }) => found.get(id) === fate).length
  const row = (name: string, of: readonly Mutant[]) => {
    const [killed, timedOut] = [count(of, 'killed'), count(of, 'timeout')]
    const even = of.filter(one => alive(found.get(one.id)) && explained(one)).length
    const score = (100 * (killed + timedOut)) / (of.length - even)
    const left = of.length - even - killed - timedOut
    console.log(`| ${name} | ${of.length} | ${killed} | ${timedOut} | ${even} | ${left} | ${score.toFixed(1)} |`)
  }
  console.log('\n| file | mutants | killed | timed out | equivalent | left | score, % |\n| --- | --- | --- | --- | --- | --- | --- |')
  for (const file of FILES.filter(file => tried.some(one => one.file === file))) {
    row(
      file,
      tried.filter(one => one.file === file),
    )
  }
  row('all', tried)
  const figuring = tried.filter(({ figures }) => figures)
  row('comparisons and arithmetic', figuring)
  const left = figuring.filter(one => alive(found.get(one.id)) && !explained(one))
  console.log(`\n${tried.length} mutants, ${left.length} comparisons or arithmetic operators survive`)
  process.exitCode = left.length === 0 ? 0 : 1
} finally {
  worker.stop()
  rmSync(root, { recursive: true })
}
