import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { createRequire } from 'node:module'
import { Ajv2020 as Ajv } from 'ajv/dist/2020.js'
import t from 'tap'
import { ENDPOINTS } from '../src/endpoints/endpoints.js'
import { CODES } from '../src/errors.js'
import { conform, openapi } from './support/api.js'
import { AUTH, gateway, yaml } from './support/gateway.js'
import type { Parsed } from './support/parsed.js'
import { ROOT } from './support/paths.js'
import { json, provider } from './support/provider.js'

/*
 * config/openapi.yaml: well-formed, and about this gateway. That answers are as it says, every test with a running gateway holds.
 */

const document: Parsed = openapi().document

t.test('it is an OpenAPI 3.1 document', async t => {
  const meta = createRequire(import.meta.url).resolve('@seriousme/openapi-schema-validator/schemas/v3.1/schema.json')
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
  const fits = ajv.compile(JSON.parse(readFileSync(meta, 'utf8')))
  t.ok(fits(document), JSON.stringify(fits.errors, null, 1))
  t.notOk(fits({ ...document, paths: { '/x': { get: { responses: { 200: {} } } } } }), 'and the check can say no')
  // Each schema is one by itself, and what it refers to is there.
  ajv.addSchema(document, 'api')
  for (const name of Object.keys(document.components.schemas)) t.ok(ajv.getSchema(`api#/components/schemas/${name}`), name)
  const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'))
  t.equal(document.info.version, version)
})

t.test('it has every path of the public listener, and no other', async t => {
  const paths = [...ENDPOINTS.flatMap(endpoint => endpoint.paths), '/v1/models', '/v1/models/{id}', '/v1/key']
  t.strictSame(Object.keys(document.paths).sort(), paths.sort())
  const ids = Object.values(document.paths).flatMap((item: Parsed) =>
    item.$ref === undefined ? [(item.post ?? item.get).operationId] : [],
  )
  t.equal(new Set(ids).size, ids.length)
})

t.test('it has every field that a surface takes, and no other', async t => {
  for (const { paths, fields, parameters, surface } of ENDPOINTS) {
    for (const path of paths) {
      const { $ref } = (openapi().operation(path, 'POST') as Parsed).requestBody.content['application/json'].schema
      const schema = document.components.schemas[$ref.split('/').at(-1)]
      t.strictSame(Object.keys(schema.properties).sort(), ['model', ...fields, ...parameters].sort(), surface)
    }
  }
})

t.test('it has every code and every status of an error', async t => {
  const codes = [...CODES].filter(([code]) => code !== 'client_closed')
  t.strictSame([...document.components.schemas.Error.properties.error.properties.code.examples].sort(), codes.map(([code]) => code).sort())
  for (const [path, { post }] of Object.entries(document.paths) as [string, Parsed][]) {
    if (post === undefined) continue
    const statuses = new Set(codes.map(([, { status }]) => String(status)).filter(status => !['405', '417', '431'].includes(status)))
    t.strictSame(Object.keys(post.responses).sort(), ['200', ...statuses, 'default'].sort(), path)
  }
})

t.test('answers of each form pass, and what is not as described does not', async t => {
  const far = await provider(t)
  const running = await gateway(t, yaml(far.url, { plan: '{requests_per_minute: 100}' }))
  const ask = { model: 'default', messages: [{ role: 'user', content: 'Hi' }] }
  const chat = await running.post('/v1/chat/completions', ask)
  const stream = await running.post('/v1/chat/completions', { ...ask, stream: true })
  const card = await running.get('/v1/models/up%2Fm')
  const status = await running.get('/v1/key')
  const refused = await running.post('/v1/chat/completions', ask, {})
  t.strictSame(
    [chat, stream, card, status, refused].map(one => one.status),
    [200, 200, 200, 200, 401],
  )

  const without = (headers: Headers, name: string) => new Headers([...headers].filter(([header]) => header !== name))
  const post = { method: 'POST', path: '/v1/chat/completions' }
  const of = (one: typeof chat, over: object = {}) => ({ ...post, status: one.status, headers: one.headers, body: one.text, ...over })
  const wrong: [string, () => void, RegExp][] = [
    ['a header is missing', () => conform(of(chat, { headers: without(chat.headers, 'x-request-id') })), /header x-request-id is missing/],
    [
      'a header is wrong',
      () => conform(of(chat, { headers: new Headers([...chat.headers, ['retry-after', '0'], ['x-ratelimit-reset-tokens', '1.5']]) })),
      /x-ratelimit-reset-tokens/,
    ],
    [
      'another form',
      () =>
        conform(
          of(chat, {
            headers: new Headers([...chat.headers].map(([name, value]) => [name, name === 'content-type' ? 'text/html' : value])),
          }),
        ),
      /content-type is/,
    ],
    ['a body of another kind', () => conform(of(chat, { body: card.text })), /the body must have required property 'choices'/],
    ['a body that is none', () => conform(of(chat, { body: chat.text.slice(1) })), /the body is no JSON/],
    [
      'a field that is not there',
      () =>
        conform({
          method: 'GET',
          path: '/v1/key',
          status: 200,
          headers: status.headers,
          body: JSON.stringify({ ...status.json, more: 1 }),
        }),
      /additional/,
    ],
    [
      'a card without a price',
      () =>
        conform({
          method: 'GET',
          path: '/v1/models/x',
          status: 200,
          headers: card.headers,
          body: JSON.stringify({ ...card.json, price: undefined }),
        }),
      /price/,
    ],
    ['an error without a code', () => conform(of(refused, { body: refused.text.replace('"code"', '"kode"') })), /code/],
    ['a refusal without its figures', () => conform(of(chat, { status: 402, body: refused.text })), /details/],
    ['an event', () => conform(of(stream, { body: stream.text.replace('"chat.completion.chunk"', '"chunk"') })), /the event/],
    ['an event behind [DONE]', () => conform(of(stream, { body: stream.text + stream.text })), /follows \[DONE\]/],
    [
      'a request that should have been refused',
      () => conform(of(chat, { asked: { model: 'default' } })),
      /the request must have required property 'messages'/,
    ],
  ]
  for (const [name, fault, said] of wrong) t.throws(fault, { message: said }, name)
})

t.test('the other paths of rerank answer alike, and a body that does not come is answered, too', async t => {
  const far = await provider(t, (_, response) => json(response, 200, { id: 'x', results: [{ index: 0, relevance_score: 0.5 }] }))
  const running = await gateway(t, yaml(far.url, { more: 'timeout: {request: 1s}' }))
  for (const path of ['/v1/rerank', '/v2/rerank', '/rerank']) {
    const { status } = await running.post(path, { model: 'default', query: 'q', documents: ['a'] })
    t.equal(status, 200, path)
  }
  t.equal((await running.get('/v1/models')).status, 200)
  const slow = request(`${running.url}/v1/chat/completions`, { method: 'POST', headers: { ...AUTH, 'content-length': 100 } })
  slow.write('{')
  const [response] = (await once(slow, 'response')) as [IncomingMessage]
  const body = (await response.setEncoding('utf8').toArray()).join('')
  const headers = new Headers(response.headers as Record<string, string>)
  t.equal(response.statusCode, 408)
  conform({ method: 'POST', path: '/v1/chat/completions', status: 408, headers, body })
  slow.destroy()
})
