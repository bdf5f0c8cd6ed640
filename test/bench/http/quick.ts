import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ORDINARY, streaming } from './bodies.js'
import { flood, oneByOne, spread, streams } from './load.js'
import { cpuOf, far, gateway, type Program, pipe } from './programs.js'

execFileSync('taskset', ['-cp', '1', String(process.pid)])
const folder = mkdtempSync(join(tmpdir(), 'bench-'))
const provider = await far()
const origin = `http://127.0.0.1:${provider.port}`
const rounds = Number(process.argv[2] ?? 3)
const programs: Program[] = [await pipe(origin), await gateway({ name: 'process', durability: 'process', folder, origin })]
const rows = new Map<string, { rps: number[]; cpu: number[]; p50: number[]; chunk: number[]; scpu: number[] }>()
for (const p of programs) {
  rows.set(p.name, { rps: [], cpu: [], p50: [], chunk: [], scpu: [] })
  await flood(folder, p.port, ORDINARY, 64, 8)
}
const S = streaming(400, 0)
for (let i = 0; i < rounds; i++) {
  for (const p of programs) {
    const row = rows.get(p.name)!
    for (let k = 0; k < 3; k++) {
      const cpu = cpuOf(p.pid)
      const got = await flood(folder, p.port, ORDINARY, 64, 1)
      row.rps.push(got.perSecond)
      row.cpu.push((cpuOf(p.pid) - cpu) / 1000 / got.perSecond)
      if (got.errors > 0) console.log(p.name, 'errors', got.errors)
    }
    row.p50.push(spread(await oneByOne(p.port, ORDINARY, 1000)).p50)
    if (process.argv[3] === 's') {
      const c2 = cpuOf(p.pid)
      await Promise.all(Array.from({ length: 8 }, () => streams(p.port, S, 25)))
      row.scpu.push((cpuOf(p.pid) - c2) / 1000 / (8 * 25 * 400))
    }
  }
}
const med = (a: number[]) => [...a].sort((x, y) => x - y)[Math.floor(a.length / 2)] ?? NaN
const min = (a: number[]) => Math.min(...a)
for (const [name, r] of rows)
  console.log(
    name,
    'rps',
    med(r.rps).toFixed(0),
    'max',
    Math.max(...r.rps).toFixed(0),
    'cpu us med',
    med(r.cpu).toFixed(1),
    'min',
    min(r.cpu).toFixed(1),
    'p50@1',
    min(r.p50).toFixed(0),
    'cpu/chunk',
    min(r.scpu).toFixed(2),
  )
for (const p of programs) await p.stop()
await provider.stop()
rmSync(folder, { recursive: true, force: true })
process.exit(0)
