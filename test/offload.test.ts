import t from 'tap'
import { INLINE_BYTES_MAX } from '../src/offload.js'
import { gateway, yaml } from './support/gateway.js'
import { provider } from './support/provider.js'

t.test('a large body is answered like a small one, and its thread does not keep a gateway alive that stops', async t => {
  const far = await provider(t)
  const running = await gateway(t, yaml(far.url))
  const content = 'word '.repeat(INLINE_BYTES_MAX / 4)
  const answer = await running.post('/v1/chat/completions', { model: 'up/m', messages: [{ role: 'user', content }] })
  t.equal(answer.status, 200)
  t.strictSame(far.seen[0]?.body.messages, [{ role: 'user', content }])
  const late = setTimeout(() => running.process.kill('SIGKILL'), 10_000)
  t.equal(await running.stop(), 0, 'it ended by itself')
  clearTimeout(late)
  const [record] = await running.records()
  t.match(record, { state: 'settled', input_tokens: 9, output_tokens: 2 })
})
