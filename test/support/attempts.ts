import type { ProviderSettings } from '../../src/config/config.js'
import chatCompletions from '../../src/endpoints/chat-completions.js'
import { GatewayError } from '../../src/errors.js'
import type { JsonObject } from '../../src/json.js'
import { type Answered, Attempt, type AttemptFacts } from '../../src/upstream/attempt.js'
import { httpTransport } from '../../src/upstream/http.js'
import openai from '../../src/upstream/providers/openai.js'
import type { Provider, Transport, Wire } from '../../src/upstream/providers/provider.js'
import { wholeAnswer } from '../../src/upstream/whole.js'
import { CHAT } from './answer-stream.js'
import { settingsOf } from './calls.js'
import { sampleCall, sampleModel } from './sample-call.js'

interface Test {
  teardown(fn: () => unknown): unknown
}

export interface AttemptOptions {
  readonly stream?: boolean
  readonly body?: JsonObject
  readonly timeout?: Partial<ProviderSettings['timeout']>
  readonly settings?: Partial<ProviderSettings>
  readonly transport?: Transport
  readonly provider?: Provider
  readonly wire?: Wire
  readonly includeUsage?: boolean
  readonly now?: number
  readonly meter?: AttemptFacts['meter']
  readonly asks?: AttemptFacts['asks']
  readonly whole?: AttemptFacts['whole']
}

/** Tries at one provider, over connections of their own that end with the test. */
export function attempts(t: Test, url: string, defaults: AttemptOptions = {}) {
  const settings = settingsOf('openai', { base_url: url, max_connections: 4, ...defaults.settings })
  const transport = defaults.transport ?? httpTransport(settings, { now: () => 0, distrusted: () => {} })
  t.teardown(() => transport.close())
  return (options: AttemptOptions = {}): Attempt => {
    const {
      stream = false,
      body = {},
      timeout = {},
      provider = openai,
      wire = CHAT,
      includeUsage = true,
      now = 0,
      meter = () => null,
    } = { ...defaults, ...options }
    const mine = { ...settings, ...options.settings, timeout: { ...settings.timeout, ...timeout } }
    const call = sampleCall('chat', { messages: [{ role: 'user', content: 'a' }], stream, ...body }, sampleModel({ provider: mine }))
    const asks: AttemptFacts['asks'] = options.asks ?? (field => Object.hasOwn(call.body, field))
    const facts: AttemptFacts = {
      call,
      settings: mine,
      provider,
      wire,
      transport,
      endpoint: chatCompletions,
      includeUsage,
      meter,
      whole: options.whole ?? ((bytes, headers) => wholeAnswer(bytes.joined(), call, wire, chatCompletions, headers)),
      asks,
      now: () => now,
    }
    const headers = { 'content-type': 'application/json', ...provider.authorize(mine.api_key, mine) }
    return new Attempt(facts, { key: 'app-a', headers, body: JSON.stringify(call.body) })
  }
}

/** The refusal that a try ends in. */
export async function refused(attempt: Attempt): Promise<GatewayError> {
  try {
    await attempt.answered
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('it was answered')
}

/** All that is told of an answer: its text, and the error that a stream ended in. */
export function heard(answered: Answered): Promise<{ text: string; error: unknown }> {
  if (answered.kind === 'whole') return Promise.resolve({ text: String(answered.answer.text), error: null })
  return new Promise(resolve => {
    let text = ''
    answered.stream.attach({
      write: piece => {
        text += piece
      },
      done: () => resolve({ text, error: null }),
      failed: error => resolve({ text, error }),
    })
  })
}
