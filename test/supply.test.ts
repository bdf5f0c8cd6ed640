import { readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import t from 'tap'
import { ROOT } from './support/paths.js'

/* What the gateway is made of besides its own code, and that the threat model speaks of tests that there are. */

const read = (file: string): string => readFileSync(ROOT + file, 'utf8')
const { dependencies, allowScripts, scripts } = JSON.parse(read('package.json')) as Record<string, Record<string, unknown>>
const { packages } = JSON.parse(read('package-lock.json')) as {
  packages: Record<string, { resolved?: string; integrity?: string; hasInstallScript?: boolean }>
}
const locked = Object.entries(packages).filter(([path]) => path !== '')

t.test('four dependencies at run time, and the code imports nothing else', async t => {
  const named = Object.keys(dependencies ?? {})
  t.strictSame(named.sort(), ['better-sqlite3', 'prom-client', 'undici', 'yaml'])
  const files = ['src', 'policies'].flatMap(folder =>
    readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' })
      .filter(file => file.endsWith('.ts'))
      .map(file => `${folder}/${file}`),
  )
  const IMPORT = /^(?:import|export)\b[^'"`]*?\bfrom '([^'.][^']*)'|\bimport\('([^'.][^']*)'\)/gm
  const imported = files.flatMap(file => [...read(file).matchAll(IMPORT)].map(([, name, late]) => name ?? late ?? ''))
  const others = new Set(
    imported.filter(name => !name.startsWith('node:') && !builtinModules.includes(name)).map(name => name.split('/')[0]),
  )
  t.strictSame([...others].sort(), named)
})

t.test(
  'every package comes from the registry with its digest, and runs a script at installation only where it is allowed by name',
  async t => {
    t.ok(locked.length > 40)
    for (const [path, { resolved, integrity = '' }] of locked) {
      t.equal(resolved, undefined, `${path} has no address of its own: it comes from the registry that npm is set to`)
      t.match(integrity, /^sha512-/, path)
    }
    const scripted = locked
      .filter(([, { hasInstallScript }]) => hasInstallScript === true)
      .map(([path]) => path.replace(/^.*node_modules\//, ''))
    t.strictSame([...new Set(scripted)].sort(), Object.keys(allowScripts ?? {}).sort())
  },
)

t.test('the SBOM is one command, and the check looks for what is known against the packages', async t => {
  t.match(scripts?.sbom, /^npm sbom .*--sbom-format cyclonedx$/)
  t.match(read('.ci/run'), /npm audit --omit=dev/)
})

t.test('each defence of the threat model names its tests, and there are tests of these names', async t => {
  const model = read('src/SECURITY.md')
  const section = model.slice(model.indexOf('## Where others come in'), model.indexOf('What every buffer may hold'))
  const rows = section.split('\n').filter(line => line.startsWith('| ') && !line.startsWith('| ---') && !line.startsWith('| entry'))
  t.ok(rows.length >= 14, `${rows.length} defences`)
  let named = 0
  for (const row of rows) {
    const [entry = '', , , proof = ''] = row.slice(2, -2).split(' | ')
    const tests = [...proof.matchAll(/\[(.*?)\]\(\.\.\/(test\/[^)]+\.test\.ts)\)/g)]
    t.ok(tests.length > 0, `${entry}: names a test`)
    for (const [, name = '', file = ''] of tests) {
      named++
      t.ok(
        ["'", '`', '"'].some(quote => read(file).includes(`t.test(${quote}${name}${quote}`)),
        `${file} has «${name}»`,
      )
    }
  }
  t.comment(`${rows.length} defences, ${named} tests`)
  const commands = [...section.matchAll(/^node (\S+ \d+)/gm)].map(([, command = '']) => command)
  t.ok(commands.length >= 2)
  for (const command of commands) t.ok(read('.ci/run').includes(`node ${command}`), `${command} is run by the check`)
})
