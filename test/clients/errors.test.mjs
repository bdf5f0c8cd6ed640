import assert from 'node:assert/strict'
import { test } from 'node:test'
import { APICallError, generateText, streamText } from 'ai'
import * as cohere from 'cohere-ai'
import { at, gateway, json, KEY, provider } from './support/gateway.mjs'
import { aiSdk, cohereV2, langchain, OPENAI, openai } from './support/libraries.mjs'

const PRICE = { input: 1_000_000, output: 1_000_000 }
const far = await provider((_seen, response) =>
  json(response, 400, {
    error: {
      message: "This model's maximum context length is 8 tokens.",
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    },
  }),
)
const failing = fail => ({ price: PRICE, options: { fail } })
const running = await gateway({
  providers: { up: at(far) },
  models: {
    'up/small': { price: PRICE },
    'sandbox/forbidden': { price: PRICE },
    'sandbox/breaks': failing({ status: 500 }),
    'sandbox/no-credit': failing({ status: 402 }),
    'sandbox/busy': failing({ status: 429, retry_after: 7 }),
    'sandbox/gone': { price: PRICE, options: { refuse: true } },
  },
  plans: { once: { requests_per_hour: 0 } },
  accounts: { poor: { opening_balance_rial: 1 } },
  keys: {
    poor: { account: 'poor', plan: 'open', secret: 'mgk_test_key_poor' },
    capped: { account: 'rich', plan: 'open', secret: 'mgk_test_key_capped', budget: { monthly_rial: 1 } },
    spent: { account: 'rich', plan: 'open', secret: 'mgk_test_key_spent', budget: { daily_tokens: 1 } },
    slow: { account: 'rich', plan: 'once', secret: 'mgk_test_key_slow' },
    narrow: { account: 'rich', plan: 'open', secret: 'mgk_test_key_narrow', models: ['sandbox/echo'] },
    off: { account: 'rich', plan: 'open', secret: 'mgk_test_key_off', disabled: true },
  },
})

const HELLO = [{ role: 'user', content: 'Hello' }]

/** What goes wrong, with what a library must be told of it. `cause` is the class that `openai` throws; `cohere` that of cohere-ai. */
const CASES = [
  {
    what: 'no such key',
    key: 'mgk_wrong',
    status: 401,
    code: 'invalid_api_key',
    type: 'authentication_error',
    cause: 'AuthenticationError',
    cohere: 'UnauthorizedError',
  },
  {
    what: 'a disabled key',
    key: 'mgk_test_key_off',
    status: 401,
    code: 'invalid_api_key',
    type: 'authentication_error',
    cause: 'AuthenticationError',
    cohere: 'UnauthorizedError',
  },
  {
    what: 'an empty wallet',
    key: 'mgk_test_key_poor',
    status: 402,
    code: 'insufficient_balance',
    type: 'insufficient_quota',
    cause: 'APIError',
  },
  {
    what: "the month's cap",
    key: 'mgk_test_key_capped',
    status: 402,
    code: 'monthly_cap_reached',
    type: 'insufficient_quota',
    cause: 'APIError',
  },
  {
    what: 'a model outside the key',
    key: 'mgk_test_key_narrow',
    model: 'sandbox/forbidden',
    status: 403,
    code: 'model_not_allowed',
    type: 'permission_error',
    param: 'model',
    cause: 'PermissionDeniedError',
    cohere: 'ForbiddenError',
  },
  {
    what: 'no such model',
    model: 'sandbox/none',
    status: 404,
    code: 'model_not_found',
    type: 'invalid_request_error',
    param: 'model',
    cause: 'NotFoundError',
    cohere: 'NotFoundError',
  },
  {
    what: "the plan's ceiling",
    key: 'mgk_test_key_slow',
    status: 429,
    code: 'rate_limit_rph',
    type: 'rate_limit_error',
    cause: 'RateLimitError',
    cohere: 'TooManyRequestsError',
  },
  {
    what: "the day's tokens",
    key: 'mgk_test_key_spent',
    status: 429,
    code: 'key_daily_token_budget_reached',
    type: 'insufficient_quota',
    cause: 'RateLimitError',
    cohere: 'TooManyRequestsError',
  },
  {
    what: 'a provider that is busy',
    model: 'sandbox/busy',
    status: 429,
    code: 'upstream_rate_limited',
    type: 'upstream_error',
    cause: 'RateLimitError',
    cohere: 'TooManyRequestsError',
  },
  {
    what: 'a provider that fails',
    model: 'sandbox/breaks',
    status: 502,
    code: 'upstream_error',
    type: 'upstream_error',
    cause: 'InternalServerError',
  },
  {
    what: "a provider that wants the operator's money",
    model: 'sandbox/no-credit',
    status: 502,
    code: 'upstream_auth_failed',
    type: 'upstream_error',
    cause: 'InternalServerError',
  },
  {
    what: 'a provider that is not there',
    model: 'sandbox/gone',
    status: 502,
    code: 'upstream_unavailable',
    type: 'upstream_error',
    cause: 'InternalServerError',
  },
]

for (const {
  what,
  key = KEY,
  model = 'sandbox/echo',
  status,
  code,
  type,
  param = null,
  cause,
  cohere: cohereCause = 'CohereError',
} of CASES) {
  for (const { name, module } of OPENAI) {
    for (const stream of [false, true]) {
      test(`${name}: ${what}${stream ? ', asked for a stream' : ''} is a ${cause} ${status} ${code}`, async () => {
        const error = await rejected(openai(running, { module, apiKey: key }).chat.completions.create({ model, messages: HELLO, stream }))
        assert.ok(error instanceof module[cause], `${error}`)
        assert.equal(error.constructor.name, cause)
        assert.deepEqual({ status: error.status, code: error.code, type: error.type, param: error.param }, { status, code, type, param })
        assert.match(error.requestID, /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
        assert.ok(error.message.length > `${status} `.length + 10, error.message)
      })
    }
  }

  test(`ai: ${what} is an APICallError ${status} with the whole error in its data`, async () => {
    const error = await rejected(generateText({ model: aiSdk(running, { apiKey: key })(model), prompt: 'Hello', maxRetries: 0 }))
    assert.ok(APICallError.isInstance(error), `${error}`)
    assert.equal(error.statusCode, status)
    const { message, details: _, ...rest } = JSON.parse(error.responseBody).error
    assert.deepEqual(rest, { code, type, param })
    assert.equal(error.message, message)
    assert.match(error.responseHeaders['x-request-id'], /^req_/)
  })

  test(`cohere-ai: ${what} is a ${cohereCause} ${status}`, async () => {
    const error = await rejected(
      cohereV2(running, { apiKey: key }).rerank({ model, query: 'Hello', documents: ['a', 'b'] }, { maxRetries: 0 }),
    )
    assert.ok(error instanceof cohere.CohereError, `${error}`)
    if (cohereCause !== 'CohereError') assert.ok(error instanceof cohere.Cohere[cohereCause], error.constructor.name)
    assert.equal(error.statusCode, status)
    assert.equal(error.body.error.code, code)
    assert.match(error.rawResponse.headers.get('x-request-id'), /^req_/)
  })
}

for (const [what, key, model, status, mark] of [
  ['a wrong key', 'mgk_wrong', 'sandbox/echo', 401, 'MODEL_AUTHENTICATION'],
  ['no such model', KEY, 'sandbox/none', 404, 'MODEL_NOT_FOUND'],
  ["the plan's ceiling", 'mgk_test_key_slow', 'sandbox/echo', 429, 'MODEL_RATE_LIMIT'],
]) {
  test(`langchain: ${what} is marked ${mark}`, async () => {
    const error = await rejected(langchain(running, { apiKey: key, model }).invoke('Hello'))
    assert.equal(error.status, status)
    assert.equal(error.lc_error_code, mark)
  })
}

test('langchain: a context that is too long is a ContextOverflowError', async () => {
  const error = await rejected(langchain(running, { model: 'up/small' }).invoke('Hello'))
  assert.equal(error.name, 'ContextOverflowError')
})

for (const { name, module } of OPENAI) {
  test(`${name}: the provider's code for a context that is too long survives`, async () => {
    const error = await rejected(openai(running, { module }).chat.completions.create({ model: 'up/small', messages: HELLO }))
    assert.ok(error instanceof module.BadRequestError)
    assert.deepEqual([error.status, error.code, error.param], [400, 'context_length_exceeded', 'messages'])
  })

  test(`${name}: no key at all is an AuthenticationError missing_api_key`, async () => {
    const client = openai(running, { module, defaultHeaders: { authorization: null } })
    const error = await rejected(client.chat.completions.create({ model: 'sandbox/echo', messages: HELLO }))
    assert.ok(error instanceof module.AuthenticationError, `${error}`)
    assert.equal(error.code, 'missing_api_key')
  })

  for (const [param, body] of [
    ['messages', { messages: [] }],
    ['messages[1].role', { messages: [...HELLO, { role: 'friend', content: 'x' }] }],
    ['messages[0].content', { messages: [{ role: 'user', content: 4 }] }],
    ['temperature', { temperature: 'warm' }],
    ['n', { n: 0 }],
    ['max_tokens', { max_tokens: 'many' }],
    ['tools', { tools: 'all' }],
    ['stream', { stream: 'yes' }],
    ['model', { model: 7 }],
  ]) {
    test(`${name}: what is wrong in ${param} is a BadRequestError that names it`, async () => {
      const error = await rejected(openai(running, { module }).chat.completions.create({ model: 'sandbox/echo', messages: HELLO, ...body }))
      assert.ok(error instanceof module.BadRequestError, `${error}`)
      assert.deepEqual([error.code, error.type, error.param], ['invalid_request', 'invalid_request_error', param])
    })
  }

  test(`${name}: a page that there is not is a NotFoundError that says so`, async () => {
    const error = await rejected(openai(running, { module }).responses.create({ model: 'sandbox/echo', input: 'Hello' }))
    assert.ok(error instanceof module.NotFoundError, `${error}`)
    assert.equal(error.code, 'not_found')
    assert.match(error.message, /\/v1\/chat\/completions/)
  })

  test(`${name}: a model that it may not see is not found`, async () => {
    const error = await rejected(openai(running, { module, apiKey: 'mgk_test_key_narrow' }).models.retrieve('sandbox/forbidden'))
    assert.ok(error instanceof module.NotFoundError, `${error}`)
    assert.equal(error.code, 'model_not_found')
  })
}

test('ai: streamText tells a refusal as an error part', async () => {
  const result = streamText({ model: aiSdk(running)('sandbox/none'), prompt: 'Hello', maxRetries: 0, onError() {} })
  const parts = []
  for await (const part of result.fullStream) parts.push(part)
  const { error } = parts.find(part => part.type === 'error')
  assert.equal(error.statusCode, 404)
  assert.equal(error.data.error.code, 'model_not_found')
})

async function rejected(pending) {
  try {
    await pending
  } catch (error) {
    return error
  }
  throw new assert.AssertionError({ message: 'It should have failed.' })
}
