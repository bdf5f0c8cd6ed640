/*
 * Runs the test files: `node dist/test/run.js [part of a file's name]…`. Each is a process of its own, without the loaders that tap's own runner puts
 * into every one of them (0.5 s of the processor's time each, which for 160 files was a quarter of all). What waits for times and processes, `promises/`, runs
 * beside what computes. A bundle that is older than the code is refused: exits 2. What a file has said is kept in .tap/test-results, and shown where it has failed; exits 1 then.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { programFile, ROOT } from './support/paths.js'

const RESULTS = join(ROOT, '.tap/test-results')
const TIMEOUT_MS = 10 * 60_000

interface Result {
  readonly file: string
  readonly failed: string | null
  readonly passes: number
  readonly skips: number
}

/** The longest first, as far as a file's size tells. */
function testFiles(parts: readonly string[]): string[] {
  const all = readdirSync(join(ROOT, 'dist/test'), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.test.js'))
    .map(file => `dist/test/${file}`)
  const size = new Map(all.map(file => [file, statSync(join(ROOT, file)).size]))
  return all
    .filter(file => parts.length === 0 || parts.some(part => file.includes(part)))
    .sort((a, b) => (size.get(b) as number) - (size.get(a) as number))
}

async function run(file: string): Promise<Result> {
  const child = spawn(process.execPath, ['--enable-source-maps', file], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, TAP: '1', TAP_TIMEOUT: String(TIMEOUT_MS / 1000) },
  })
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  // Beyond what tap itself would wait for, and what it cleans up then.
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS + 30_000)
  const [code, signal] = await new Promise<[number | null, string | null]>(resolve => child.once('close', (...ended) => resolve(ended)))
  clearTimeout(timer)
  const said = Buffer.concat(chunks).toString()
  const kept = join(RESULTS, `${file}.tap`)
  mkdirSync(dirname(kept), { recursive: true })
  writeFileSync(kept, said)
  return {
    file,
    failed: code === 0 ? null : `${signal ?? `exit code ${code}`}\n${said.replaceAll(/^ *ok .*\n/gm, '')}`,
    passes: said.match(/^ *ok /gm)?.length ?? 0,
    skips: said.match(/^ *ok .* # SKIP/gim)?.length ?? 0,
  }
}

try {
  programFile()
} catch (error) {
  console.log((error as Error).message)
  process.exit(2)
}
rmSync(RESULTS, { recursive: true, force: true })
const files = testFiles(process.argv.slice(2))
const waiting = files.filter(file => file.includes('/promises/'))
const computing = files.filter(file => !file.includes('/promises/'))
const results: Result[] = []
const started = performance.now()
const lane = async (first: string[], second: string[]): Promise<void> => {
  for (let file = first.shift() ?? second.shift(); file !== undefined; file = first.shift() ?? second.shift()) {
    const result = await run(file)
    results.push(result)
    if (result.failed !== null) console.log(`\nFAILED ${file}: ${result.failed}`)
    else if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${results.length} of ${files.length} files`)
  }
}
const lanes = Array.from({ length: availableParallelism() + 1 }, (_, i) =>
  i % 2 === 0 ? lane(waiting, computing) : lane(computing, waiting),
)
await Promise.all(lanes)
const sum = (count: (result: Result) => number): number => results.reduce((sum, result) => sum + count(result), 0)
const failed = results.filter(result => result.failed !== null)
console.log(
  `${process.stdout.isTTY ? '\r\x1b[K' : ''}${results.length} files, ${sum(({ passes }) => passes)} assertions and tests passed, ${sum(({ skips }) => skips)} passed over, ${failed.length} files failed, ${Math.round((performance.now() - started) / 1000)} s`,
)
for (const { file } of failed) console.log(`failed: ${file}`)
process.exitCode = failed.length === 0 && results.length > 0 ? 0 : 1
