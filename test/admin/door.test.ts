import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { objection, opens } from '../../src/admin/door.js'

const request = (headers: Record<string, string>): IncomingMessage => ({ headers }) as unknown as IncomingMessage

t.test('a Host that nobody else can make point here comes in, whatever its port', async t => {
  for (const host of [
    '127.0.0.1:9091',
    '127.0.0.1',
    '10.1.2.3:80',
    '[::1]:9091',
    'localhost:9999',
    'page.localhost:1',
    'LOCALHOST:1',
    'ops.example:9091',
  ])
    t.equal(objection(request({ host }), 'ops.example'), null, host)
})

t.test('a Host that is a name of somebody else does not', async t => {
  for (const host of [
    'evil.example:9091',
    'evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'ops.example.',
    '',
    'a b',
    '[::1',
    '@',
    '1.2.3',
  ])
    t.match(objection(request({ host }), 'ops.example'), /Host/, host)
  t.match(objection(request({}), '127.0.0.1'), /Host/)
})

t.test('an Origin comes in if it is that of the page itself', async t => {
  const host = '127.0.0.1:9091'
  for (const origin of [undefined, 'http://127.0.0.1:9091', 'https://127.0.0.1:9091'])
    t.equal(objection(request({ host, ...(origin === undefined ? {} : { origin }) }), '127.0.0.1'), null)
  for (const origin of [
    'null',
    '',
    'http://127.0.0.1:8080',
    'http://localhost:9091',
    'http://127.0.0.1:9091.evil.example',
    'http://evil.example',
  ])
    t.match(objection(request({ host, origin }), '127.0.0.1'), /origin/, origin)
})

t.test('what a browser says comes of another site does not', async t => {
  const host = '127.0.0.1:9091'
  for (const site of ['same-origin', 'none']) t.equal(objection(request({ host, 'sec-fetch-site': site }), '127.0.0.1'), null)
  for (const site of ['cross-site', 'same-site', '']) t.match(objection(request({ host, 'sec-fetch-site': site }), '127.0.0.1'), /site/)
})

t.test('the token opens, and nothing else does', async t => {
  const token = 'mgp_0123456789'
  for (const authorization of [`Bearer ${token}`, `bearer   ${token} `]) t.equal(opens(request({ authorization }), token), true)
  for (const authorization of ['', 'Bearer', `Basic ${token}`, `Bearer ${token}x`, 'Bearer mgp_', `Bearer ${token} x`, token])
    t.equal(opens(request({ authorization }), token), false, authorization)
  t.equal(opens(request({}), token), false)
})
