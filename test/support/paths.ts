import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the repository, seen from the compiled tests. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
export const FIXTURES = `${ROOT}test/fixtures/`

/** The program as users run it. Throws where its bundle is older than the code, so that what is tested is what is there. */
export function programFile(): string {
  const program = `${ROOT}lib/src/bin.js`
  bundled ??= timeOf(program)
  compiled ??= Math.max(...['src', 'policies'].flatMap(timesIn))
  if (bundled < compiled) throw new Error('lib/ is older than what it is made of, or not there: npm run build')
  return program
}

let bundled: number | undefined
let compiled: number | undefined

function timeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function timesIn(room: string): number[] {
  const folder = join(ROOT, 'dist', room)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.js'))
  return files.map(file => timeOf(join(folder, file)))
}
