import { execFile, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../src/config/load.js'
import { isObject, type JsonObject } from '../src/json.js'
import { names } from '../src/plugin.js'
import { loadKinds } from '../src/upstream/kinds.js'
import { documents } from './documents.js'
import { gateway, yaml } from './support/gateway.js'
import { anchors, blocks, links, prose } from './support/markdown.js'
import { FIXTURES, programFile, ROOT } from './support/paths.js'
import { bare, endAll, listening } from './support/program.js'
import { provider } from './support/provider.js'

const FOLDERS = ['', 'config/', 'config/deploy/', 'policies/', 'src/', 'test/']
const DOCUMENTS = FOLDERS.flatMap(folder =>
  readdirSync(ROOT + folder)
    .filter(file => file.endsWith('.md'))
    .map(file => folder + file),
)
const FIRST = readFileSync(`${ROOT}gateway.yaml`, 'utf8')
const BLOCKS = DOCUMENTS.flatMap(document => blocks(text(document)).map(block => ({ ...block, at: `${document}:${block.line}` })))

function text(document: string): string {
  return readFileSync(ROOT + document, 'utf8')
}

function blocksOf(...info: string[]) {
  return BLOCKS.filter(block => info.every((word, i) => block.info[i] === word))
}

t.test('what the documents have from the code is what the code says (else: npm run docs)', async t => {
  for (const [document, made] of await documents()) t.equal(text(document), made, document)
})

t.test('links lead to files and headings that exist', async t => {
  for (const document of DOCUMENTS) {
    for (const link of links(text(document))) {
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? document : join(dirname(document), path)
      t.ok(existsSync(ROOT + target), `${document}: ${link}`)
      if (anchor !== undefined && existsSync(ROOT + target)) t.ok(anchors(text(target)).includes(anchor), `${document}: ${link}`)
    }
  }
})

t.test('files that the documents name exist', async t => {
  for (const document of DOCUMENTS) {
    for (const [, path = ''] of prose(text(document)).matchAll(/`((?:\.ci|config|policies|src|test|dist|lib)\/[\w./-]*)`/g)) {
      t.ok(existsSync(ROOT + path), `${document}: ${path}`)
    }
  }
})

t.test('the manual of the tests has every folder and every piece of support', async t => {
  const manual = text('test/README.md')
  for (const file of readdirSync(`${ROOT}test/support`)) t.match(manual, `(support/${file})`)
  for (const entry of readdirSync(`${ROOT}test`, { withFileTypes: true })) {
    const rooms = manual.includes('`config/`, `http/`, `ledger/`, …') && existsSync(`${ROOT}src/${entry.name}`)
    if (entry.isDirectory() && !rooms) t.match(manual, `| \`${entry.name}/\` |`)
  }
})

t.test('scripts, verbs and files of shell blocks exist', async t => {
  const { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> }
  const verbs = names(new URL('../src/commands/', import.meta.url))
  const said = [
    ...BLOCKS.filter(({ info }) => info[0] === 'sh'),
    ...DOCUMENTS.map(document => ({ at: document, text: prose(text(document)) })),
  ]
  for (const { at, text: words } of said) {
    for (const [, script = ''] of words.matchAll(/npm run ([\w-]+)/g))
      t.ok(script in scripts, `${at}: package.json has the script ${script}`)
    for (const [, verb = ''] of words.matchAll(/model-gateway ([a-z]+)/g)) t.ok(verbs.includes(verb), `${at}: there is a verb ${verb}`)
    for (const [path] of words.matchAll(/\b(?:dist|lib)\/[\w./-]+\.js\b|(?<=^|\s)\.ci\/\w+/gm))
      t.ok(existsSync(ROOT + path), `${at}: ${path}`)
  }
})

t.test('the map of the tree names what is there', async t => {
  const [map] = blocks(text('README.md')).filter(({ info }) => info.length === 0)
  const lines = (map?.text ?? '').trimEnd().split('\n')
  t.ok(lines.length > 10 && lines.length <= 30, 'it can be taken in at a glance')
  let folder = ''
  for (const line of lines) {
    const [paths = ''] = line.trimStart().split(/ {2,}/)
    const inside = line.startsWith('  ')
    if (!inside) folder = paths
    for (const path of paths.split(' ')) t.ok(existsSync(join(ROOT, inside ? folder + path : path)), line.trim())
  }
})

t.test('configs and sections of configs can be loaded', async t => {
  const kinds = await loadKinds()
  const load = (config: string) => {
    const file = join(ROOT, 'gateway.yaml')
    const readFile = (path: string) => {
      const pem = /\.(?:crt|key)$/.exec(path)?.[0]
      if (pem !== undefined) return readFileSync(`${FIXTURES}tls/localhost${pem}`, 'utf8')
      return path === file ? config : `secret-of-${basename(path)}`
    }
    return loadConfig(file, { kinds, readFile, env: { OPENAI_API_KEY: 'sk-1', APP_A_KEY: 'mgk_1' } })
  }
  t.ok(blocksOf('yaml').length > 3, 'there are some')
  for (const { info, text: block, at } of blocksOf('yaml')) {
    const whole = info[1] === 'fragment' ? stringify(over(parse(FIRST), parse(block) ?? {})) : block
    t.doesNotThrow(() => load(whole), at)
  }
})

/** Sections put over those of another config, name by name. */
function over(below: JsonObject, above: JsonObject): JsonObject {
  const put = { ...below } as Record<string, JsonObject[string]>
  for (const [name, value] of Object.entries(above)) {
    const old = put[name]
    put[name] = isObject(old) && isObject(value) ? over(old, value) : value
  }
  return put
}

t.test('the prices that the manual says `check` prints are those', async t => {
  const priced = blocksOf('yaml', 'fragment').find(({ at, text }) => at.startsWith('config/') && text.includes('markup:'))
  const file = join(ROOT, 'gateway.yaml')
  const config = stringify(over(parse(FIRST), parse(priced?.text ?? '')))
  const { models } = loadConfig(file, { kinds: await loadKinds(), readFile: () => config, env: { OPENAI_API_KEY: 'sk-1' } }).config
  const price = models.get('openai/gpt-4o-mini')?.price
  t.match(prose(text('config/README.md')), `here ${price?.input}, ${price?.cached_input} and ${price?.output} Rial`)
})

t.test('JSON is JSON, and excerpts of files are in those files', async t => {
  for (const { text: block, at } of blocksOf('json')) t.doesNotThrow(() => JSON.parse(block), at)
  for (const { info, text: block, at } of blocksOf('ts')) {
    const of = info[1]?.replace(/^of=/, '') ?? ''
    t.ok(existsSync(ROOT + of) && text(of).includes(block), `${at} is a part of ${of}`)
  }
})

t.test('what the documents say can be run can be run', async t => {
  const running = await gateway(t, FIRST.replace(/^(listen|ops|admin):.*$/gm, ''))
  const here = (block: string) => block.replaceAll('http://127.0.0.1:8080', running.url).replaceAll('http://127.0.0.1:9090', running.ops)
  const run = promisify(execFile)
  const program = join(running.folder, 'bin')
  mkdirSync(program, { recursive: true })
  writeFileSync(join(program, 'model-gateway'), `#!/bin/sh\nexec "${process.execPath}" "${programFile()}" "$@"\n`, { mode: 0o755 })
  const { NODE_OPTIONS: _, ...own } = process.env
  const env = { ...own, SECRET: 'test', PATH: `${program}:${process.env.PATH}` }
  t.ok(blocksOf('sh', 'run').length > 2 && blocksOf('js', 'run').length > 0, 'there are some')
  for (const { text: block, at } of blocksOf('sh', 'run')) {
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', here(block)], { env, cwd: running.folder })
    t.ok(stdout.length > 0 && !stdout.includes('"error":'), `${at}: ${stdout.slice(0, 300)}`)
  }
  for (const { text: block, at } of blocksOf('js', 'run')) {
    const code = `${here(block)}\nconsole.log(answer.choices[0].message.content)`
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], { cwd: ROOT })
    t.equal(stdout, 'You said: Hello\n', at)
  }
  t.equal(await running.stop(), 0)
})

t.test('npm start runs it', async t => {
  const folder = t.testdir({ 'gateway.yaml': FIRST.replace(/^(listen|ops|admin): \S+/gm, '$1: 127.0.0.1:0') })
  const [command = '', ...args] = bare(['npm', 'start', '--silent', '--', '-c', join(folder, 'gateway.yaml')])
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  t.teardown(() => endAll(child, 'SIGKILL'))
  const address = await listening(child)
  const { status } = await fetch(`${address}/v1/key`, { headers: { authorization: 'Bearer mgk_demo_local_only' } })
  t.equal(status, 200)
  await endAll(child, 'SIGTERM')
})

t.test('the Python of the README says what its JavaScript says', async t => {
  const [js] = blocksOf('js', 'run')
  const [python] = blocksOf('python')
  const said = (code = '') => [...code.matchAll(/['"](http[^'"]+|mgk_\w+|default|user|Hello)['"]/g)].map(([, word]) => word)
  t.equal(said(python?.text).length, 5)
  t.strictSame(said(python?.text), said(js?.text))
  const parse = spawnSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
    input: python?.text ?? '',
    encoding: 'utf8',
  })
  if (parse.error === undefined) t.equal(parse.status, 0, parse.stderr)
})

t.test('with the real provider of the README the same call is answered by it', async t => {
  const far = await provider(t)
  const [lines] = blocksOf('yaml', 'fragment').filter(({ at }) => at.startsWith('README'))
  const { listen, ops, admin, ...config } = over(parse(FIRST), parse(lines?.text ?? ''))
  t.ok(listen && ops && admin)
  const put = over(config, { providers: { openai: { base_url: far.url } } })
  const running = await gateway(t, stringify(put), { env: { OPENAI_API_KEY: 'sk-of-the-provider' } })
  const asked = { model: 'default', messages: [{ role: 'user', content: 'Hello' }] }
  const { status, json } = await running.post('/v1/chat/completions', asked, { authorization: 'Bearer mgk_demo_local_only' })
  t.match({ status, model: json.model }, { status: 200, model: 'openai/gpt-4o-mini' })
  t.match(far.seen, [{ headers: { authorization: 'Bearer sk-of-the-provider' }, body: { model: 'gpt-4o-mini', max_tokens: 2048 } }])
})

t.test('the README shows the call that the start prints', async t => {
  const source = text('src/commands/serve.ts')
  const [shown] = blocksOf('sh', 'run').filter(({ at }) => at.startsWith('README'))
  const call = shown?.text.replace(/ \\\n +/, ' ').trim() ?? ''
  const [, printed = ''] = /return \[`(curl .*)`\]/.exec(source) ?? []
  const made = printed
    .replace(/\$\{address\}/, 'http://127.0.0.1:8080')
    .replace(/\$\{header\}/, ' -H "authorization: Bearer mgk_demo_local_only"')
    .replace(/\$\{body\}/, '{"model":"default","messages":[{"role":"user","content":"Hello"}]}')
  t.equal(call, made)
})

t.test('a provider that is down is told as such', async t => {
  const far = await provider(t)
  const running = await gateway(t, yaml(far.url))
  await far.close()
  const { status, json } = await running.post('/v1/chat/completions', { model: 'up/m', messages: [{ role: 'user', content: 'Hi' }] })
  t.equal(status, 502)
  t.equal(json.error.code, 'upstream_unavailable')
})
