import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { at, gateway, json, PRICE, provider } from './support/gateway.mjs'
import { openai } from './support/libraries.mjs'
import { ASKS, NATIVE } from './support/oracle-asks.mjs'
import { ORACLES } from './support/oracles.mjs'

/*
 * The providers' own libraries as the measure of what the gateway makes of their wires: the requests that it sends are those that they send,
 * and its clients read of an answer what they read.
 */

/** Its own library throws on this one: the end without figures is for gateways to survive, the API has not been seen to send it. */
const UNREAD = ['output-unreported.stream']
const unreported = theirs => ({ ...theirs, usage: undefined })
/** Where the gateway rightly tells something else, and what. */
const OTHERWISE = {
  // What is reported is no count, or only half: no usage is told, and the gateway counts for itself.
  'usage-impossible.answer': unreported,
  'safety.stream': unreported,
  // The library forgets the reason for the empty one that follows it.
  'max-tokens-mid-call.stream': ({ choices: [choice], usage }) => ({ choices: [{ ...choice, finish: 'length' }], usage }),
}
const FIXTURES = join(import.meta.dirname, '../fixtures')

const fars = {}
const providers = {}
for (const [kind, { path, options }] of Object.entries(ORACLES)) {
  fars[kind] = await provider(refuse)
  providers[kind] = at(fars[kind], kind, {
    base_url: `http://127.0.0.1:${fars[kind].port}${path}`,
    ...(options === undefined ? {} : { options }),
  })
}
const running = await gateway({
  providers,
  models: Object.fromEntries(Object.keys(ORACLES).map(kind => [`${kind}/m`, { price: PRICE, default_max_tokens: 200 }])),
})

for (const [kind, oracle] of Object.entries(ORACLES)) {
  const far = fars[kind]
  const client = oracle.client(`http://127.0.0.1:${far.port}`)

  for (const [name, native] of Object.entries(NATIVE[kind](client))) {
    test(`${kind}, ${name}: the gateway sends what its own library sends`, async () => {
      far.script = refuse
      far.seen.length = 0
      await assert.rejects(async () => native())
      const [path, body] = ASKS[name]
      assert.equal((await running.post(path, { model: `${kind}/m`, ...body })).status, 400)
      assert.equal(far.seen.length, 2)
      const [theirs, ours] = far.seen.map(({ path, headers, body }) => [path, identity(headers), oracle.plain?.(body) ?? body])
      assert.deepEqual(ours, theirs)
    })
  }
  if (oracle.read === undefined) continue

  for (const { name, streamed, fails, bytes } of fixtures(kind)) {
    test(`${kind}, ${name}: a client reads what its own library reads`, async () => {
      far.script = (_, response) => {
        if (!streamed) return json(response, 200, bytes.toString())
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(bytes)
      }
      // What libraries make of answers that are none is their affair: some say nothing of a stream that breaks off.
      if (fails) return assert.rejects(read(streamed, kind))
      const theirs = await oracle.read(client, streamed)
      const ours = await read(streamed, kind)
      assert.deepEqual(ours, OTHERWISE[name]?.(theirs) ?? theirs)
    })
  }
}

function refuse(_, response) {
  json(response, 400, { message: 'No.' })
}

async function read(streamed, kind) {
  const body = { model: `${kind}/m`, messages: [{ role: 'user', content: 'Go' }] }
  const { completions } = openai(running).chat
  const thoughts = []
  let answer, usage
  if (streamed) {
    const stream = completions.stream({ ...body, stream_options: { include_usage: true } })
    for await (const chunk of stream) {
      usage = chunk.usage ?? usage
      // Of a field that it does not know the library keeps the last piece.
      for (const { index, delta } of chunk.choices) thoughts[index] = (thoughts[index] ?? '') + (delta.reasoning_content ?? '')
    }
    answer = await stream.finalChatCompletion()
  } else {
    answer = await completions.create(body)
    usage = answer.usage
  }
  return {
    choices: answer.choices.map(({ index, message, finish_reason }) => ({
      text: message.content ?? '',
      thought: thoughts[index] ?? message.reasoning_content ?? '',
      calls: (message.tool_calls ?? []).map(call => [call.function.name, argumentsOf(call)]),
      finish: finish_reason,
    })),
    usage: usage && {
      input: usage.prompt_tokens,
      output: usage.completion_tokens,
      cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
    },
  }
}

/** An answer that was cut short may end within them: of this one the provider's library makes an object without the field. */
function argumentsOf({ function: { arguments: text } }) {
  return text === '{"a":' ? {} : JSON.parse(text)
}

/** The headers that say who asks, in which version. Anthropic takes a key in either of two. */
function identity({ 'x-api-key': key, ...headers }) {
  const names = ['authorization', 'x-goog-api-key', 'anthropic-version']
  const told = { ...headers, ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) }
  return Object.fromEntries(names.map(name => [name, told[name]]))
}

function fixtures(kind) {
  const files = readdirSync(join(FIXTURES, kind))
  return files
    .filter(file => file.endsWith('.provider.sse') || file.endsWith('.provider.json'))
    .filter(file => !/\.request\.|embed|rerank/.test(file) && !UNREAD.some(name => file.startsWith(name)))
    .map(file => ({
      name: file.replace(/\.provider\..+/, ''),
      streamed: file.endsWith('.sse'),
      fails: files.includes(file.replace(/provider\..+/, 'failure.json')),
      bytes: readFileSync(join(FIXTURES, kind, file)),
    }))
}
