import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { talk } from '../support/client.js'
import { gateway, inspect, yaml } from '../support/gateway.js'
import { programFile, ROOT } from '../support/paths.js'
import { bare, endAll, listening, program } from '../support/program.js'
import { openStream, provider } from '../support/provider.js'

/*
 * The first start: the gateway.yaml that is shipped, and what a start that can not be says.
 */

const SHIPPED = readFileSync(join(ROOT, 'gateway.yaml'), 'utf8')
  .replace('listen: 127.0.0.1:8080', 'listen: 127.0.0.1:0')
  .replace('ops: 127.0.0.1:9090', 'ops: 127.0.0.1:0')
  .replace('admin: 127.0.0.1:9091', 'admin: 127.0.0.1:0')
const DEMO = 'mgk_demo_local_only'

function folderWith(t: Test, text: string): string {
  const folder = t.testdir({ 'gateway.yaml': text })
  return folder
}

t.jobs = 4
t.test('the shipped gateway.yaml runs as it is, and answers', async t => {
  const folder = folderWith(t, SHIPPED)
  const started = performance.now()
  const [command = '', ...args] = bare([process.execPath, programFile()])
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  let output = ''
  const said = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', chunk => {
        output += chunk
        const address = /"message":"listening","address":"([^"]+)"/.exec(output)?.[1]
        if (address !== undefined) resolve(address)
      })
    }
    child.on('exit', code => reject(new Error(`it ended with ${code}: ${output}`)))
  })
  const address = await said
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEMO}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'default', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  t.equal(response.status, 200)
  t.match(await response.json(), { model: 'sandbox/echo', choices: [{ finish_reason: 'stop' }] })
  t.comment(`from the start to the first answer: ${Math.round(performance.now() - started)} ms`)
  t.ok(existsSync(join(folder, 'data', 'ledger.db')), 'beside the config')
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  t.equal(code, 0)
})

const scripted = spawnSync('script', ['--version'], { encoding: 'utf8' })
const noTerminal = scripted.stdout?.includes('util-linux') ? false : 'there is no script(1) of util-linux here to make a terminal'
t.test('on a terminal it greets in at most ten lines, with a call that can be pasted', { skip: noTerminal }, async t => {
  const folder = folderWith(t, SHIPPED)
  const command = `echo pid=$$; exec ${bare([process.execPath, programFile()]).join(' ')}`
  const child = spawn('script', ['-qefc', command, '/dev/null'], { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] })
  let output = ''
  const greeted = new Promise<string>(resolve => {
    child.stdout.on('data', chunk => {
      output += chunk
      const call = /^curl .*'\r?$/m.exec(output)?.[0]
      if (call !== undefined) resolve(call)
    })
  })
  t.teardown(() => {
    const pid = Number(/pid=(\d+)/.exec(output)?.[1])
    if (child.exitCode === null && child.signalCode === null && pid > 0) process.kill(pid, 'SIGKILL')
  })
  const call = await greeted
  const lines = output.trim().split('\n').slice(1)
  t.ok(lines.length <= 10, output)
  t.ok(
    lines.every(line => !line.startsWith('{')),
    'no JSON for people',
  )
  const [, page = '', token] = /(http:\S+)\/#token=(\S+)/.exec(output) ?? []
  const opened = await fetch(`${page}/api/about`, { headers: { authorization: `Bearer ${token}` } })
  t.equal(opened.status, 200, 'the link opens the page')
  // The event loop must turn while curl waits: its terminal is read here.
  const pasted = spawn('sh', ['-c', call.trim()], { stdio: ['ignore', 'pipe', 'ignore'] })
  let said = ''
  pasted.stdout.on('data', chunk => {
    said += chunk
  })
  await once(pasted, 'close')
  t.match(JSON.parse(said), { object: 'chat.completion' })
  // Ctrl-C
  child.stdin.write('\x03')
  const [code] = await once(child, 'exit')
  t.equal(code, 0)
})

async function taken(t: Test): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

for (const [section, workers] of [
  ['listen', 1],
  ['ops', 1],
  ['admin', 1],
  ['listen', 2],
  ['ops', 2],
] as const) {
  t.test(`a port under ${section} that is taken, workers: ${workers}: says which, and what to do; exit code 1`, async t => {
    const port = await taken(t)
    const folder = folderWith(t, `workers: ${workers}\n${SHIPPED.replace(`${section}: 127.0.0.1:0`, `${section}: 127.0.0.1:${port}`)}`)
    const { code, stderr } = await program(['serve'], { cwd: folder })
    t.equal(code, 1)
    t.match(stderr, new RegExp(`127\\.0\\.0\\.1:${port} is taken by another program`))
    t.match(stderr, new RegExp(`choose another address under .*${section}:.* in .*gateway\\.yaml`))
    t.notMatch(stderr, /\n\s+at /, 'no stack trace')
    await inspect(folder, async ledger => t.strictSame(await ledger.accounts(), [], 'and nothing was credited'))
  })
}

t.test('a start that fails says what it has released of the last run: the next one finds nothing of it', async t => {
  const up = await provider(t, (seen, response) => openStream(seen, response).say('Once '))
  const running = await gateway(t, yaml(up.url))
  const body = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }], stream: true }
  const talking = talk(`${running.url}/v1/chat/completions`, { body })
  await talking.until('Once ')
  await running.kill()
  const file = join(running.folder, 'second.yaml')
  writeFileSync(file, `listen: 127.0.0.1:0\nops: 127.0.0.1:${await taken(t)}\n${yaml(up.url)}`)
  const { code, stdout } = await program(['serve', '-c', file])
  t.equal(code, 1)
  const [line = '{}', ...more] = stdout.split('\n').filter(line => line.includes('a hold that the last run left open was released'))
  t.strictSame(more, [])
  t.match(JSON.parse(line), { level: 'warn', model: 'up/m', key: 'a', request_id: (await talking.head).headers['x-request-id'] })
})

t.test('SIGHUP while it starts is minded once it has', async t => {
  const up = await provider(t)
  const signals = `let made = 0
export default () => {
  if (++made === 1) process.kill(process.pid, 'SIGHUP')
  return { name: 'signals', close() {} }
}
`
  const folder = t.testdir({ 'signals.mjs': signals })
  const running = await gateway(t, yaml(up.url, { more: 'policies: [auth, rate, budget, hold, ./signals.mjs]' }), { folder })
  await running.line('the config was reloaded')
  t.equal(await running.stop(), 0)
})

t.test('a bad config: every problem at once, with its line and column; exit code 2, and nothing was made', async t => {
  const bad = SHIPPED.replace('month: gregorian ', 'month: gregorain ')
    .replace('    plan: free\n', '    plan: fre\n')
    .replace('    account: acme\n', '    acount: acme\n')
    .replace('secret: mgk_demo_local_only', ['secret: $', '{NO_SUCH_KEY}'].join(''))
  const folder = folderWith(t, bad)
  const { code, stdout, stderr } = await program(['serve'], { cwd: folder })
  t.equal(code, 2)
  t.equal(stdout, '')
  const lineOf = (text: string): number => bad.slice(0, bad.indexOf(text)).split('\n').length
  for (const [text, said] of [
    ['month: gregorain', /month: .*did you mean.*gregorian/],
    ['plan: fre\n', /plan: .*fre.*did you mean.*free/],
    ['acount: acme', /acount.*did you mean.*account/],
    ['{NO_SUCH_KEY}', /NO_SUCH_KEY/],
  ] as const) {
    const line = stderr.split('\n').find(one => new RegExp(`gateway\\.yaml:${lineOf(text)}:\\d+: `).test(one))
    t.match(line ?? stderr, said)
  }
  t.notOk(existsSync(join(folder, 'data')))
})

t.test('a config that is no YAML, and one that is not there: exit code 2', async t => {
  const folder = folderWith(t, 'listen: [127.0.0.1:0\nkeys: {')
  const bad = await program(['serve'], { cwd: folder })
  t.equal(bad.code, 2)
  t.match(bad.stderr, /gateway\.yaml:\d+:\d+: /)
  const absent = await program(['serve', '-c', 'nowhere.yaml'], { cwd: folder })
  t.equal(absent.code, 2)
  t.equal(
    absent.stderr,
    'nowhere.yaml:1:1: cannot read it: there is no such file\nWrite a first one: model-gateway init. Or name the one that there is: model-gateway serve -c FILE\n',
  )
})

t.test('a variable that is missing: which, where, and how to set it', async t => {
  const providers = '  sandbox: {kind: sandbox}\n  up: {kind: openai, api_key: "$'.concat('{UP_KEY}"}')
  const folder = folderWith(t, SHIPPED.replace(/^ {2}sandbox: \{kind: sandbox\}.*$/m, providers))
  const { code, stdout, stderr } = await program(['serve'], { cwd: folder })
  t.strictSame({ code, stdout }, { code: 2, stdout: '' })
  t.match(
    stderr,
    /^gateway\.yaml:\d+:\d+: providers\.up\.api_key: the environment has no variable UP_KEY\nSet what is missing before the start: export UP_KEY=…\n$/,
  )
})

t.test('a Node that is too old: which one it takes, and how to get it', async t => {
  const old = 'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"18.20.8"}})'
  const [command = '', ...args] = bare([process.execPath, '--import', old, programFile(), 'serve'])
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', cwd: t.testdir() })
  t.strictSame({ status, stdout }, { status: 2, stdout: '' })
  t.equal(
    stderr,
    'model-gateway needs Node.js 20.18.1 or newer; this is 18.20.8.\nInstall Node.js 24 (https://nodejs.org), or choose it with your version manager: nvm install 24.\n',
  )
})

t.test('a first config where nothing may be written: says so, and where else', async t => {
  const folder = folderWith(t, '')
  chmodSync(folder, 0o555)
  const root = process.getuid?.() === 0
  const { code, stdout, stderr } = await program(['init', 'first.yaml'], { cwd: folder, ...(root ? { uid: 65_534 } : {}) })
  chmodSync(folder, 0o755)
  t.strictSame({ code, stdout }, { code: 1, stdout: '' })
  t.match(
    stderr,
    /^model-gateway init: .*first\.yaml can not be written: this user may not\.\nChoose another place: model-gateway init FILE\n$/,
  )
})

t.test('packed and installed: init, start, and the call that it prints', async t => {
  const folder = t.testdir()
  const npm = (...args: string[]) => {
    const [command = '', ...rest] = bare(['npm', ...args])
    const ran = spawnSync(command, rest, { cwd: ROOT, encoding: 'utf8' })
    t.equal(ran.status, 0, ran.stderr)
    return ran.stdout.trim().split('\n').at(-1) ?? ''
  }
  const tarball = npm('pack', '--ignore-scripts', '--silent', '--pack-destination', folder)
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  spawnSync('tar', ['xzf', join(folder, tarball), '-C', modules])
  renameSync(join(modules, 'package'), join(modules, 'model-gateway'))
  // What it depends on is here already: installed from the same lock file, with its native module.
  const { dependencies, bin } = JSON.parse(readFileSync(join(modules, 'model-gateway', 'package.json'), 'utf8'))
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages
  const needed = new Set<string>()
  const need = (name: string): void => {
    if (needed.has(name)) return
    needed.add(name)
    for (const other of Object.keys(lock[`node_modules/${name}`]?.dependencies ?? {})) need(other)
  }
  for (const name of Object.keys(dependencies)) need(name)
  for (const name of needed) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
  symlinkSync(`../model-gateway/${bin['model-gateway']}`, join(modules, '.bin', 'model-gateway'))
  chmodSync(join(modules, 'model-gateway', bin['model-gateway']), 0o755)

  const npx = ['npx', '--no-install', 'model-gateway']
  const [first = '', ...init] = bare([...npx, 'init', '--json'])
  const made = JSON.parse(spawnSync(first, init, { cwd: folder, encoding: 'utf8' }).stdout)
  const file = join(folder, 'gateway.yaml')
  // What a policy imports is what the program uses: the same class, of the same file. (A package of its own: this folder lies in ours.)
  writeFileSync(join(folder, 'package.json'), '{}')
  writeFileSync(
    join(folder, 'named.mjs'),
    `import { GatewayError } from 'model-gateway'
let calls = 0
export default (options, host) => ({
  name: 'named',
  admit() {
    if (!(host.error('overloaded', 'x') instanceof GatewayError)) throw new Error('there are two of it')
    if (++calls > 1) throw new GatewayError('model_not_allowed', 'Once is enough.')
    return []
  },
})
`,
  )
  writeFileSync(
    file,
    readFileSync(file, 'utf8')
      .replace('127.0.0.1:8080', '127.0.0.1:0')
      .replace('127.0.0.1:9090', '127.0.0.1:0')
      .replace(/^admin: .*$/m, '')
      .replace('policies: [auth, rate, budget, hold]', 'policies: [auth, rate, budget, ./named.mjs, hold]'),
  )
  const [command = '', ...args] = bare(npx)
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  t.teardown(() => endAll(child, 'SIGKILL'))
  const address = await listening(child)
  const ask = async (): Promise<unknown> => {
    const response = await fetch(`${address}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${made.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'default', messages: [{ role: 'user', content: 'Hello' }] }),
    })
    return response.json()
  }
  t.match(await ask(), { object: 'chat.completion', model: 'sandbox/echo' })
  t.match(await ask(), { error: { code: 'model_not_allowed', message: 'Once is enough.' } })
  await endAll(child, 'SIGTERM')
})

t.test('a folder of the ledger that can not be written: says which, and what to do; exit code 1', async t => {
  const folder = folderWith(t, SHIPPED)
  chmodSync(folder, 0o555)
  // Permissions do not bind root.
  const root = process.getuid?.() === 0
  const { code, stderr } = await program(['serve'], { cwd: folder, ...(root ? { uid: 65_534 } : {}) })
  chmodSync(folder, 0o755)
  t.equal(code, 1)
  t.match(stderr, /ledger: .*data\/ledger\.db cannot be written by this user: give it write access/)
  t.notMatch(stderr, /\n\s+at /)
})

t.test('a second gateway on the same ledger is refused, and the first one goes on', async t => {
  const up = await provider(t)
  const first = await gateway(t, yaml(up.url))
  const second = join(first.folder, 'second.yaml')
  writeFileSync(second, `listen: 127.0.0.1:0\nops: 127.0.0.1:0\n${yaml(up.url)}`)
  const { code, stderr } = await program(['serve', '-c', second])
  t.equal(code, 1)
  t.match(stderr, /ledger\.db is open in another process: stop that gateway/)
  const answer = await first.post('/v1/chat/completions', { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] })
  t.equal(answer.status, 200)
})
