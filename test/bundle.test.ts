import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { gateway, yaml } from './support/gateway.js'
import { programFile, ROOT } from './support/paths.js'

/* The bundle, which is what users run: src/README.md says what it may not change. */

const BUNDLE = join(programFile(), '../..')

t.test('verbs, kinds and policies lie in it under their names, and nothing else does', async t => {
  for (const folder of ['src/commands', 'src/upstream/providers', 'policies']) {
    const sources = readdirSync(join(ROOT, folder)).filter(file => extname(file) === '.ts')
    t.strictSame(readdirSync(join(BUNDLE, folder)).sort(), sources.map(file => file.replace(/ts$/, 'js')).sort(), folder)
  }
})

t.test('threads, workers and the entry of the package lie where they are looked for', async t => {
  for (const file of ['src/index.js', 'src/counting/thread.js', 'src/offload/thread.js', 'src/workers/process.js'])
    t.ok(existsSync(join(BUNDLE, file)), file)
})

t.test('a start reads less than forty files of the gateway, all of them of the bundle', async t => {
  const read = t.testdir()
  const running = await gateway(t, yaml('http://127.0.0.1:9'), { folder: join(read, 'run'), env: { NODE_V8_COVERAGE: read } })
  await running.stop()
  const reports = readdirSync(read).filter(file => extname(file) === '.json')
  t.ok(reports.length > 0)
  const urls = reports.flatMap(file => (JSON.parse(readFileSync(join(read, file), 'utf8')) as { result: { url: string }[] }).result)
  const own = new Set(urls.map(({ url }) => url).filter(url => url.startsWith(pathToFileURL(ROOT).href) && !url.includes('/node_modules/')))
  t.comment(`${own.size} files`)
  t.ok(own.size > 10 && own.size < 40, `${own.size} files`)
  for (const url of own) t.ok(url.startsWith(pathToFileURL(`${BUNDLE}/`).href), url)
})

t.test('of the packages yaml is in it, with its licence; the others are imported', async t => {
  const files = readdirSync(BUNDLE, { recursive: true, encoding: 'utf8' }).filter(file => extname(file) === '.js')
  const imported = files.flatMap(file => [
    ...readFileSync(join(BUNDLE, file), 'utf8').matchAll(/^(?:import|export) .*? from '([^.'][^']*)'/gm),
  ])
  const packages = new Set(imported.map(([, name = '']) => name).filter(name => !name.startsWith('node:')))
  t.strictSame([...packages], ['better-sqlite3'])
  t.ok(readFileSync(join(BUNDLE, 'src/yaml.js'), 'utf8').includes(readFileSync(join(ROOT, 'node_modules/yaml/LICENSE'), 'utf8')))
})
