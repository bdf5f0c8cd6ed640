import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { searchFiles, searchSecrets, takeSecret } from '../support/canaries.js'
import { gateway, yaml } from '../support/gateway.js'
import { program } from '../support/program.js'
import { chat, provider } from '../support/provider.js'

/* Every test with a gateway searches what it gave out (support/canaries.ts). Here: that this finds what there is to find, and what no other test asks. */

const CHAT = '/v1/chat/completions'
const secret = (kind: string): string => `canary-${kind}-${randomBytes(8).toString('hex')}`

for (const [what, hook] of [
  ['a key of a client', 'identify: ({ headers }) => host.log(String(headers.authorization))'],
  ['a key of a client, in JSON', 'identify: ({ headers }) => host.log("seen", { headers: JSON.stringify(headers) })'],
  ['a prompt', 'amend: body => host.log("seen", { body: JSON.stringify(body) })'],
] as const) {
  t.test(`${what} that is given away is found`, async t => {
    const up = await provider(t)
    const folder = t.testdir({ 'leak.mjs': `export default (_, host) => ({ name: 'leak', ${hook} })\n` })
    const steps: (() => unknown)[] = []
    const own = { teardown: (fn: () => unknown) => steps.push(fn), testdir: () => folder }
    const running = await gateway(own, `policies: [./leak.mjs, auth, rate, budget, hold]\n${yaml(up.url)}`, { folder })
    const body = { model: 'up/m', messages: [{ role: 'user', content: `"${secret('prompt')}"\n` }] }
    t.equal((await running.post(CHAT, body)).status, 200)
    await t.rejects(
      (async () => {
        for (const step of steps) await step()
      })(),
      { message: /^its output gives away/ },
    )
  })
}

t.test('what the command line tells of a gateway, running and not, gives nothing away; nor does what a crash leaves behind', async t => {
  const keys = { client: secret('client'), provider: secret('provider'), proxy: secret('proxy') }
  const texts = { prompt: secret('prompt'), answer: secret('answer') }
  for (const one of Object.values(keys)) takeSecret(one)
  const up = await provider(t, chat({ text: texts.answer }))
  const folder = t.testdir()
  const config = yaml(up.url).replace('sk-upstream-secret', keys.provider)
  const text = config.replace('mgk_test_key_a', keys.client).replace('insecure: true', 'insecure: true, proxy: environment')
  const env = { HTTP_PROXY: `http://user:${keys.proxy}@proxy.example:1` }
  const running = await gateway(t, text, { folder, env })
  const headers = { authorization: `Bearer ${keys.client}` }
  const body = { model: 'up/m', messages: [{ role: 'user', content: texts.prompt }] }
  t.equal((await running.post(CHAT, body, headers)).status, 200)
  const verbs = [
    ['check'],
    ['check', '--json'],
    ['keys', 'list', '--json'],
    ['usage', '--json'],
    ['holds', '--json'],
    ['wallet', 'show', 'acme'],
    ['ledger', 'verify'],
    ['ledger', 'backup', join(folder, 'data', 'copy.db')],
  ]
  const told = async (): Promise<string> => {
    const said = verbs.map(async ([verb = '', ...rest]) => {
      const { stdout, stderr, code } = await program([verb, ...rest, '-c', join(folder, 'gateway.yaml')], { cwd: folder, env })
      t.equal(code, 0, `${verb}: ${stderr}`)
      return stdout + stderr
    })
    return (await Promise.all(said)).join('\n')
  }
  searchSecrets('the command line, running', await told())
  searchFiles(join(folder, 'data'))
  // As if it had come to what it can not go on from.
  await running.stop('SIGABRT')
  t.equal(running.process.signalCode, 'SIGABRT')
  writeFileSync(
    join(folder, 'bad.yaml'),
    readFileSync(join(folder, 'gateway.yaml'), 'utf8').replace(/keys:.*/s, `keys: {a: ${keys.client}}\nx: [${keys.provider}\n`),
  )
  const bad = await program(['check', '-c', 'bad.yaml'], { cwd: folder, env })
  t.equal(bad.code, 2)
  searchSecrets('a bad config', bad.stderr + bad.stdout)
})
