import { Agent, request } from 'node:http'

/*
 * node flood.mjs URL KEY RATE SECONDS: asks the sandbox so often a second, a tenth of it without a right key, and says how often it did. What
 * the machine can not keep up with is made good as soon as it can, so that the count is right whatever the pace.
 */
const [url, key, rate, seconds] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: 64 })
const body = JSON.stringify({ model: 'default', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 8 })
const total = Number(rate) * Number(seconds)
const began = performance.now()
let made = 0
let ended = 0

function one() {
  const wrong = ++made % 10 === 0
  const sent = request(`${url}/v1/chat/completions`, {
    agent,
    method: 'POST',
    headers: { authorization: `Bearer ${wrong ? 'mgk_wrong' : key}`, 'content-type': 'application/json', 'content-length': body.length },
  })
  const over = () => {
    if (++ended < total) return
    console.log(JSON.stringify({ made, ms: Math.round(performance.now() - began) }))
    process.exit(0)
  }
  sent.on('response', response => response.resume().on('end', over))
  sent.on('error', over)
  sent.end(body)
}

setInterval(() => {
  const due = Math.min(total, Math.floor(((performance.now() - began) / 1000) * Number(rate)))
  while (made < due && made - ended < 64) one()
}, 5)
