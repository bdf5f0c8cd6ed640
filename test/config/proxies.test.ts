import t from 'tap'
import { effective } from '../../src/config/print.js'
import { proxyFor } from '../../src/config/proxies.js'
import { load } from './loading.js'

const of = (address: string, env: Record<string, string>): unknown => {
  const found = proxyFor(new URL(address), env)
  return 'problem' in found ? found.problem : found.proxy
}

t.test('what the environment says of the way to an address', async t => {
  const env = { HTTPS_PROXY: 'http://proxy:3128', http_proxy: 'other:80', HTTP_PROXY: 'http://not.this' }
  t.equal(of('https://a.example', env), 'http://proxy:3128/')
  t.equal(of('http://a.example', env), 'http://other/', 'the lower case counts, and http:// is what is meant')
  t.equal(of('https://a.example', {}), null)
  t.equal(of('https://a.example', { https_proxy: '', HTTPS_PROXY: 'http://proxy' }), null, 'set to nothing')
  t.equal(of('https://a.example', { https_proxy: 'http://u:p%40@proxy:1' }), 'http://u:p%40@proxy:1/')
  const problem = 'HTTPS_PROXY of the environment must be an address that begins with http:// or https://'
  for (const wrong of ['socks5://proxy', 'http://', '%', 'http://a b']) t.equal(of('https://a.example', { https_proxy: wrong }), problem)
  for (const wrong of ['http://u:100%@proxy', 'http://%ff@proxy'])
    t.match(of('https://a.example', { https_proxy: wrong }), /^the name and the password in HTTPS_PROXY .* must be percent-encoded/, wrong)
})

t.test('no_proxy', async t => {
  const straight = (host: string, list: string): boolean => of(`https://${host}`, { https_proxy: 'proxy', no_proxy: list }) === null
  const rows: [host: string, list: string, straight: boolean][] = [
    ['a.example', '*', true],
    ['a.example', 'A.Example', true],
    ['a.example', 'example', true],
    ['a.example', '.example', true],
    ['a.example', '*.example', true],
    ['a.example', 'x, a.example', true],
    ['a.example', 'x a.example', true],
    ['a.example', 'b.example', false],
    ['aexample', 'example', false],
    ['a.example', 'a.example:443', true],
    ['a.example', 'a.example:80', false],
    ['a.example:8443', 'a.example:8443', true],
    ['10.0.0.1', '10.0.0.1', true],
    ['10.0.0.1', '0.0.1', true],
    ['[fd00::1]', 'fd00::1', true],
    ['[fd00::1]', '[fd00::1]:443', true],
    ['[fd00::1]', '[fd00::1]:80', false],
    ['a.example', '', false],
    ['a.example', ' , ', false],
  ]
  for (const [host, list, expected] of rows) t.equal(straight(host, list), expected, `${host} with ${JSON.stringify(list)}`)
})

t.test('a provider goes through the environment’s proxy where it says so, this machine never', async t => {
  const env = { HTTPS_PROXY: 'http://user:secret@proxy:3128', HTTP_PROXY: 'http://user:secret@proxy:3128' }
  const proxy = (address: string, more: string): string | undefined =>
    load(`providers: {c: {kind: openai, base_url: "${address}", insecure: true${more}}}\nmodels: {c/m: {price: free}}\n`, {
      env,
    }).config.providers.get('c')?.proxy
  t.equal(proxy('https://a.example', ', proxy: environment'), 'http://user:secret@proxy:3128/')
  t.equal(proxy('http://a.example', ', proxy: environment'), 'http://user:secret@proxy:3128/')
  const { config } = load(
    'providers: {c: {kind: openai, base_url: "https://a.example", proxy: environment}}\nmodels: {c/m: {price: free}}\n',
    { env },
  )
  t.match(effective(config), /^ {4}proxy: environment$/m)
  t.notMatch(effective(config), /user|secret|3128/, 'whose address may hold a password')
  t.equal(proxy('https://a.example', ''), undefined)
  t.equal(proxy('https://a.example', ', proxy: none'), undefined)
  for (const here of ['http://localhost:1', 'https://127.0.0.1', 'http://[::1]:1']) t.equal(proxy(here, ', proxy: environment'), undefined)
  t.throws(
    () =>
      load('providers: {c: {kind: openai, base_url: "https://a.example", proxy: environment}}\nmodels: {c/m: {price: free}}\n', {
        env: { https_proxy: 'socks5://secret' },
      }),
    { message: /:1:\d+: providers\.c\.proxy: HTTPS_PROXY of the environment must be an address/ },
  )
})
