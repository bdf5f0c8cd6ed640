/*
 * Where a request's time goes in the gateway: npm run profile [-- whole|stream [seconds]]
 * Prints what each file, and each function by itself, has of the main thread's busy time once the code is warm.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../support/paths.js'
import { ORDINARY, streaming } from './http/bodies.js'
import { flood, streams } from './http/load.js'
import { far, gateway } from './http/programs.js'

interface Profile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { functionName: string; url: string; lineNumber: number } }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const [what = 'whole', seconds = '12'] = process.argv.slice(2)
execFileSync('taskset', ['-cp', '1', String(process.pid)])
const folder = mkdtempSync(join(tmpdir(), 'gateway-profile-'))
const provider = await far()
// Not the bundle: its files are of many rooms each.
const facts = {
  name: 'profiled',
  durability: 'process',
  folder,
  origin: `http://127.0.0.1:${provider.port}`,
  program: `${ROOT}dist/src/bin.js`,
} as const
const program = await gateway(facts, ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=200'])
const until = performance.now() + Number(seconds) * 1000
if (what === 'stream') {
  const body = streaming(400, 0)
  while (performance.now() < until) await Promise.all(Array.from({ length: 8 }, () => streams(program.port, body, 5)))
} else {
  await flood(folder, program.port, ORDINARY, 64, Number(seconds))
}
await program.stop()
await provider.stop()

// A thread of its own has a profile of its own: the main thread's is the longest.
const profiles = readdirSync(folder)
  .filter(name => name.endsWith('.cpuprofile'))
  .map(name => readFileSync(join(folder, name), 'utf8'))
  .sort((a, b) => b.length - a.length)
rmSync(folder, { recursive: true })
const { nodes, samples, timeDeltas } = JSON.parse(profiles[0] ?? '') as Profile
const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
const files = new Map<string, number>()
const functions = new Map<string, number>()
let busy = 0
// The first third is compilation.
for (let i = Math.floor(samples.length / 3); i < samples.length; i++) {
  const frame = frames.get(samples[i] as number)
  const delta = timeDeltas[i] as number
  if (frame === undefined || frame.functionName === '(idle)' || delta < 0) continue
  const file = frame.url.replace(/.*\/(?:dist|node_modules)\//, '') || frame.functionName
  const name = frame.url === '' ? frame.functionName : `${frame.functionName || 'anonymous'} ${file}:${frame.lineNumber + 1}`
  files.set(file, (files.get(file) ?? 0) + delta)
  functions.set(name, (functions.get(name) ?? 0) + delta)
  busy += delta
}
for (const shares of [files, functions]) {
  const sorted = [...shares].sort((a, b) => b[1] - a[1]).slice(0, 40)
  for (const [name, share] of sorted) process.stdout.write(`${((share / busy) * 100).toFixed(1).padStart(5)} %  ${name}\n`)
  process.stdout.write('\n')
}
