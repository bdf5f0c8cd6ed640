import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open, tab } from './support/browser.mjs'
import { chat, gateway, provider, TOKEN } from './support/gateway.mjs'
import { contrasts, jumps, watchJumps } from './support/measures.mjs'

const far = await provider(chat({ delayMs: 30 }))
const running = await gateway(far.url)
const { ask } = running

/** Requests of every kind of end. */
async function some() {
  for (let i = 0; i < 12; i++) await ask('demo')
  await Promise.all([
    ask('support-bot', { model: 'openai/gpt-4o' }),
    ask('checkout', { model: 'openai/gpt-4o-mini', stream: true }),
    ask('nightly', { model: 'openai/gpt-4o', max_tokens: 16384, messages: [{ role: 'user', content: 'word '.repeat(4000) }] }),
    ask('demo', { max_tokens: 4096, messages: [{ role: 'user', content: 'word '.repeat(30_000) }] }),
    ask('a-wrong-key'),
    ask('checkout', { model: 'no/such' }),
  ])
}
await some()

const rows = page => page.locator('#rows li:not([hidden]) a')

test('the link of the start opens it: the token leaves the address, and nothing of any other place is asked for', async () => {
  const { page, troubles, asked } = await tab()
  await open(page, running.page)
  assert.equal(new URL(page.url()).hash, '')
  assert.equal(await page.locator('#gate').isVisible(), false)
  await rows(page).first().waitFor()
  for (const view of ['Spend', 'Limits', 'Providers', 'Requests']) {
    await page.getByRole('link', { name: view, exact: true }).click()
    await page.waitForTimeout(400)
  }
  assert.deepEqual(
    asked.filter(url => !url.startsWith(`${running.page}/`) && !url.startsWith('data:')),
    [],
  )
  assert.ok(asked.every(url => !url.includes(TOKEN)))
  assert.deepEqual(troubles, [])
})

test('without a token it asks for one, says what is wrong with it, and keeps it for its tab alone', async () => {
  const { page, context } = await tab()
  await page.goto(running.page)
  await page.locator('#gate').waitFor()
  await page.keyboard.press('Escape')
  assert.equal(await page.locator('#gate').isVisible(), true, 'there is no way around it')
  await page.getByRole('textbox', { name: 'Token' }).fill('not-the-token')
  await page.getByRole('button', { name: 'Open' }).click()
  await page.getByText('This is not the token.').waitFor()
  await page.getByRole('textbox', { name: 'Token' }).fill(TOKEN)
  await page.keyboard.press('Enter')
  await rows(page).first().waitFor()
  await page.reload()
  await rows(page).first().waitFor()
  const other = await context.newPage()
  await other.goto(running.page)
  await other.locator('#gate').waitFor()
})

test('a request is shown within a second of its end', async () => {
  const { page, troubles } = await tab()
  await open(page, running.page)
  await rows(page).first().waitFor()
  const times = []
  for (let i = 0; i < 5; i++) {
    const { id } = await ask('support-bot')
    const ended = performance.now()
    await page.locator(`#rows a[href="/?request=${id}"]`).waitFor({ timeout: 5000 })
    times.push(Math.round(performance.now() - ended))
  }
  console.log(`shown after ${times.join(', ')} ms`)
  assert.ok(Math.min(...times) < 1000 && times.sort((a, b) => a - b)[2] < 1000, `shown after ${times} ms`)
  assert.deepEqual(troubles, [])
})

test('a refusal is explained in two clicks: its reason, its figures, and the line that would change it', async () => {
  const { page } = await tab()
  await open(page, running.page)
  await rows(page).first().waitFor()
  await page.getByRole('button', { name: 'Refused or failed' }).click()
  await page.getByText('rate_limit_rpm').first().click()
  const drawer = page.getByRole('dialog', { name: 'Requests per minute: the ceiling is reached' })
  await drawer.waitFor()
  const text = await drawer.innerText()
  assert.match(text, /Plan free allows key demo 10 requests a minute: 10 used\./)
  assert.match(text, /Ceiling\s+10\s+Used\s+10\s+Held\s+0\s+This request\s+1/)
  assert.match(text, /gateway\.yaml:\d+:\d+/)
  assert.match(text, /plans:\s+free:\s+requests_per_minute: 10/)
  assert.match(text, /11 or more would have let it pass/)
  assert.match(text, /none: it never reached a provider/i)
  assert.match(new URL(page.url()).search, /^\?request=req_/)
  const claims = await drawer.locator('.claim').allInnerTexts()
  assert.equal(claims.length, 8)
  assert.match(claims[0], /requests this minute\s+10 \+ 0 \+ 1 of 10/)
  await page.reload()
  await drawer.waitFor()
})

test('one that was answered shows what was held, what it cost, its tries and its times', async () => {
  const { page } = await tab()
  await open(page, running.page)
  const { id } = await ask('checkout', { model: 'openai/gpt-4o-mini', stream: true })
  await page.locator(`#rows a[href="/?request=${id}"]`).click()
  const drawer = page.getByRole('dialog', { name: 'Answered and settled' })
  await drawer.waitFor()
  const text = await drawer.innerText()
  assert.match(text, /Charged, Rial\s+\d+\s+of [\d,]+ held, [\d,]+ given back/)
  assert.match(text, /openai\/gpt-4o-mini\s+answered\s+\d/)
  assert.match(text, /Waiting for the provider\s+\d/)
  assert.match(text, /requests today\s+\d+ \+ 0 \+ 1, no ceiling/)
})

test('the keyboard is enough', async () => {
  const { page } = await tab()
  await open(page, running.page)
  await rows(page).first().waitFor()
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute('href') ?? document.activeElement?.id ?? '')
  await page.keyboard.press('r')
  await page.keyboard.press('j')
  const first = await focused()
  assert.match(first, /^\/\?request=req_/)
  await page.keyboard.press('ArrowDown')
  assert.notEqual(await focused(), first)
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle)
  assert.equal(outline, 'solid', 'the focus shows')
  await page.keyboard.press('k')
  assert.equal(await focused(), first)
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  assert.equal(await focused(), 'drawer-title')
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  assert.equal(await focused(), first, 'the focus is where it was')
  await page.keyboard.press('/')
  await page.keyboard.type('no/such')
  assert.equal(await focused(), 'search')
  await page.keyboard.press('Escape')
  for (const [key, path] of [
    ['2', '/spend'],
    ['3', '/limits'],
    ['4', '/providers'],
    ['1', '/'],
  ]) {
    await page.keyboard.press(key)
    assert.equal(new URL(page.url()).pathname, path)
  }
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys of the keyboard' }).waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('p')
  assert.equal(await page.locator('#pause').innerText(), 'Go on')
  // With Tab alone: from the start of the page to a row, and into it.
  await page.keyboard.press('p')
  await page.evaluate(() => document.activeElement.blur())
  for (let i = 0; i < 25 && !(await focused()).startsWith('/?request='); i++) await page.keyboard.press('Tab')
  assert.match(await focused(), /^\/\?request=/)
})

test('what is under the pointer stays there, and what came meanwhile is counted', async () => {
  const { page } = await tab()
  await open(page, running.page)
  await rows(page).first().waitFor()
  await rows(page).nth(2).hover()
  const before = await rows(page).nth(2).getAttribute('href')
  for (let i = 0; i < 3; i++) await ask('support-bot')
  await page.getByText('3 new since').waitFor()
  assert.equal(await rows(page).nth(2).getAttribute('href'), before)
  await page.mouse.move(5, 5)
  await page.getByText('3 new since').waitFor({ state: 'hidden' })
  assert.notEqual(await rows(page).nth(2).getAttribute('href'), before)
})

test('nothing jumps while it is live', async () => {
  const { page } = await tab()
  for (const view of ['/', '/limits', '/providers', '/spend']) {
    await open(page, running.page, view)
    await page.waitForTimeout(1000)
    await watchJumps(page)
    const end = performance.now() + 2500
    while (performance.now() < end) {
      await Promise.all([ask('support-bot', { model: 'openai/gpt-4o' }), ask('checkout'), ask('demo'), ask('nightly', { stream: true })])
      await page.waitForTimeout(40)
    }
    const found = await jumps(page)
    assert.deepEqual(found, [], `${view}: ${JSON.stringify(found)}`)
  }
  await page.evaluate(() =>
    document.querySelector('main').prepend(Object.assign(document.createElement('p'), { textContent: 'in the way' })),
  )
  await page.waitForTimeout(300)
  assert.notDeepEqual(await jumps(page), [], 'one that does would have been seen')
})

test('a phone of 360 pixels: nothing goes beyond its side, in any view', async () => {
  const { page, troubles } = await tab({ width: 360, height: 740, scale: 2, touch: true })
  const fits = async what => {
    const beyond = await page.evaluate(() => {
      const wide = [...document.querySelectorAll('body *')].filter(element => {
        const box = element.getBoundingClientRect()
        const scrolls = element.closest('pre, svg')
        return box.width > 0 && box.height > 1 && box.right > innerWidth + 1 && scrolls === null
      })
      return { page: document.documentElement.scrollWidth, wide: wide.map(element => element.outerHTML.slice(0, 120)).slice(0, 5) }
    })
    assert.deepEqual(beyond, { page: 360, wide: [] }, what)
  }
  for (const path of ['/', '/spend', '/limits', '/providers']) {
    await open(page, running.page, path)
    await page.waitForTimeout(700)
    await fits(path)
  }
  await open(page, running.page)
  await page.getByRole('button', { name: 'Refused or failed' }).tap()
  await page.getByText('rate_limit_rpm').first().tap()
  await page.getByRole('dialog').waitFor()
  await page.waitForTimeout(300)
  await fits('a refusal')
  const box = await page.getByRole('dialog').boundingBox()
  assert.deepEqual([Math.round(box.x), Math.round(box.width)], [0, 360], 'it takes all of the screen')
  await page.getByRole('button', { name: 'Close' }).tap()
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  assert.deepEqual(troubles, [])
})

for (const scheme of ['light', 'dark']) {
  test(`${scheme}: every text stands out from its ground, as WCAG AA has it`, async () => {
    const { page } = await tab({ scheme, height: 1600 })
    await ask('a-wrong-key')
    const faint = []
    const look = async what => faint.push(...(await contrasts(page)).map(one => `${what}: ${one}`))
    for (const path of ['/', '/spend', '/limits', '/providers']) {
      await open(page, running.page, path)
      await page.waitForTimeout(900)
      await look(path)
    }
    await open(page, running.page)
    await page.getByRole('button', { name: 'Refused or failed' }).click()
    for (const code of ['rate_limit_rpm', 'invalid_api_key']) {
      await page.locator('#search').fill(code)
      await page
        .getByText(`429 ${code}`)
        .or(page.getByText(`401 ${code}`))
        .first()
        .click()
      await page.getByRole('dialog').waitFor()
      await page.waitForTimeout(300)
      await look(code)
      await page.keyboard.press('Escape')
    }
    await page.goto(`${running.page}/`)
    await page.evaluate(() => sessionStorage.clear())
    await page.reload()
    await page.locator('#gate').waitFor()
    await look('gate')
    assert.deepEqual(faint, [])
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    assert.equal(ground, scheme === 'light' ? 'rgb(250, 249, 247)' : 'rgb(20, 20, 19)')
  })
}

test('the colours can be chosen, and stay', async () => {
  const { page } = await tab({ scheme: 'light' })
  await open(page, running.page)
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  await page.keyboard.press('t')
  await page.keyboard.press('t')
  assert.equal(await ground(), 'rgb(20, 20, 19)')
  await page.reload()
  assert.equal(await ground(), 'rgb(20, 20, 19)')
})

test('spend: the range and what is looked at are in the address', async () => {
  const { page, troubles } = await tab()
  await open(page, running.page, '/spend?range=30d')
  await page.locator('#by-key a').first().waitFor()
  assert.equal(await page.locator('#by-day li').count(), 30)
  await page.locator('#by-key a', { hasText: 'checkout' }).click()
  await page.getByText('key checkout').waitFor()
  assert.match(page.url(), /range=30d&key=checkout/)
  await page.waitForFunction(() => document.querySelectorAll('#by-key li').length === 1)
  await page.goBack()
  await page.waitForFunction(() => document.querySelectorAll('#by-key li').length > 1)
  await page.goto(`${running.page}/spend?from=2026-03-02&to=2026-03-01`)
  await page.getByText('This range can not be shown: the first day is after the last.').waitFor()
  await page.getByRole('link', { name: 'Today' }).click()
  await page.locator('#by-key a').first().waitFor()
  assert.deepEqual(
    troubles.filter(text => !text.includes('400')),
    [],
  )
})

test('what is not there is said: no request kept, nothing found', async () => {
  const { page } = await tab()
  await open(page, running.page, '/?request=req_01ARZ3NDEKTSV4RRFFQ69G5FAV')
  await page.getByRole('dialog', { name: 'This request is no longer kept' }).waitFor()
  await page.keyboard.press('Escape')
  await page.locator('#search').fill('nobody-has-this')
  await page.getByText('Nothing here has “nobody-has-this”').waitFor()
})

test('a restart of the gateway is lived through: it says so, comes back by itself, and begins anew', async () => {
  const { page } = await tab()
  await open(page, running.page)
  await rows(page).first().waitFor()
  await running.kill()
  await page.getByText('No answer, trying again').waitFor()
  assert.ok((await rows(page).count()) > 0, 'what was there is still to be read')
  const again = await running.again()
  await page.waitForFunction(() => document.getElementById('state-text').textContent === 'Live')
  await page.waitForFunction(() => document.querySelectorAll('#rows li:not([hidden])').length === 0)
  await page.getByText('No request yet').waitFor()
  const sent = await fetch(`${again.url}/v1/models`, { headers: { authorization: 'Bearer mgk_of_demo_12345' } })
  await page.locator(`#rows a[href="/?request=${sent.headers.get('x-request-id')}"]`).waitFor()
  await again.stop()
})
