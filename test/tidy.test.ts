import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'
import { ROOT } from './support/paths.js'

/** From the ground up: what is compiled into a file may come from an earlier line, or from its own. Types may come from anywhere. */
const ORDER = [
  [
    'errors',
    'field',
    'json',
    'pieces',
    'clock',
    'flat-text',
    'in-flight',
    'deadline',
    'ids',
    'version',
    'secret',
    'placed',
    'paths',
    'policy',
    'commands/command',
  ],
  ['checks', 'documents'],
  ['config', 'ledger', 'metering', 'http'],
  ['exchange', 'endpoints', 'upstream'],
  ['understand', 'sizing', 'settlement', 'refusal', 'chain', 'plugin', 'runtime'],
  ['build-chain', 'counting', 'read-config', 'set-up', 'lasting', 'keep-retention', 'offload', 'services', 'telemetry', 'policies'],
  ['lifecycle'],
  ['serving', 'control'],
  ['admin'],
  ['workers'],
  ['start'],
  ['gateway'],
  ['index', 'terminal'],
  ['commands'],
  ['cli'],
  ['bin'],
]

/** Folders whose files are instances of one contract: they go by their names, and do not know one another. */
const INSTANCES: readonly { readonly folder: string; readonly known: readonly string[] }[] = [
  { folder: 'policies', known: [] },
  { folder: 'src/commands', known: ['command'] },
  { folder: 'src/upstream/providers', known: ['provider'] },
]

const IMPORT = /^(?:import|export)\s+(?!type\b)(?:([^;'"]*?)\s+from\s+)?'(\.[^']+)'/gms

/** Relative imports of a source file that leave something in the compiled one. */
function imports(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8')
  return [...text.matchAll(IMPORT)]
    .filter(([, names = '']) => !onlyTypes(names))
    .map(([, , path = '']) => normalize(join(dirname(file), path)).replace(/\.js$/, '.ts'))
}

function onlyTypes(names: string): boolean {
  const inner = /^\{([\s\S]*)\}$/.exec(names.trim())?.[1]
  return inner?.split(',').every(name => name.trim() === '' || name.trim().startsWith('type ')) ?? false
}

const files = ['src', 'policies'].flatMap(folder =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts'))
    .map(file => `${folder}/${file}`),
)

function unit(file: string): string {
  if (file.startsWith('policies/')) return 'policies'
  const path = file.slice('src/'.length, -'.ts'.length)
  return path === 'commands/command' ? path : (path.split('/')[0] as string)
}

function rank(file: string): number {
  return ORDER.findIndex(units => units.includes(unit(file)))
}

t.test('imports go one way', async t => {
  t.ok(files.length > 150)
  for (const file of files) {
    t.not(rank(file), -1, `${file} has its place`)
    for (const other of imports(file)) t.ok(rank(other) <= rank(file), `${file} imports ${other}`)
  }
})

t.test('one file alone says where files lie: in the bundle, others are not where they were written', async t => {
  for (const file of files.filter(file => file !== 'src/paths.ts')) {
    const rest = readFileSync(join(ROOT, file), 'utf8').replaceAll('createRequire(import.meta.url)', '')
    t.notMatch(rest, /\bimport\.meta\b/, file)
  }
})

t.test('no object of SQLite’s module is let go, which would end the process on Node.js 24: see ledger/database', async t => {
  for (const file of files.filter(file => file !== 'src/ledger/database.ts')) {
    const text = readFileSync(join(ROOT, file), 'utf8')
    t.notMatch(text, /new Database\(|\.iterate\(/, file)
  }
})

t.test('no file imports itself, through however many others', async t => {
  const done = new Set<string>()
  const visit = (file: string, way: readonly string[]): void => {
    const again = way.indexOf(file)
    if (again !== -1) t.fail([...way.slice(again), file].join(' → '))
    if (done.has(file) || again !== -1) return
    done.add(file)
    for (const other of imports(file)) visit(other, [...way, file])
  }
  for (const file of files) visit(file, [])
  t.equal(done.size, files.length)
})

t.test('instances of a contract do not know one another', async t => {
  for (const { folder, known } of INSTANCES) {
    const names = readdirSync(join(ROOT, folder)).filter(file => file.endsWith('.ts'))
    for (const name of names) {
      for (const other of imports(`${folder}/${name}`)) {
        const sibling = dirname(other) === folder ? other.slice(folder.length + 1, -'.ts'.length) : undefined
        t.ok(sibling === undefined || known.includes(sibling), `${folder}/${name} imports ${other}`)
      }
    }
  }
})
