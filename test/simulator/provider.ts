import type { Model } from '../../src/config/config.js'
import type { JsonObject } from '../../src/json.js'
import { familyOf, textTokens } from '../../src/metering/estimate.js'
import { compatible } from '../../src/upstream/compatible.js'
import type { Delivery, Provider, Receiver, TransportRequest } from '../../src/upstream/providers/provider.js'
import { Random } from './random.js'
import { type Reported, reported } from './usage.js'

const WORDS = ['water ', 'ice ', 'the sky, ', 'every 7th day ', 'آب ', 'یخ ', '{"a":1} ', '\n\n', 'Zug', '🙂 ']

type Step = (receiver: Receiver) => void

/** One request to one target, as the far end sees it. It goes on by the steps of its script, when it is told to. */
export class FarRequest implements Delivery {
  readonly trace: string
  readonly model: Model
  readonly usage: Reported
  /** How its script ends: `whole`, or in words what goes wrong. */
  readonly fate: string
  sent = false
  paused = false
  over = false
  /** All that was said in whole events, in the order in which it was. */
  said = ''
  /** A usage has gone out. */
  told = false
  readonly #steps: Step[] = []
  readonly #receiver: Receiver

  constructor({ headers, call }: TransportRequest, receiver: Receiver, random: Random) {
    this.trace = headers.traceparent?.split('-')[1] ?? ''
    this.model = call.model
    this.#receiver = receiver
    this.usage = reported(random)
    this.fate = random.weighted({
      whole: 22,
      'not reached': 3,
      'dies unseen': 1,
      'breaks at once': 1,
      'an error status': 4,
      'no JSON': 1,
      'an error inside': 1,
      'cut off': 4,
      'ends too early': 2,
      silent: 1,
    })
    const stream = call.stream && !random.once(12)
    this.#write(random, stream, typeof call.body.n === 'number' ? call.body.n : 1)
  }

  /** Tokens of what was said, as a count of the answer comes to. */
  get counted(): number {
    return this.said === '' ? 0 : textTokens(this.said, familyOf(this.model))
  }

  /** Can it go on? */
  get ready(): boolean {
    return !this.over && !this.paused && this.#steps.length > 0
  }

  /** The next step of its script. */
  go(): void {
    const step = this.#steps.shift()
    if (step === undefined || this.over) return
    this.sent = this.fate !== 'not reached'
    step(this.#receiver)
    if (this.#steps.length === 0 && this.fate !== 'silent') this.over = true
  }

  /** Whatever its script says: it breaks now. */
  break(): void {
    if (this.over) return
    this.over = true
    this.#receiver.failed({ kind: 'broken', sent: this.sent, message: 'the far end is gone' })
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    this.paused = false
  }

  abort(): void {
    this.over = true
  }

  #write(random: Random, stream: boolean, choices: number): void {
    const add = (step: (receiver: Receiver) => void, text = '') =>
      this.#steps.push(receiver => {
        this.said += text
        step(receiver)
      })
    const head = (status: number, type: string) => add(receiver => receiver.head(status, { 'content-type': type, 'x-request-id': 'far-1' }))
    const fail = (kind: 'refused' | 'stale' | 'broken') =>
      add(receiver => receiver.failed({ kind, sent: kind !== 'refused', message: `the connection is ${kind}` }))
    switch (this.fate) {
      case 'not reached':
        return void fail('refused')
      case 'dies unseen':
        return void fail('stale')
      case 'breaks at once':
        return void fail('broken')
      case 'silent':
        return void add(() => {})
      case 'an error status': {
        head(random.pick([400, 401, 404, 413, 429, 500, 503, 529]), 'application/json')
        add(receiver => receiver.data(Buffer.from('{"error":{"message":"not today"}}')))
        return void add(receiver => receiver.end())
      }
    }
    if (stream) this.#stream(random, choices, add, head, fail)
    else this.#whole(random, choices, add, head, fail)
  }

  #whole(random: Random, choices: number, add: Add, head: Head, fail: Fail): void {
    head(200, 'application/json')
    const texts = Array.from({ length: choices }, () => speech(random))
    const answer = JSON.stringify({
      id: 'chatcmpl-far',
      object: 'chat.completion',
      created: 1,
      model: this.model.upstream,
      choices: texts.map((content, index) => ({ index, message: { role: 'assistant', content }, finish_reason: 'stop' })),
    })
    const { json } = this.usage
    const text = json === null ? answer : `${answer.slice(0, -1)},"usage":${json}}`
    const bytes = Buffer.from(this.fate === 'no JSON' ? '<html>' : this.fate === 'an error inside' ? '{"error":{"message":"oh"}}' : text)
    const cut = random.from(0, bytes.length)
    add(receiver => receiver.data(bytes.subarray(0, cut)))
    if (this.fate === 'cut off') return void fail('broken')
    if (this.fate === 'ends too early' && cut < bytes.length) return void add(receiver => receiver.end())
    add(receiver => receiver.data(bytes.subarray(cut)))
    const whole = this.fate === 'whole' || this.fate === 'ends too early'
    add(
      receiver => {
        if (whole) this.told = json !== null
        receiver.end()
      },
      whole ? texts.join('') : '',
    )
  }

  #stream(random: Random, choices: number, add: Add, head: Head, fail: Fail): void {
    head(200, 'text/event-stream')
    const base = { id: 'chatcmpl-far', object: 'chat.completion.chunk', created: 1, model: this.model.upstream }
    const events: { readonly data: string; readonly text: string; readonly usage?: boolean }[] = []
    const say = (index: number, delta: JsonObject, finish: string | null) => {
      const content = delta.content
      events.push({
        data: JSON.stringify({ ...base, choices: [{ index, delta, finish_reason: finish }] }),
        text: typeof content === 'string' ? content : '',
      })
    }
    for (let index = 0; index < choices; index++) say(index, { role: 'assistant', content: '' }, null)
    for (let left = random.from(1, 6); left > 0; left--) {
      for (let index = 0; index < choices; index++) say(index, { content: speech(random) }, null)
    }
    for (let index = 0; index < choices; index++) say(index, {}, 'stop')
    const { json } = this.usage
    if (json !== null)
      events.push({ data: `${JSON.stringify({ ...base, choices: [] }).slice(0, -1)},"usage":${json}}`, text: '', usage: true })
    const until = this.fate === 'whole' ? events.length : random.from(0, events.length - 1)
    for (const { data, text, usage } of events.slice(0, until)) {
      const bytes = Buffer.from(`data: ${data}\n\n`)
      const cut = random.once(3) ? random.from(1, bytes.length - 1) : 0
      if (cut > 0) add(receiver => receiver.data(bytes.subarray(0, cut)))
      add(receiver => {
        this.told ||= usage === true
        receiver.data(bytes.subarray(cut))
      }, text)
    }
    if (this.fate === 'no JSON') add(receiver => receiver.data(Buffer.from('data: <html>\n\n')))
    else if (this.fate === 'an error inside') add(receiver => receiver.data(Buffer.from('data: {"error":{"message":"oh"}}\n\n')))
    else if (this.fate === 'cut off') fail('broken')
    else if (this.fate === 'ends too early') add(receiver => receiver.end())
    else
      add(receiver => {
        receiver.data(Buffer.from('data: [DONE]\n\n'))
        receiver.end()
      })
  }
}

type Add = (step: (receiver: Receiver) => void, text?: string) => void
type Head = (status: number, type: string) => void
type Fail = (kind: 'refused' | 'stale' | 'broken') => void

function speech(random: Random): string {
  return Array.from({ length: random.from(1, 6) }, () => random.pick(WORDS)).join('')
}

/** The far end of one process: all requests that have come to it. What it answers to a request depends on the seed and the request alone. */
export class FarEnd {
  readonly seen: FarRequest[] = []
  readonly #seed: number
  readonly #closed: () => boolean

  /** `closed`: the process that asks is no more, and nothing of it counts. */
  constructor(seed: number, closed: () => boolean) {
    this.#seed = seed
    this.#closed = closed
  }

  /** The kind `simulated`: OpenAI's wire, over no network. */
  kind(): Provider {
    const { wires, authorize } = compatible('simulated')
    return {
      kind: 'simulated',
      wires,
      authorize,
      transport: () => ({
        send: (request, receiver) => {
          const tries = this.seen.length
          const one = new FarRequest(
            request,
            receiver,
            new Random(hash(`${this.#seed} ${request.headers.traceparent} ${request.call.model.id}`)),
          )
          if (!this.#closed()) this.seen[tries] = one
          return one
        },
        close: async () => {},
      }),
    }
  }

  /** Those that can go on. */
  ready(): FarRequest[] {
    return this.seen.filter(one => one.ready)
  }
}

function hash(text: string): number {
  let value = 0
  for (let i = 0; i < text.length; i++) value = (Math.imul(value, 31) + text.charCodeAt(i)) | 0
  return value
}
