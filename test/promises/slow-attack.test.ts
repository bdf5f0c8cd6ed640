import t from 'tap'
import { slowAttack } from './slow-attack.js'

t.test('300 clients that send and read as slowly as they can are cut within 15 s, and nobody else notices', async t => {
  const { attackers, requests, failed, medianMs } = await slowAttack(t, 300)
  t.equal(failed, 0)
  t.ok(requests > 100, `${requests} ordinary requests`)
  t.ok(medianMs < 250, `${medianMs} ms`)
  for (const [attack, { count, longestMs }] of Object.entries(attackers)) {
    t.ok(count >= 15, attack)
    t.ok(longestMs < 15_000, `${attack}: ${longestMs} ms`)
  }
})
