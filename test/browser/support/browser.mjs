import { after } from 'node:test'
import { chromium } from 'playwright-core'
import { TOKEN } from './gateway.mjs'

const PATH = process.env.CHROMIUM ?? '/usr/bin/chromium'
const ARGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

let browser

/** One tab of a browser that knows nothing yet, on a page that keeps a list of its own troubles: `troubles`. Closed with the file. */
export async function tab({ width = 1280, height = 860, scheme = 'light', scale = 1, touch = false } = {}) {
  browser ??= chromium.launch({ executablePath: PATH, args: ARGS })
  const context = await (await browser).newContext({
    viewport: { width, height },
    colorScheme: scheme,
    deviceScaleFactor: scale,
    hasTouch: touch,
    locale: 'en-GB',
  })
  const page = await context.newPage()
  const troubles = []
  const asked = []
  page.on('pageerror', error => troubles.push(`${error}`))
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') troubles.push(message.text())
  })
  page.on('request', request => asked.push(request.url()))
  return { page, context, troubles, asked }
}

after(async () => (await browser)?.close())

/** Opens a view by the link that a start shows, and waits until there is something to see. */
export async function open(page, address, path = '/') {
  await page.goto(`${address}${path}#token=${TOKEN}`)
  await page.waitForFunction(() => document.getElementById('state-text').textContent === 'Live')
}
