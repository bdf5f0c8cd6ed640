/*
 * The page: it asks the gateway what there is, and shows it. Nothing is asked of any other place, and nothing is ever sent but questions.
 * Text reaches the document as text only: there is no HTML made of strings.
 */

const $ = id => document.getElementById(id)

/** A view is asked anew this often while it is looked at. Milliseconds. */
const EVERY = { requests: 300, spend: 15_000, limits: 2000, providers: 1500 }
const ROWS_SHOWN = 40
const ROWS_KEPT = 300
const WINDOW_S = 120

const state = {
  token: '',
  view: 'requests',
  /** Which start of the gateway the rows are of. */
  run: '',
  seq: 0,
  about: null,
  zone: 'UTC',
  rows: [],
  refused: [],
  live: null,
  which: 'all',
  search: '',
  paused: false,
  /** Rows as they were when the pointer or the focus came to them: nothing moves away from under a finger. */
  frozen: null,
  looking: false,
  fresh: 0,
  open: null,
  away: false,
  clockAhead: 0,
}

// ——— Elements ———

function h(tag, props = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else if (name === 'class') element.className = value
    else if (name === 'width') element.style.width = value
    else if (name === 'left') element.style.left = value
    else if (name === 'tone') element.dataset.tone = value
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined))
  return element
}

function s(tag, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
  return element
}

/** Text in place: the node stays if nothing has changed, and is another one if it has. */
function tell(element, text) {
  if (element.dataset.text === text) return
  element.dataset.text = text
  element.textContent = text
}

function attribute(element, name, value) {
  if (value === null) element.removeAttribute(name)
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}

// ——— Figures in words ———

/** Digits in groups of three; amounts come as text, since they may be larger than a number can be. */
function grouped(amount) {
  if (amount === null || amount === undefined) return '–'
  return String(amount).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

function milliseconds(ms) {
  if (ms === null || ms === undefined) return '–'
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  return ms < 60_000 ? `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s` : age(ms)
}

/** How long, in the two largest units. */
function age(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`
}

/** A pace: with one digit behind the point where it is slow. */
function pace(value) {
  return value >= 100 || value === 0 ? grouped(Math.round(value)) : value.toFixed(1)
}

function counted(count, one, many = `${one}s`) {
  return `${grouped(count)} ${count === 1 || count === '1' ? one : many}`
}

const formats = new Map()

function inZone(options) {
  const id = JSON.stringify([state.zone, options])
  let format = formats.get(id)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-GB', {
      timeZone: state.zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      ...options,
    })
    formats.set(id, format)
  }
  return format
}

const time = at => inZone({ hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(at)
const moment = at => `${inZone({ day: 'numeric', month: 'short' }).format(at)}, ${time(at)}`
const isoDay = at => {
  const part = Object.fromEntries(
    inZone({ year: 'numeric', month: '2-digit', day: '2-digit' })
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  )
  return `${part.year}-${part.month}-${part.day}`
}
const dayName = day =>
  new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', weekday: 'short', day: 'numeric', month: 'short' }).format(new Date(day))

/** The gateway's clock, not that of the machine that looks. */
const now = () => Date.now() + state.clockAhead

const METERS = { requests: 'requests', tokens: 'tokens', rial: 'Rial', in_flight: 'at one time' }
const WINDOWS = { minute: 'this minute', hour: 'this hour', day: 'today', month: 'this month', all: 'in all' }
const GAUGES = {
  requests_per_minute: 'Requests a minute',
  requests_per_hour: 'Requests an hour',
  requests_per_day: 'Requests a day',
  tokens_per_minute: 'Tokens a minute',
  daily_tokens: 'Tokens a day',
  daily_rial: 'Rial a day',
  monthly_rial: 'Rial a month',
}
const STAGES = {
  reading: 'reading the body',
  deciding: 'deciding',
  held: 'held',
  waiting: 'waiting for the provider',
  answering: 'answering',
}

/** Which colour the end of a request has: none where it went well. */
function tone({ code, state: ended, status }) {
  if (code === null) return null
  if (code === 'client_closed') return null
  return ended === 'refused' && status < 500 ? 'no' : 'warn'
}

// ——— Asking ———

class Refused extends Error {}

/** Answers, or `null` for what is not there. Throws a Refused for a wrong token, and an Error with the gateway's words. */
async function ask(path) {
  const response = await fetch(path, {
    headers: { authorization: `Bearer ${state.token}` },
    cache: 'no-store',
    signal: AbortSignal.timeout(20_000),
  })
  if (response.status === 401) throw new Refused()
  if (response.status === 404) return null
  // A fault of the gateway comes without JSON: like no answer at all.
  if (response.status >= 500) throw new Error('the gateway met a fault')
  const answer = await response.json()
  if (!response.ok) throw Object.assign(new Error(answer.error), { said: true })
  return answer
}

let timer = 0
let asking = 0
let failures = 0

/** Asks for what the view shows, and then again and again; at once when called. An answer that comes after another question is let go. */
async function look() {
  clearTimeout(timer)
  if (state.token === '' || document.hidden) return
  const mine = ++asking
  const { view } = state
  try {
    await VIEWS[view].ask(() => mine === asking)
    if (mine !== asking) return
    arrived()
  } catch (error) {
    if (mine !== asking) return
    if (error instanceof Refused)
      return gate(state.run !== '' || failures > 0 ? 'The token is no longer the right one.' : 'This is not the token.')
    if (error.said) arrived()
    else gone()
    VIEWS[view].failed?.(error)
  }
  timer = setTimeout(look, failures === 0 ? EVERY[view] : Math.min(3000, 400 * failures))
}

function arrived() {
  failures = 0
  if (state.away) {
    state.away = false
    document.body.classList.remove('away')
  }
  showState()
}

function gone() {
  failures++
  if (failures < 2) return
  state.away = true
  document.body.classList.add('away')
  showState()
}

function showState() {
  const { away, live, paused } = state
  const [name, text] = away
    ? ['away', 'No answer, trying again']
    : live?.draining
      ? ['away', 'The gateway is stopping']
      : paused
        ? ['paused', 'Paused']
        : ['live', 'Live']
  attribute($('state'), 'data-state', name)
  tell($('state-text'), text)
}

/** Another start of the gateway has other rows, and counts anew. */
async function meet(run) {
  if (state.run === run) return
  state.run = run
  state.seq = 0
  state.rows = []
  state.refused = []
  state.frozen = null
  const about = await ask('/api/about')
  state.about = about
  state.zone = about.timezone
  state.clockAhead = about.now - Date.now()
  formats.clear()
  tell($('version'), about.version)
  $('version').title = `since ${moment(about.since)}; policies ${about.policies.join(', ')}; times of ${about.timezone}`
}

// ——— Requests ———

const figureCells = [
  ['rate', 'Requests / s'],
  ['tokens', 'Tokens / s'],
  ['no', 'Refused'],
  ['spend', 'Rial, last minute'],
  ['held', 'Rial held now'],
].map(([name, label]) => {
  const value = h('dd')
  const under = h('dd', { class: 'under' })
  const cell = h('div', { id: `figure-${name}` }, h('dt', {}, label), value, under)
  $('figures').append(cell)
  return { name, cell, value, under }
})

const bars = Array.from({ length: WINDOW_S }, (_, i) => {
  const x = i * 10 + 1
  const parts = ['ok-fill', 'warn-fill', 'no-fill'].map(name => s('rect', { class: name, x, y: 72, width: 8, height: 0 }))
  const hit = s('rect', { class: 'hit', x: i * 10, y: 0, width: 10, height: 72 })
  hit.addEventListener('pointerenter', () => {
    pointed = i
    showPulse()
  })
  $('pulse').append(...parts, hit)
  return parts
})
$('pulse').addEventListener('pointerleave', () => {
  pointed = -1
  showPulse()
})
let pointed = -1

const slots = Array.from({ length: ROWS_SHOWN }, () => {
  const cell = (name, tag = 'span') => h(tag, { class: name })
  const cells = {
    time: cell('time'),
    key: cell('key'),
    model: cell('model'),
    result: cell('result'),
    input: cell('n soft tokens'),
    output: cell('n soft tokens'),
    rial: cell('n rial'),
    took: cell('n took'),
  }
  const link = h('a', { class: 'row', href: '/' }, ...Object.values(cells))
  const item = h('li', { hidden: true }, link)
  $('rows').append(item)
  return { item, link, cells, id: '' }
})

const requests = {
  async ask(current) {
    const answer = await ask(`/api/live?after=${state.seq}`)
    if (!current()) return
    if (answer.run !== state.run) {
      await meet(answer.run)
      if (current()) return requests.ask(current)
      return
    }
    state.clockAhead = answer.now - Date.now()
    state.live = answer
    state.fresh += state.frozen === null ? 0 : answer.seq - state.seq
    state.seq = answer.seq
    state.rows = [...answer.rows.reverse(), ...state.rows].slice(0, ROWS_KEPT)
    state.refused = [...answer.refused.reverse(), ...state.refused].slice(0, ROWS_KEPT)
    if (!state.paused) {
      showFigures()
      showPulse()
    }
    showRows()
  },
  show() {
    if (state.live !== null) showRows()
  },
}

function sumOf(seconds, index) {
  return seconds.reduce((sum, second) => sum + second[index], 0)
}

function showFigures() {
  const { seconds, holds, running } = state.live
  // The second that is under way is not whole: the five before it are.
  const last = seconds.slice(-6, -1)
  const rial = seconds.slice(-60).reduce((sum, second) => sum + BigInt(second[4]), 0n)
  const refused = sumOf(seconds, 1)
  const failed = sumOf(seconds, 2)
  const figures = {
    rate: [pace(sumOf(last, 0) / 5), `${counted(running.count, 'request')} under way`],
    tokens: [pace(sumOf(last, 3) / 5), `${counted(sumOf(seconds, 3), 'token')} in 2 minutes`],
    spend: [grouped(rial), `${counted(sumOf(seconds, 0), 'request')} in 2 minutes`],
    held: [
      grouped(holds.rial),
      holds.open === 0 ? 'no open hold' : `${counted(holds.open, 'hold')}, the oldest ${age(now() - holds.oldest_at)}`,
    ],
    no: [grouped(refused), `in 2 minutes, ${failed === 0 ? 'none' : grouped(failed)} failed`, refused > 0 ? 'no' : null],
  }
  for (const { name, cell, value, under } of figureCells) {
    const [text, below, color = null] = figures[name]
    tell(value, text)
    tell(under, below)
    attribute(cell, 'data-tone', color)
  }
}

function showPulse() {
  if (state.live === null) return
  const { seconds } = state.live
  const most = Math.max(4, ...seconds.map(([all]) => all))
  for (const [i, [ok, warn, no]] of bars.entries()) {
    const [all, refused, failed] = seconds[i]
    const scale = 70 / most
    let y = 72
    for (const [bar, count] of [
      [ok, all - refused - failed],
      [warn, failed],
      [no, refused],
    ]) {
      const height = count * scale
      y -= height
      attribute(bar, 'y', y.toFixed(1))
      attribute(bar, 'height', height.toFixed(1))
    }
  }
  const second = seconds[pointed]
  const at = now() - (WINDOW_S - 1 - pointed) * 1000
  tell(
    $('pulse-text'),
    second === undefined
      ? `at most ${grouped(Math.max(...seconds.map(([all]) => all)))} / s`
      : `${time(at)}  ·  ${counted(second[0], 'request')}, ${grouped(second[1])} refused  ·  ${counted(second[3], 'token')}  ·  ${grouped(second[4])} Rial`,
  )
}

function rowsToShow() {
  const { which, rows, refused, live, search } = state
  const all = which === 'running' ? (live?.running.oldest ?? []) : which === 'refused' ? refused : rows
  if (search === '') return all
  const words = search.toLowerCase()
  return all.filter(({ key, model, code, id, surface }) =>
    [key, model, code ?? 'ok', id, surface].some(text => text?.toLowerCase().includes(words)),
  )
}

function showRows() {
  const still = state.paused || state.looking || state.open !== null
  if (!still) {
    state.frozen = null
    state.fresh = 0
  } else if (state.frozen === null) state.frozen = rowsToShow().slice(0, ROWS_SHOWN)
  const shown = state.frozen ?? rowsToShow().slice(0, ROWS_SHOWN)
  for (const [i, slot] of slots.entries()) {
    const row = shown[i]
    if (row === undefined) {
      if (!slot.item.hidden) slot.item.hidden = true
      continue
    }
    fill(slot, row)
    if (slot.item.hidden) slot.item.hidden = false
  }
  const rest = state.live?.seconds.at(-2)?.[0] ?? 0
  tell(
    $('still'),
    state.frozen !== null && state.fresh > 0
      ? `${grouped(state.fresh)} new since`
      : state.frozen === null && state.which === 'all' && rest > 100
        ? 'the newest of many'
        : '',
  )
  showEmpty(shown.length === 0)
}

function fill(slot, row) {
  const { cells, link } = slot
  slot.id = row.id
  attribute(link, 'href', `/?request=${row.id}`)
  attribute(link, 'aria-current', row.id === state.open ? 'true' : null)
  tell(cells.time, time(row.at + (row.ms ?? 0)))
  tell(cells.key, row.key ?? 'no key')
  tell(cells.model, row.model ?? row.surface ?? '–')
  if (row.stage !== undefined) {
    attribute(link, 'data-tone', 'busy')
    tell(cells.result, STAGES[row.stage])
    tell(cells.input, '')
    tell(cells.output, '')
    tell(cells.rial, row.held_rial === null ? '' : grouped(row.held_rial))
    tell(cells.took, age(now() - row.at))
    return
  }
  attribute(link, 'data-tone', tone(row))
  tell(
    cells.result,
    row.code === null ? (row.retries > 0 ? `${row.status}, try ${row.retries + 1}` : String(row.status)) : `${row.status} ${row.code}`,
  )
  tell(cells.input, grouped(row.input))
  tell(cells.output, grouped(row.output))
  tell(cells.rial, grouped(row.rial))
  tell(cells.took, milliseconds(row.ms))
}

function showEmpty(empty) {
  const box = $('rows-empty')
  box.hidden = !empty
  if (!empty) return
  const { which, search, rows } = state
  const [title, text] =
    search !== ''
      ? [`Nothing here has “${search}”`, 'Only the last requests are searched; usage has them all.']
      : which === 'running'
        ? ['Nothing is under way', 'Requests stand here from their arrival to their last byte.']
        : which === 'refused' && rows.length > 0
          ? ['Nothing was refused, and nothing failed', 'What is will stand here with its reason, until 512 others have come.']
          : ['No request yet', 'They appear here as they end, since this page was switched on.']
  const wanted = `${title}|${text}`
  if (box.dataset.text === wanted) return
  box.dataset.text = wanted
  box.replaceChildren(h('strong', {}, title), h('span', {}, text))
}

// ——— One request ———

let opener = null

async function openRequest(id, focus = true) {
  const fresh = state.open === null
  state.open = id
  if (fresh) opener = document.activeElement
  const drawer = $('drawer')
  const under = state.live?.running.oldest.find(row => row.id === id)
  let found
  try {
    found = await ask(`/api/requests/${encodeURIComponent(id)}`)
  } catch (error) {
    if (error instanceof Refused) return gate('The token is no longer the right one.')
    found = null
  }
  if (state.open !== id) return
  $('drawer-title').textContent = found === null ? (under === undefined ? 'This request is no longer kept' : 'Under way') : titleOf(found)
  const body = $('drawer-body')
  body.replaceChildren(...(found === null ? missing(id, under) : told(found)))
  body.scrollTop = 0
  drawer.hidden = false
  if (narrow.matches) $('main').inert = true
  showRows()
  if (focus) $('drawer-title').focus({ preventScroll: true })
}

function closeRequest() {
  if (state.open === null) return
  $('drawer').hidden = true
  $('main').inert = false
  // Before the rows go on: the one that was opened is still where it was.
  opener?.focus({ preventScroll: true })
  opener = null
  state.open = null
  showRows()
}

const narrow = matchMedia('(max-width: 860px)')

function titleOf({ state: ended, why }) {
  if (why !== null) return why.title
  return (
    { settled: 'Answered and settled', partial: 'Broken off, and charged for what came', voided: 'Given back', answered: 'Answered' }[
      ended
    ] ?? 'Refused'
  )
}

function missing(id, under) {
  if (under !== undefined)
    return [aboutLine(id, under), h('p', {}, `It is ${STAGES[under.stage]}. How it was decided stands here when it has ended.`)]
  return [
    h('p', { class: 'about' }, copyable(id)),
    h(
      'p',
      {},
      'The last 2,048 requests are kept here, and the last 512 that were refused or failed, until the gateway stops. Its usage record is in the ledger for good.',
    ),
  ]
}

function aboutLine(id, { at, key, model }) {
  return h('p', { class: 'about' }, h('span', {}, moment(at)), h('span', {}, key ?? 'no key'), h('span', {}, model ?? ''), copyable(id))
}

function copyable(text, label = text) {
  const button = h('button', { type: 'button', title: 'Copy', onclick: () => copy(button, text, label) }, label)
  return button
}

async function copy(button, text, label) {
  let done = true
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    done = false
  }
  button.textContent = done ? 'Copied' : 'Could not be copied'
  setTimeout(() => {
    button.textContent = label
  }, 1200)
}

function told(exchange) {
  const { line, why } = exchange
  return [
    h(
      'p',
      { class: 'about' },
      h(
        'span',
        { class: 'result', tone: tone({ code: line.code, state: exchange.state, status: line.status }) },
        line.code === null ? String(line.status) : `${line.status} ${line.code}`,
      ),
      h('span', {}, moment(line.time)),
      copyable(line.request_id),
    ),
    why === null ? null : whyPart(why, exchange),
    factsPart(exchange),
    trailPart(exchange),
    attemptsPart(exchange),
    timesPart(exchange),
    idsPart(line),
  ].filter(part => part !== null)
}

/** Why it was refused: the ceiling as a bar, the figures, and the line that would change it. */
function whyPart({ figures, text, resets_at, change, command }, exchange) {
  const part = h('section', { class: exchange.state === 'refused' ? 'why' : 'why warn', 'aria-label': 'Why' })
  if (figures !== null) {
    part.append(
      ceilingBar(figures.posted, figures.held, figures.asked, figures.ceiling, true),
      h(
        'dl',
        { class: 'sum' },
        ...[
          ['Ceiling', figures.ceiling],
          ['Used', figures.posted],
          ['Held', figures.held],
          ['This request', figures.asked],
        ].map(([name, amount]) =>
          h('div', { class: name === 'This request' ? 'over' : null }, h('dt', {}, name), h('dd', {}, grouped(amount))),
        ),
      ),
    )
  }
  for (const sentence of text) part.append(h('p', {}, sentence))
  if (resets_at !== null) {
    const left = resets_at - now()
    part.append(
      h(
        'p',
        { class: 'note' },
        left > 0
          ? `There is room again at ${left > 86_400_000 ? moment(resets_at) : time(resets_at)}, in ${age(left)}.`
          : `There has been room again since ${moment(resets_at)}.`,
      ),
    )
  }
  if (change !== null) {
    const yaml = change.lines.map(line => line.text).join('\n')
    part.append(
      h(
        'div',
        { class: 'change' },
        h('div', { class: 'change-top' }, h('h3', {}, 'To change it: ', h('span', { class: 'mono' }, change.at)), copyButton(yaml)),
        h(
          'pre',
          { class: 'yaml', tabindex: '0', 'aria-label': 'The line of gateway.yaml' },
          ...change.lines.map(line => h('span', { class: line.mark ? 'here' : null }, line.text)),
        ),
        change.note === null ? null : h('p', { class: 'note' }, change.note),
      ),
    )
  }
  if (command !== null) {
    part.append(
      h(
        'div',
        { class: 'change' },
        h('div', { class: 'change-top' }, h('h3', {}, 'On the command line'), copyButton(command)),
        h('pre', { class: 'command', tabindex: '0', 'aria-label': 'A command' }, h('span', {}, command)),
      ),
    )
  }
  return part
}

function copyButton(text) {
  const button = copyable(text, 'Copy')
  button.className = 'copy'
  return button
}

function factsPart({ line, state: ended, estimate, overrun_rial, reasoning_tokens }) {
  const facts = []
  const fact = (name, value, below = null) =>
    facts.push(h('div', {}, h('dt', {}, name), h('dd', {}, value, below === null ? null : h('small', {}, below))))
  if (line.cost_rial !== null) {
    const back = BigInt(line.held_rial ?? 0) - BigInt(line.cost_rial)
    const over = BigInt(overrun_rial ?? 0)
    fact(
      'Charged, Rial',
      grouped(line.cost_rial),
      over > 0n ? `${grouped(over)} above its hold` : `of ${grouped(line.held_rial)} held, ${grouped(back)} given back`,
    )
  } else if (ended === 'voided') fact('Charged, Rial', '0', `${grouped(line.held_rial)} held, all given back`)
  if (line.input_tokens !== null) {
    fact(
      'Tokens in',
      grouped(line.input_tokens),
      line.cached_tokens > 0
        ? `${grouped(line.cached_tokens)} from the cache`
        : estimate === null
          ? null
          : `held for ${grouped(estimate.input)}`,
    )
    fact(
      'Tokens out',
      grouped(line.output_tokens),
      reasoning_tokens > 0
        ? `${grouped(reasoning_tokens)} of them reasoning`
        : estimate === null
          ? null
          : `held for ${grouped(estimate.output)}`,
    )
  } else if (estimate !== null) fact('Sized at, tokens', `${grouped(estimate.input)} + ${grouped(estimate.output)}`, 'in, and out at most')
  if (line.usage_source !== null && line.usage_source !== 'none')
    fact(
      'Counted by',
      { provider: 'provider', counted: 'gateway', estimate: 'estimate' }[line.usage_source] ?? line.usage_source,
      line.ended_by === null ? null : `ended by ${line.ended_by.replace('_', ' ')}`,
    )
  fact('Took', milliseconds(line.duration_ms), line.gateway_ms === null ? null : `${milliseconds(line.gateway_ms)} of it here`)
  if (line.ttft_ms !== null) fact('First token', milliseconds(line.ttft_ms))
  return h('section', {}, h('h3', { class: 'hidden' }, 'Figures'), h('dl', { class: 'facts' }, ...facts))
}

/** What each policy asked for, and how its counter stood. */
function trailPart({ line, claims, account, state: ended }) {
  const items = []
  const item = (who, ...what) => items.push(h('li', {}, h('span', { class: 'who' }, who), h('div', { class: 'what' }, ...what)))
  item(
    'key',
    h(
      'span',
      {},
      line.key === null
        ? 'nobody in particular'
        : `${line.key}, plan ${line.plan}${account === null ? ', no wallet' : `, wallet ${account}`}`,
    ),
  )
  if (line.model !== null) item('asks', h('span', {}, `${line.surface}${line.stream ? ', as a stream' : ''}, of ${line.model}`))
  const groups = []
  for (const claim of claims) {
    const last = groups.at(-1)
    if (last !== undefined && last.policy === claim.policy) last.claims.push(claim)
    else groups.push({ policy: claim.policy, claims: [claim] })
  }
  for (const { policy, claims: own } of groups) item(policy ?? 'a policy', ...own.map(claimPart))
  if (claims.length > 0)
    item(
      'ledger',
      h(
        'span',
        { class: 'result', tone: ended === 'refused' ? 'no' : 'well' },
        ended === 'refused' ? 'no: nothing is held, and no counter has changed' : `yes: all of it held, ${grouped(line.held_rial)} Rial`,
      ),
    )
  const legend = h(
    'p',
    { class: 'legend' },
    ...[['used', 'used'], ['held', 'held by others'], ended === 'refused' ? ['over', 'this request'] : ['asked', 'this request']].map(
      ([name, text]) => h('span', {}, h('i', { class: name }), text),
    ),
  )
  return h('section', {}, h('h3', {}, 'How it was decided'), claims.length === 0 ? null : legend, h('ol', { class: 'trail' }, ...items))
}

function claimPart({ meter, subject, window, amount, posted, held, ceiling, refused, code }) {
  const [kind, name] = subject.split(':')
  const unit = METERS[meter] ?? meter
  const of = kind === 'account' ? `wallet ${name}` : `${unit} ${WINDOWS[window] ?? window}`
  const figures =
    ceiling === null
      ? `${grouped(posted)} + ${grouped(held)} + ${grouped(amount)}, no ceiling`
      : `${grouped(posted)} + ${grouped(held)} + ${grouped(amount)} of ${grouped(ceiling)}`
  return h(
    'div',
    { class: 'claim', tone: refused ? 'no' : null, title: `${code}: used + held by others + this request, of the ceiling` },
    h('span', {}, kind === 'account' ? `${of}, ${unit}` : of),
    h('span', { class: 'n' }, figures),
    ceilingBar(posted, held, amount, ceiling, refused),
  )
}

/** Used, held and asked under a ceiling, which is a mark where they go beyond it. */
function ceilingBar(posted, held, asked, ceiling, over = false) {
  if (ceiling === null) return null
  const amounts = [posted, held, asked].map(Number)
  const most = Number(ceiling)
  const all = Math.max(most, amounts[0] + amounts[1] + amounts[2], 1)
  const part = amount => `${((amount / all) * 100).toFixed(2)}%`
  const bar = h(
    'div',
    { class: 'meter' },
    h('i', { class: 'used', width: part(amounts[0]) }),
    h('i', { class: 'held', width: part(amounts[1]) }),
    h('i', { class: over ? 'over' : 'asked', width: part(amounts[2]) }),
  )
  if (all > most) bar.append(h('span', { class: 'mark', left: `calc(${part(most)} - 1px)` }))
  return bar
}

function attemptsPart({ attempts, state: ended }) {
  if (attempts.length === 0) {
    if (ended !== 'refused') return null
    return h('section', {}, h('h3', {}, 'Attempts'), h('p', { class: 'note' }, 'None: it never reached a provider.'))
  }
  return h(
    'section',
    {},
    h('h3', {}, 'Attempts'),
    h(
      'ol',
      { class: 'attempts' },
      ...attempts.map(({ target, result, ms }) =>
        h(
          'li',
          {},
          h('span', { class: 'mono' }, target),
          h('span', { class: 'result', tone: result === 'answered' ? 'well' : 'warn' }, result === 'answered' ? 'answered' : result),
          h('span', { class: 'n' }, milliseconds(ms)),
        ),
      ),
    ),
  )
}

/** Where the time went. */
function timesPart({ line, marks, state: ended }) {
  const all = line.duration_ms
  if (!(all > 0) || marks.read === null) return null
  const moments = [
    ['Reading the body', 1, 0, marks.read],
    [ended === 'refused' ? 'Deciding' : 'Deciding and holding', 2, marks.read, marks.sent ?? marks.answered ?? all],
    ['Waiting for the provider', 3, marks.sent, marks.first ?? marks.answered],
    ['The answer', 4, marks.first, marks.answered],
    ['Settling', 5, marks.answered, all],
  ].filter(([, , from, to]) => from !== null && to !== null && to >= from)
  return h(
    'section',
    {},
    h('h3', {}, 'Where the time went'),
    h(
      'div',
      { class: 'stripe' },
      ...moments.map(([, color, from, to]) => h('i', { class: `stripe-${color}`, width: `${(((to - from) / all) * 100).toFixed(2)}%` })),
    ),
    h(
      'ol',
      { class: 'times' },
      ...moments.map(([name, color, from, to]) =>
        h('li', {}, h('i', { class: `stripe-${color}` }), h('span', {}, name), h('span', { class: 'n' }, milliseconds(to - from))),
      ),
    ),
  )
}

function idsPart({ client_request_id, upstream_request_id, trace_id }) {
  const ids = [
    ["The client's id", client_request_id],
    ["The provider's id", upstream_request_id],
    ['Trace', trace_id],
  ].filter(([, id]) => id !== null)
  if (ids.length === 0) return null
  return h(
    'section',
    {},
    h('h3', {}, 'Known elsewhere as'),
    h(
      'ol',
      { class: 'attempts ids' },
      ...ids.map(([name, id]) => h('li', {}, h('span', {}, name), h('span', { class: 'about' }, copyable(id)))),
    ),
  )
}

// ——— Spend ———

const RANGES = [
  ['today', 'Today', 1],
  ['7d', '7 days', 7],
  ['30d', '30 days', 30],
  ['90d', '90 days', 90],
]

function rangeOf(query) {
  const today = isoDay(now())
  const from = query.get('from')
  if (from !== null) return { name: '', from, to: query.get('to') ?? today }
  const [name, , days] = RANGES.find(([id]) => id === query.get('range')) ?? RANGES[1]
  return { name, from: new Date(Date.parse(today) - (days - 1) * 86_400_000).toISOString().slice(0, 10), to: today }
}

function spendUrl(changes) {
  const query = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  return `/spend${text === '' ? '' : `?${text}`}`
}

const spend = {
  async ask(current) {
    if (state.about === null) await meet((await ask('/api/about')).run)
    const query = new URLSearchParams(location.search)
    const { name, from, to } = rangeOf(query)
    showRange(name, from, to, query)
    const asked = new URLSearchParams({ from, to })
    for (const field of ['key', 'model']) if (query.get(field) !== null) asked.set(field, query.get(field))
    const answer = await ask(`/api/spend?${asked}`)
    if (!current()) return
    $('spend-trouble').hidden = true
    $('spend-body').hidden = false
    showSpend(answer)
  },
  failed(error) {
    if (!error.said) return
    $('spend-trouble').hidden = false
    $('spend-body').hidden = true
    tell($('spend-trouble'), `This range can not be shown: ${error.message}.`)
  },
}

function showRange(name, from, to, query) {
  const wanted = location.search
  if ($('ranges').dataset.text === wanted) return
  $('ranges').dataset.text = wanted
  $('ranges').replaceChildren(
    ...RANGES.map(([id, label]) =>
      h('a', { href: spendUrl({ range: id, from: null, to: null }), 'data-nav': '', 'aria-current': id === name ? 'true' : null }, label),
    ),
  )
  $('range').elements.from.value = from
  $('range').elements.to.value = to
  $('chips').replaceChildren(
    ...['key', 'model']
      .filter(field => query.get(field) !== null)
      .map(field =>
        h(
          'a',
          { href: spendUrl({ [field]: null }), 'data-nav': '', 'aria-label': `Without the ${field} ${query.get(field)}` },
          `${field} ${query.get(field)}  ×`,
        ),
      ),
  )
}

function showSpend(answer) {
  const { total, days } = answer
  const average = days.length === 0 ? 0n : BigInt(total.rial) / BigInt(days.length)
  $('spend-figures').replaceChildren(
    ...[
      ['Rial', grouped(total.rial), days.length > 1 ? `${grouped(average)} a day` : dayName(answer.from)],
      ['Requests', grouped(total.requests), total.failed === 0 ? 'none failed' : `${grouped(total.failed)} failed, at no cost`],
      ['Tokens in', grouped(total.input), ''],
      ['Tokens out', grouped(total.output), ''],
      ['Rial a request', total.requests === 0 ? '–' : grouped(BigInt(total.rial) / BigInt(total.requests)), ''],
    ].map(([name, value, under]) => h('div', {}, h('dt', {}, name), h('dd', {}, value), h('dd', { class: 'under' }, under))),
  )
  showDays(days)
  showShares($('by-key'), answer.keys, answer.key_count, total, row => [
    row.name ?? 'no key',
    row.name === null ? null : spendUrl({ key: row.name }),
  ])
  showShares($('by-model'), answer.models, answer.model_count, total, row => [
    row.name ?? '–',
    row.name === null ? null : spendUrl({ model: row.name }),
  ])
  const dear = [...days].reverse()
  showShares($('by-day'), dear.slice(0, 100), dear.length, total, row => [
    dayName(row.name),
    spendUrl({ from: row.name, to: row.name, range: null }),
  ])
}

function showDays(days) {
  const width = 1200
  const height = 180
  const most = days.reduce((highest, { rial }) => Math.max(highest, Number(rial)), 1)
  const step = width / days.length
  const gap = Math.min(step * 0.25, 10)
  const svg = $('days')
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`)
  svg.setAttribute('aria-label', `Rial by day: ${days.map(({ name, rial }) => `${name} ${grouped(rial)}`).join(', ')}`.slice(0, 2000))
  const text = day =>
    day === undefined ? '' : `${dayName(day.name)}  ·  ${grouped(day.rial)} Rial  ·  ${counted(day.requests, 'request')}`
  svg.replaceChildren(
    ...days.flatMap((day, i) => {
      const wide = Math.max(1, Math.min(step - gap, 56))
      const tall = Number(day.rial) === 0 ? 1 : Math.max(2, (Number(day.rial) / most) * (height - 4))
      const hit = s('rect', { class: 'hit', x: i * step, y: 0, width: step, height })
      hit.addEventListener('pointerenter', () => tell($('days-text'), text(day)))
      return [
        s('rect', {
          class: Number(day.rial) === 0 ? 'ok-fill' : 'accent-fill',
          x: i * step + (step - wide) / 2,
          y: height - tall,
          width: wide,
          height: tall,
        }),
        hit,
      ]
    }),
  )
  svg.onpointerleave = () => tell($('days-text'), '')
  tell($('days-from'), days.length === 0 ? '' : dayName(days[0].name))
  tell($('days-to'), days.length < 2 ? '' : dayName(days.at(-1).name))
}

function showShares(list, rows, count, total, look) {
  if (rows.length === 0) {
    list.replaceChildren(h('li', { class: 'empty' }, h('span', {}, 'Nothing was used in this range')))
    return
  }
  const all = Math.max(1, Number(total.rial))
  const items = rows.map(row => {
    const [name, href] = look(row)
    const inside = [
      h('span', { class: 'name' }, name),
      h('span', { class: 'n' }, `${grouped(row.rial)} Rial`),
      h('div', { class: 'meter' }, h('i', { class: 'used', width: `${((Number(row.rial) / all) * 100).toFixed(2)}%` })),
      h('span', { class: 'more' }, `${counted(row.requests, 'request')}, ${grouped(row.input)} tokens in, ${grouped(row.output)} out`),
    ]
    return h('li', {}, href === null ? h('div', {}, ...inside) : h('a', { href, 'data-nav': '' }, ...inside))
  })
  if (count > rows.length)
    items.push(h('li', {}, h('div', {}, h('span', { class: 'more' }, `and ${grouped(count - rows.length)} more, which the sums include`))))
  const active = document.activeElement?.getAttribute('href')
  list.replaceChildren(...items)
  if (active) list.querySelector(`a[href="${CSS.escape(active)}"]`)?.focus({ preventScroll: true })
}

// ——— Limits ———

const limits = {
  async ask(current) {
    if (state.about === null) await meet((await ask('/api/about')).run)
    const search = $('limits-search').value.trim()
    const answer = await ask(`/api/limits?search=${encodeURIComponent(search)}`)
    if (!current()) return
    state.clockAhead = answer.now - Date.now()
    showWallets(answer, search)
    showKeys(answer, search)
    showHolds(answer)
  },
}

/** How full: of the part that is used and held. */
function fullness(posted, held, ceiling) {
  if (ceiling === null) return null
  const part = Number(ceiling) === 0 ? 1 : (Number(posted) + Number(held)) / Number(ceiling)
  return part >= 1 ? 'no' : part >= 0.9 ? 'warn' : null
}

function shownOf(shown, count) {
  return count > shown ? `${grouped(shown)} of ${grouped(count)}` : grouped(count)
}

/** Sorted anew when the view is opened and when the search changes, not while one looks: cards stay where they are. */
const orders = new Map()

function steady(list, items, nameOf) {
  const order = orders.get(list) ?? new Map()
  orders.set(list, order)
  for (const item of items) if (!order.has(nameOf(item))) order.set(nameOf(item), order.size)
  return [...items].sort((a, b) => order.get(nameOf(a)) - order.get(nameOf(b)))
}

/** One child for each item, kept where the shape stays the same, so that nothing jumps. */
function each(parent, items, make, update) {
  while (parent.children.length > items.length) parent.lastElementChild.remove()
  for (const [i, item] of items.entries()) {
    const shape = JSON.stringify(make.shape(item))
    let child = parent.children[i]
    if (child === undefined || child.dataset.shape !== shape) {
      const made = make(item)
      made.dataset.shape = shape
      if (child === undefined) parent.append(made)
      else child.replaceWith(made)
      child = made
    }
    update(child, item)
  }
}

function nothing(title, text = '') {
  return h('div', { class: 'empty' }, h('strong', {}, title), h('span', {}, text))
}

function showWallets({ wallets, wallet_count }, search) {
  tell($('wallet-count'), shownOf(wallets.length, wallet_count))
  if (wallets.length === 0) {
    $('wallets').replaceChildren(
      search === ''
        ? nothing('There is no wallet', 'Accounts of gateway.yaml have one each; keys without an account are counted only.')
        : nothing('No account has this name'),
    )
    return
  }
  if ($('wallets').firstElementChild?.className === 'empty') $('wallets').replaceChildren()
  const make = ({ account }) =>
    h(
      'div',
      { class: 'card' },
      h('h3', {}, account),
      h('p', { class: 'big' }, h('span'), h('small', {}, ' Rial left')),
      h('div', { class: 'meter' }, h('i', { class: 'used' }), h('i', { class: 'held' })),
      h('p', { class: 'foot' }, h('span'), h('span')),
    )
  make.shape = ({ account }) => account
  each(
    $('wallets'),
    steady('wallets', wallets, ({ account }) => account),
    make,
    (card, { credited, posted, held }) => {
      const left = BigInt(credited) - BigInt(posted) - BigInt(held)
      tell(card.querySelector('.big span'), grouped(left))
      const [spent, pending] = card.querySelectorAll('.foot span')
      tell(spent, `${grouped(posted)} spent of ${grouped(credited)}`)
      tell(pending, Number(held) > 0 ? `${grouped(held)} held` : 'nothing held')
      meterOf(card.querySelector('.meter'), posted, held, credited)
    },
  )
}

function meterOf(meter, posted, held, ceiling) {
  const most = Math.max(Number(ceiling), Number(posted) + Number(held), 1)
  meter.querySelector('.used').style.width = `${((Number(posted) / most) * 100).toFixed(2)}%`
  meter.querySelector('.held').style.width = `${((Number(held) / most) * 100).toFixed(2)}%`
  attribute(meter, 'data-tone', fullness(posted, held, ceiling))
}

function showKeys({ keys, key_count }, search) {
  tell($('key-count'), shownOf(keys.length, key_count))
  if (keys.length === 0) {
    $('keys').replaceChildren(
      search === '' ? nothing('There are no keys', 'Whoever reaches the gateway can use every model.') : nothing('No key has this name'),
    )
    return
  }
  if ($('keys').firstElementChild?.className === 'empty') $('keys').replaceChildren()
  const make = ({ key, plan, account, disabled, expires, gauges }) =>
    h(
      'div',
      { class: 'card' },
      h(
        'div',
        { class: 'card-top' },
        h('h3', {}, key),
        h(
          'span',
          { class: 'soft' },
          [
            `plan ${plan}`,
            account === null ? 'no wallet' : `wallet ${account}`,
            disabled ? 'disabled' : null,
            expires === null ? null : `until ${isoDay(expires)}`,
          ]
            .filter(Boolean)
            .join(', '),
        ),
      ),
      ...gauges.map(({ name, ceiling }) =>
        h(
          'div',
          { class: 'gauge' },
          h('span', {}, GAUGES[name] ?? name),
          h('span', { class: 'n' }, h('span'), ceiling === null ? h('span', { class: 'soft' }, ', no ceiling') : null),
          ceiling === null ? null : h('div', { class: 'meter' }, h('i', { class: 'used' }), h('i', { class: 'held' })),
        ),
      ),
    )
  make.shape = ({ key, plan, account, disabled, expires, gauges }) => [
    key,
    plan,
    account,
    disabled,
    expires,
    gauges.map(({ name, ceiling }) => [name, ceiling === null]),
  ]
  each(
    $('keys'),
    steady('keys', keys, ({ key }) => key),
    make,
    (card, { gauges }) => {
      const rows = card.querySelectorAll('.gauge')
      for (const [i, { posted, held, ceiling }] of gauges.entries()) {
        const row = rows[i]
        const pending = Number(held) > 0 ? ` + ${grouped(held)}` : ''
        tell(row.querySelector('.n span'), `${grouped(posted)}${pending}${ceiling === null ? '' : ` of ${grouped(ceiling)}`}`)
        attribute(row, 'data-tone', fullness(posted, held, ceiling))
        if (ceiling !== null) meterOf(row.querySelector('.meter'), posted, held, ceiling)
      }
    },
  )
}

function showHolds({ holds, hold_count }) {
  tell($('hold-count'), shownOf(holds.length, hold_count))
  if (holds.length === 0) {
    $('holds').replaceChildren(h('li', { class: 'empty' }, h('span', {}, 'Nothing is held')))
    return
  }
  if ($('holds').firstElementChild?.className === 'empty') $('holds').replaceChildren()
  const make = ({ id, key, model, rial }) =>
    h(
      'li',
      {},
      h('span', { class: 'mono' }, id),
      h('span', {}, key ?? 'no key'),
      h('span', {}, model),
      h('span', { class: 'n' }, `${grouped(rial)} Rial`),
      h('span', { class: 'n age' }),
    )
  make.shape = ({ id }) => id
  each($('holds'), holds, make, (row, { at }) => tell(row.querySelector('.age'), age(now() - at)))
}

// ——— Providers ———

const providers = {
  async ask(current) {
    if (state.about === null) await meet((await ask('/api/about')).run)
    const answer = await ask('/api/providers')
    if (current()) showProviders(answer)
  },
}

function showProviders({ providers: all }) {
  const make = ({ name, kind, targets }) =>
    h(
      'section',
      { class: 'provider' },
      h('h2', {}, name, h('span', { class: 'count' }, kind)),
      h(
        'div',
        { class: 'targets' },
        ...(targets.length === 0 ? [h('div', { class: 'empty' }, h('span', {}, 'No model is answered here'))] : targets.map(targetRow)),
        h('p', { class: 'rest' }),
      ),
    )
  make.shape = ({ name, kind, targets }) => [name, kind, targets.map(target => [target.name, target.models])]
  each($('provider-list'), all, make, (section, { targets, target_count }) => {
    const rows = section.querySelectorAll('.target')
    for (const [i, target] of targets.entries()) showTarget(rows[i], target)
    const rest = section.querySelector('.rest')
    rest.hidden = target_count <= targets.length
    tell(rest, `${grouped(target_count)} in all`)
  })
}

function targetRow({ name, models }) {
  const figure = (id, label) => h('dl', {}, h('dt', {}, label), h('dd', { 'data-figure': id }))
  const others = models.filter(model => model !== name)
  const row = h(
    'div',
    { class: 'target' },
    h(
      'div',
      { class: 'name' },
      name,
      others.length === 0 ? null : h('small', {}, `for ${others.join(', ')}`),
      h('small', { class: 'since' }),
    ),
    h('span', { class: 'result' }),
  )
  const svg = s('svg', { viewBox: '0 0 240 30', preserveAspectRatio: 'none', role: 'img' })
  row.append(svg, figure('median', 'Median'), figure('p95', '95 %'), figure('first', 'First token'), figure('pace', 'Tokens/s'))
  return row
}

function showTarget(row, target) {
  const { up, failures, limited, wait_ms, tries, failed, since, median_ms, p95_ms, first_ms, pace: rate, trace } = target
  const result = row.querySelector('.result')
  const text = up
    ? tries === 0
      ? 'not asked yet'
      : failed === 0
        ? 'answers'
        : `answers, ${grouped(failed)} of ${grouped(tries)} failed`
    : wait_ms > 0
      ? `${limited ? 'at its rate limit' : `left alone after ${counted(failures, 'failure')}`}, for ${age(wait_ms)}`
      : 'the next request tries it again'
  tell(result, text)
  tell(
    row.querySelector('.since'),
    tries === 0 ? '' : `${counted(tries, 'try', 'tries')} since ${now() - since > 43_200_000 ? moment(since) : time(since)}`,
  )
  attribute(result, 'data-tone', up ? (tries === 0 ? null : failed > 0 ? 'warn' : 'well') : 'no')
  const figures = {
    median: milliseconds(median_ms),
    p95: milliseconds(p95_ms),
    first: milliseconds(first_ms),
    pace: rate === null ? '–' : pace(rate),
  }
  for (const [name, value] of Object.entries(figures)) tell(row.querySelector(`[data-figure="${name}"]`), value)
  const svg = row.querySelector('svg')
  const wanted = trace.join()
  if (svg.dataset.text === wanted) return
  svg.dataset.text = wanted
  svg.setAttribute('aria-label', `The last ${trace.length} tries`)
  const most = Math.max(1, ...trace.map(Math.abs))
  svg.replaceChildren(
    ...trace.map((ms, i) => {
      const tall = Math.max(2, (Math.abs(ms) / most) * 28)
      return s('rect', {
        class: ms < 0 ? 'no-fill' : 'ok-fill',
        x: (60 - trace.length + i) * 4 + 0.5,
        y: 30 - tall,
        width: 3,
        height: tall,
      })
    }),
  )
}

const VIEWS = { requests, spend, limits, providers }

// ——— Where one is ———

function show() {
  const { pathname, search } = location
  const view = { '/spend': 'spend', '/limits': 'limits', '/providers': 'providers' }[pathname] ?? 'requests'
  if (view !== state.view) orders.clear()
  state.view = view
  for (const section of document.querySelectorAll('.view')) section.hidden = section.id !== view
  for (const link of document.querySelectorAll('nav a')) attribute(link, 'aria-current', link.dataset.view === view ? 'page' : null)
  document.title = view === 'requests' ? 'model-gateway' : `${$(view).dataset.title} · model-gateway`
  const request = view === 'requests' ? new URLSearchParams(search).get('request') : null
  if (request === null) closeRequest()
  else if (request !== state.open && state.token !== '') void openRequest(request)
  void look()
}

function go(url) {
  history.pushState(null, '', url)
  show()
}

document.addEventListener('click', event => {
  const link = event.target.closest?.('a[data-nav], a.row')
  if (link === null || link === undefined || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return
  event.preventDefault()
  const { view } = state
  go(link.getAttribute('href'))
  if (view !== state.view) scrollTo(0, 0)
})
addEventListener('popstate', show)
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void look()
})
addEventListener('online', () => void look())

// Nothing moves away from under the pointer or the focus.
function looking(is) {
  if (state.looking === is) return
  state.looking = is
  showRows()
}
let resting = 0
$('rows').addEventListener('pointermove', event => {
  if (event.pointerType === 'mouse') {
    clearTimeout(resting)
    looking(true)
    // A pointer that was left lying there does not stop the page for ever.
    resting = setTimeout(() => looking(hasFocus()), 10_000)
  }
})
$('rows').addEventListener('pointerleave', () => {
  clearTimeout(resting)
  looking(hasFocus())
})
$('rows').addEventListener('pointerdown', () => looking(true))
$('rows').addEventListener('focusin', () => looking(hasFocus()))
$('rows').addEventListener('focusout', event => {
  if (!$('rows').contains(event.relatedTarget)) looking(false)
})
// A focus that a click has left behind holds nothing.
const hasFocus = () => $('rows').querySelector(':focus-visible') !== null

for (const button of document.querySelectorAll('[data-which]')) button.addEventListener('click', () => choose(button.dataset.which))

function choose(which) {
  state.which = which
  state.frozen = null
  for (const button of document.querySelectorAll('[data-which]')) attribute(button, 'aria-pressed', String(button.dataset.which === which))
  showRows()
}

function pause() {
  state.paused = !state.paused
  attribute($('pause'), 'aria-pressed', String(state.paused))
  tell($('pause'), state.paused ? 'Go on' : 'Pause')
  showState()
  showRows()
}
$('pause').addEventListener('click', pause)
$('search').addEventListener('input', () => {
  state.search = $('search').value.trim()
  state.frozen = null
  showRows()
})
$('limits-search').addEventListener('input', () => {
  orders.clear()
  void look()
})
$('drawer-close').addEventListener('click', () => go('/'))
$('range').addEventListener('submit', event => {
  event.preventDefault()
  const { from, to } = event.target.elements
  go(spendUrl({ from: from.value, to: to.value, range: null }))
})

// ——— The keyboard ———

const KEYS = {
  1: () => go('/'),
  2: () => go('/spend'),
  3: () => go('/limits'),
  4: () => go('/providers'),
  r: () => choose(state.which === 'refused' ? 'all' : 'refused'),
  p: pause,
  t: turnColours,
  '?': () => $('help').showModal(),
  '/': () => (state.view === 'limits' ? $('limits-search') : $('search')).focus(),
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
}

/** From row to row; with a request open, from request to request. */
function step(by) {
  if (state.view !== 'requests') return false
  const shown = slots.filter(({ item }) => !item.hidden)
  const focused = shown.findIndex(({ link }) => link === document.activeElement)
  const open = shown.findIndex(({ id }) => id === state.open)
  const from = focused >= 0 ? focused : open
  const slot = shown[from < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, from + by))]
  if (slot === undefined) return false
  slot.link.focus()
  if (state.open !== null && slot.id !== state.open) {
    history.replaceState(null, '', `/?request=${slot.id}`)
    void openRequest(slot.id, false)
  }
}

document.addEventListener('keydown', event => {
  if (event.metaKey || event.ctrlKey || event.altKey || $('gate').open || $('help').open) return
  const typing = event.target.matches('input')
  if (event.key === 'Escape') {
    if (state.open !== null) go('/')
    else if (typing) {
      event.target.value = ''
      event.target.dispatchEvent(new Event('input'))
      event.target.blur()
    } else if (hasFocus()) document.activeElement.blur()
    return
  }
  if (typing) return
  const act = Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : undefined
  if (act === undefined || (event.key.startsWith('Arrow') && $('drawer').contains(document.activeElement))) return
  if (act() !== false) event.preventDefault()
})

// ——— Colours ———

const COLOURS = { '': 'as the system has them', light: 'light', dark: 'dark' }

function colours(name) {
  attribute(document.documentElement, 'data-theme', name === '' ? null : name)
  const text = `Colours: ${COLOURS[name]}`
  $('theme').setAttribute('aria-label', text)
  $('theme').title = `${text} (t)`
}

function turnColours() {
  const names = Object.keys(COLOURS)
  const next = names[(names.indexOf(kept('local', 'theme')) + 1) % names.length]
  keep('local', 'theme', next)
  colours(next)
}
$('theme').addEventListener('click', turnColours)
$('help-open').addEventListener('click', () => $('help').showModal())

/** A browser may forbid to keep anything: then nothing is kept. */
function kept(where, name) {
  try {
    return (where === 'local' ? localStorage : sessionStorage).getItem(`model-gateway.${name}`) ?? ''
  } catch {
    return ''
  }
}

function keep(where, name, value) {
  try {
    ;(where === 'local' ? localStorage : sessionStorage).setItem(`model-gateway.${name}`, value)
  } catch {}
}

// ——— The token ———

function gate(wrong = '') {
  clearTimeout(timer)
  asking++
  state.token = ''
  keep('session', 'token', '')
  tell($('gate-wrong'), wrong)
  attribute($('state'), 'data-state', 'away')
  tell($('state-text'), 'Closed')
  if (!$('gate').open) $('gate').showModal()
}
$('gate').addEventListener('cancel', event => event.preventDefault())
$('gate-form').addEventListener('submit', async event => {
  event.preventDefault()
  const token = $('gate-token').value.trim()
  if (token === '') return
  state.token = token
  try {
    await ask('/api/about')
  } catch (error) {
    state.token = ''
    tell($('gate-wrong'), error instanceof Refused ? 'This is not the token.' : 'The gateway does not answer.')
    $('gate-token').select()
    return
  }
  keep('session', 'token', token)
  $('gate-token').value = ''
  $('gate').close()
  failures = 0
  state.run = ''
  show()
})

// The link that the gateway shows has the token behind the #, which browsers send to nobody; it does not stay in the address.
const given = /^#token=(.+)$/.exec(location.hash)?.[1]
if (given !== undefined) {
  keep('session', 'token', decodeURIComponent(given))
  history.replaceState(null, '', location.pathname + location.search)
}
state.token = given === undefined ? kept('session', 'token') : decodeURIComponent(given)
colours(kept('local', 'theme'))
if (state.token === '') {
  show()
  gate()
} else show()
