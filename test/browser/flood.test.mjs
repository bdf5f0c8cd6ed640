import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { open, tab } from './support/browser.mjs'
import { chat, gateway, provider, SECRETS, TOKEN } from './support/gateway.mjs'
import { jumps, watchJumps } from './support/measures.mjs'

const RATE = 1000
const SECONDS = 3
/** What a person notices as a stop. By the clock on the wall, which also counts while others have the machine. */
const TASK_MS_MAX = 500

/** What the page does while `flood` resolves with how many there were, and how long it took. */
async function through(address, flood) {
  const { page, troubles, asked, context } = await tab()
  await open(page, address)
  const inspector = await context.newCDPSession(page)
  await inspector.send('Performance.enable', { timeDomain: 'threadTicks' })
  const measured = async () =>
    Object.fromEntries((await inspector.send('Performance.getMetrics')).metrics.map(({ name, value }) => [name, value]))
  await watchJumps(page)
  await page.evaluate(() => {
    window.tasks = []
    new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })
    window.frames = []
    let last = performance.now()
    const frame = now => {
      window.frames.push(now - last)
      last = now
      requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
  })
  const before = await measured()
  const polls = asked.length
  const began = performance.now()
  const { made, ms } = await flood()
  await page.waitForFunction(
    sum => Number(document.querySelector('#figure-spend .under').textContent.replace(/ request.*|,/g, '')) >= sum,
    made,
  )
  const seconds = (performance.now() - began) / 1000
  const after = await measured()
  const { tasks, frames } = await page.evaluate(() => ({ tasks: window.tasks, frames: window.frames.sort((a, b) => a - b) }))
  const busy = (after.TaskDuration - before.TaskDuration) / seconds
  const figures = {
    'requests a second': Math.round((made * 1000) / ms),
    'questions of the page a second': ((asked.length - polls) / seconds).toFixed(1),
    'its main thread busy': `${(busy * 100).toFixed(1)} %`,
    'its longest task': `${Math.round(Math.max(0, ...tasks))} ms`,
    'its frames, median and 99 %': `${Math.round(frames[frames.length >> 1])} and ${Math.round(frames[Math.floor(frames.length * 0.99)])} ms`,
  }
  console.log(
    Object.entries(figures)
      .map(([name, value]) => `${name}: ${value}`)
      .join('; '),
  )
  assert.ok(busy < 0.5, 'its main thread rests half of the time')
  assert.deepEqual(
    tasks.filter(task => task > TASK_MS_MAX),
    [],
  )
  assert.ok((asked.length - polls) / seconds <= 4, 'at most four questions a second')
  assert.ok((await page.locator('#rows li').count()) <= 40)
  assert.deepEqual(await jumps(page), [])
  // It answers while it is at it: a row opens.
  await page.locator('#rows li:not([hidden]) a').first().click()
  await page.getByRole('dialog').waitFor({ timeout: 5000 })
  assert.deepEqual(troubles, [])
  const heap = (await measured()).JSHeapUsedSize
  assert.ok(heap < 64 * 1024 * 1024, `${heap} bytes`)
}

const run = promisify(execFile)
const script = name => join(import.meta.dirname, 'support', name)

test('thousands of requests, as fast as the gateway takes them on this machine, do not freeze the page', async () => {
  const far = await provider(chat())
  const running = await gateway(far.url)
  await through(running.page, async () => {
    const { stdout } = await run(process.execPath, [
      script('flood.mjs'),
      running.url,
      SECRETS['support-bot'],
      String(RATE),
      String(SECONDS),
    ])
    return JSON.parse(stdout)
  })
  await running.stop()
})

test('a thousand requests a second, whatever the machine, do not freeze the page', async () => {
  const child = spawn(process.execPath, [script('stream.mjs'), TOKEN, String(RATE)], { stdio: ['ignore', 'pipe', 'inherit'] })
  after(() => child.kill('SIGKILL'))
  let said = ''
  const address = await new Promise(resolve => {
    child.stdout.on('data', chunk => {
      said += chunk
      const [, url] = /^(http\S+)\n/.exec(said) ?? []
      if (url !== undefined) resolve(url)
    })
  })
  await through(address, async () => {
    await new Promise(resolve => setTimeout(resolve, SECONDS * 1000))
    return { made: RATE * SECONDS, ms: SECONDS * 1000 }
  })
})
