import t from 'tap'
import { ENDPOINTS } from '../../src/endpoints/endpoints.js'
import { keyPage } from '../../src/endpoints/key.js'
import { modelPage, modelsPage } from '../../src/endpoints/models.js'
import { GatewayError } from '../../src/errors.js'
import { clientRequestId, errorFields, passedDown } from '../../src/http/headers.js'
import { Router } from '../../src/http/router.js'

const router = new Router(ENDPOINTS, [keyPage, modelsPage, modelPage])

/** Who answers, and with which rest; or the code of the refusal. */
function routed(method: string, path: string): string {
  try {
    const route = router.route(method, path)
    return route.kind === 'endpoint' ? route.endpoint.surface : `${route.page.path} ${route.rest}`
  } catch (error) {
    const { code, headers } = error as GatewayError
    return headers === undefined ? code : `${code}, allow: ${headers.allow}`
  }
}

t.test('who answers a path', async t => {
  const rows: [method: string, path: string, expected: string][] = [
    ['POST', '/v1/chat/completions', 'chat'],
    ['POST', '/v1/completions', 'completions'],
    ['POST', '/v1/embeddings', 'embeddings'],
    ['POST', '/v1/moderations', 'moderations'],
    ['POST', '/v1/rerank', 'rerank'],
    ['POST', '/v2/rerank', 'rerank'],
    ['POST', '/rerank', 'rerank'],
    ['GET', '/v1/key', '/v1/key '],
    ['HEAD', '/v1/key', '/v1/key '],
    ['GET', '/v1/models', '/v1/models '],
    ['GET', '/v1/models/openai/gpt-4o', '/v1/models/ openai/gpt-4o'],
    ['GET', '/v1/models/openai%2Fgpt-4o', '/v1/models/ openai/gpt-4o'],
    ['GET', '/v1/models/a%2fb%2Fc:d@e', '/v1/models/ a/b/c:d@e'],
    ['GET', '/v1/models/%D9%85', '/v1/models/ م'],
    ['GET', '/v1/models/%zz', 'not_found'],
    ['GET', '/v1/models/%ff', 'not_found'],
    ['GET', '/', 'not_found'],
    ['GET', '', 'not_found'],
    ['POST', '/v1/chat/completions/', 'not_found'],
    ['POST', '/V1/chat/completions', 'not_found'],
    ['POST', 'http://example.com/v1/chat/completions', 'not_found'],
    ['OPTIONS', '*', 'not_found'],
    ['GET', '/metrics', 'not_found'],
    ['GET', '/v1/modelsx', 'not_found'],
    ['GET', '/v1/key/x', 'not_found'],
    ['GET', '/__proto__', 'not_found'],
    ['GET', '/v1/chat/completions', 'method_not_allowed, allow: POST'],
    ['PUT', '/v1/rerank', 'method_not_allowed, allow: POST'],
    ['POST', '/v1/key', 'method_not_allowed, allow: GET, HEAD'],
    ['DELETE', '/v1/models/a/b', 'method_not_allowed, allow: GET, HEAD'],
    ['OPTIONS', '/v1/models', 'method_not_allowed, allow: GET, HEAD'],
  ]
  for (const [method, path, expected] of rows) t.equal(routed(method, path), expected, `${method} ${path}`)
})

t.test('who tries the format of another interface is told what to call', async t => {
  for (const path of ['/v1/responses', '/v1/messages']) {
    t.throws(() => router.route('POST', path), { code: 'not_found', status: 404, message: /POST \/v1\/chat\/completions/ })
  }
})

t.test("a client's own request id is kept where it can be", async t => {
  const rows: [unknown, string | null][] = [
    [undefined, null],
    ['abc-123', 'abc-123'],
    ['~!', '~!'],
    ['', null],
    ['a b', null],
    ['é', null],
    ['x'.repeat(128), 'x'.repeat(128)],
    ['x'.repeat(129), null],
    [['a', 'b'], null],
  ]
  for (const [given, kept] of rows) t.equal(clientRequestId({ 'x-request-id': given as string }), kept)
})

t.test("of a provider's header fields, only what is harmless passes", async t => {
  const upstream = {
    'content-type': 'Application/JSON',
    'openai-processing-ms': '12',
    'openai-organization': 'our-org',
    'x-ratelimit-remaining-requests': '3',
    'retry-after': '3',
    'set-cookie': ['a=b'],
    'x-request-id': 'theirs',
    'request-id': 'another',
    connection: 'close',
    'transfer-encoding': 'chunked',
    server: 'nginx',
  }
  t.strictSame(passedDown(upstream, 'x-request-id'), { 'openai-processing-ms': '12', 'x-upstream-request-id': 'theirs' })
  t.strictSame(passedDown({ 'request-id': 'a\nb', 'openai-processing-ms': ['1', '2'] }, 'request-id'), {})
})

t.test('the header fields of an error', async t => {
  const of = (code: string, options = {}) => errorFields(new GatewayError(code, '', options))
  t.strictSame(of('invalid_request'), {})
  t.strictSame(of('missing_api_key'), { 'www-authenticate': 'Bearer' })
  t.strictSame(of('invalid_api_key'), { 'www-authenticate': 'Bearer' })
  t.strictSame(of('rate_limit_rpm', { retryAfter: 7 }), { 'retry-after': '7' })
  t.strictSame(of('rate_limit_rpd', { retryAfter: 700, shouldRetry: false }), { 'retry-after': '700', 'x-should-retry': 'false' })
  t.strictSame(of('key_daily_budget_reached', { retryAfter: 9 }), { 'retry-after': '9', 'x-should-retry': 'false' })
  t.strictSame(of('draining'), { 'retry-after': '1', connection: 'close' })
  t.strictSame(of('overloaded'), { 'retry-after': '1' })
  t.strictSame(of('request_timeout'), { 'x-should-retry': 'true' })
  t.strictSame(of('upstream_timeout'), { 'x-should-retry': 'false' })
  t.strictSame(of('method_not_allowed', { headers: { allow: 'GET' } }), { allow: 'GET' })
})
