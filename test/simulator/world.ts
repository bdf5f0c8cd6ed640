import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../src/config/config.js'
import chatCompletions from '../../src/endpoints/chat-completions.js'
import { Exchange } from '../../src/exchange.js'
import type { JsonObject } from '../../src/json.js'
import type { Credit } from '../../src/ledger/ledger.js'
import { run } from '../../src/lifecycle.js'
import { Books, type Fate, must } from './books.js'
import { Client } from './client.js'
import { SteeredClock, ZONES } from './clock.js'
import { DISK_FAULTS, FILES } from './faults.js'
import { checkEnd, checkHold, checkLedger, checkVisit, type Visit } from './invariants.js'
import { Life } from './life.js'
import { FarEnd } from './provider.js'
import { Random } from './random.js'
import { baseConfig, changed, MODELS, SECRETS } from './settings.js'

/** What a history came to. */
export interface History {
  readonly seed: number
  operations: number
  requests: number
  admitted: number
  /** Received in full, and billed to the Rial. */
  reconciled: number
  /** What was billed for what was received in full, less what it costs. */
  differenceRial: bigint
  recovered: number
  /** Records that gave way to their sums by day. */
  pruned: number
  /** By kind. */
  readonly faults: Record<string, number>
  /** What was done, in words; the last operations of a history that failed are its explanation. */
  readonly log: string[]
}

const ACCOUNTS = ['acme', 'beta'] as const
const DAY = 86_400_000
/** Operations between two looks at the whole ledger. */
const BETWEEN_LOOKS = 60

/** One history of the gateway's core: a process after the other on one ledger, clients, a far end, a clock and a disk, all steered by one seed. */
export class World {
  readonly history: History
  readonly #random: Random
  readonly #clock: SteeredClock
  readonly #books = new Books()
  readonly #folder: string
  readonly #base: Config
  readonly #visits = new Map<string, Visit>()
  readonly #live = new Set<Visit>()
  /** Those whose answer has come in full. */
  readonly #received: Visit[] = []
  #config: Config
  #life!: Life
  #lives = 0
  #credits = 0
  /** Ended records that were admitted before this may have been pruned. */
  #prunedBefore = 0

  /** `folder`: an empty one, for the ledger's files. */
  constructor(seed: number, folder: string) {
    this.history = {
      seed,
      operations: 0,
      requests: 0,
      admitted: 0,
      reconciled: 0,
      differenceRial: 0n,
      recovered: 0,
      pruned: 0,
      faults: {},
      log: [],
    }
    this.#random = new Random(seed)
    this.#folder = folder
    const zone = this.#random.pick(ZONES)
    this.#clock = new SteeredClock(this.#random, zone)
    this.#base = baseConfig(zone, new Map([['simulated', new FarEnd(seed, () => true).kind()]]))
    this.#config = changed(this.#base, this.#random)
    this.#note(`the zone is ${zone.timezone}`)
  }

  /** Lives through `operations` of them, and comes to rest. Rejects with a Violation where the gateway breaks its word. */
  async live(operations: number): Promise<History> {
    await this.#begin(false)
    for (let i = 1; i <= operations; i++) {
      this.history.operations++
      await this.#operation()
      for (let turns = this.#random.from(0, 3); turns > 0; turns--) await this.#turn()
      await this.#afterwards()
      // While a fault is due, what is read may be what it hits.
      if (i % BETWEEN_LOOKS === 0 && !this.#life.broken && this.#life.disk.armed === null) await this.#look()
    }
    await this.#rest()
    await this.#life.file.close()
    return this.history
  }

  async #operation(): Promise<void> {
    const { farEnd, disk } = this.#life
    const what = this.#random.weighted({
      arrive: 22,
      send: 14,
      answer: 50,
      read: 6,
      leave: 4,
      time: 14,
      jump: 2,
      reload: 2,
      credit: 2,
      again: 2,
      prune: 1,
      disk: disk.armed === null ? 0.6 : 0,
      kill: 0.4,
      stop: 0.25,
    })
    switch (what) {
      case 'arrive':
        return this.#arrive()
      case 'send':
        return this.#withOne(
          visit => !visit.client.sent && !visit.client.left,
          visit => visit.client.send(this.#random.from(1, 400)),
        )
      case 'answer': {
        const ready = farEnd.ready()
        if (ready.length > 0)
          for (let steps = this.#random.from(1, 3), far = this.#random.pick(ready); steps > 0 && far.ready; steps--) far.go()
        return
      }
      case 'read':
        return this.#withOne(
          visit => visit.client.waiting,
          visit => visit.client.read(),
        )
      case 'leave':
        return this.#withOne(
          visit => !visit.client.left,
          visit => {
            this.#fault('a client leaves')
            this.#note(`the client of ${visit.id} leaves`)
            visit.client.leave()
          },
        )
      case 'time':
        return this.#clock.pass()
      case 'jump':
        this.#fault('the clock jumps')
        return this.#note(this.#clock.jump())
      case 'reload':
        this.#fault('the config is reloaded')
        this.#config = changed(this.#base, this.#random)
        await this.#life.reload(this.#config)
        return this.#note('the config is reloaded')
      case 'credit':
        return this.#credit()
      case 'again':
        return this.#again()
      case 'prune':
        return this.#prune()
      case 'disk':
        disk.armed = this.#random.pick(DISK_FAULTS)
        return this.#note(`armed: ${disk.armed}`)
      case 'kill':
        this.#fault('killed between two turns')
        return disk.kill()
      case 'stop':
        this.#fault('stopped while requests are under way')
        return this.#stop()
    }
  }

  #arrive(): void {
    const { services, runtime } = this.#life
    this.history.requests++
    const random = this.#random
    const key = random.pick(Object.keys(SECRETS))
    const body: JsonObject = {
      model: random.pick(MODELS),
      messages: [{ role: 'user', content: 'How high is the sky? '.repeat(random.from(0, 3)) }],
      ...(random.once(2) ? { stream: true } : {}),
      ...(random.once(3) ? { max_tokens: random.from(1, 200) } : {}),
      ...(random.once(6) ? { n: 2 } : {}),
      ...(random.once(3) ? { stream_options: { include_usage: true } } : {}),
    }
    const secret = random.once(40) ? 'mgk_wrong' : (SECRETS[key] as string)
    const bytes = random.once(40) ? Buffer.from('{"model":') : Buffer.from(JSON.stringify(body))
    const client = new Client(bytes, { authorization: `Bearer ${secret}` }, random.once(5))
    const at = this.#clock.now()
    const trace = String(this.history.requests).padStart(32, '0')
    const exchange = new Exchange(
      {
        id: services.newId(at),
        at,
        since: this.#clock.monotonic(),
        surface: 'chat',
        path: '/v1/chat/completions',
        clientRequestId: null,
        traceId: trace,
        traceparent: `00-${trace}-00f067aa0ba902b7-01`,
        tracestate: undefined,
      },
      client.request,
      client.response,
    )
    const life = this.#life
    const { id } = exchange
    const visit: Visit = { id, trace, key, body, client, exchange, config: runtime.config, life, over: false, record: null, due: 0n }
    this.#visits.set(id, visit)
    this.#live.add(visit)
    this.#note(`${id} of ${key}: ${JSON.stringify(body).slice(0, 160)}`)
    void run(exchange, chatCompletions, runtime, services).then(ran => {
      visit.over = true
      if (!life.disk.dead) this.#note(`${id} is over: ${client.status} ${ran.outcome.state} ${ran.error?.code ?? ''}`)
    })
    if (random.once(2)) client.send(bytes.length)
  }

  #withOne(where: (visit: Visit) => boolean, act: (visit: Visit) => void): void {
    const found = [...this.#live].filter(where)
    if (found.length > 0) act(this.#random.pick(found))
  }

  #credit(): void {
    const random = this.#random
    // Now and then one that was made before.
    const id = `credit ${random.once(4) ? random.from(1, Math.max(1, this.#credits)) : ++this.#credits}`
    // What a credit is depends on its id, so that a repetition is the same.
    const own = new Random(this.history.seed + 7919 * Number(id.slice(7)))
    const amount = BigInt(own.from(own.once(3) ? -4000 : 0, 15_000))
    this.#note(`${id} of ${amount}`)
    this.#ask({ id, account: own.pick(ACCOUNTS), amount, note: '', at: this.#clock.now() })
  }

  #ask(credit: Credit): void {
    void this.#life.watched.ledger.credit(credit).catch(error => {
      if (!this.#life.disk.dead && !this.#life.broken) this.#life.faults.push(String(error))
    })
  }

  /** What has ended is ended again, and held again: nothing comes of it. */
  #again(): void {
    const ended = [...this.#books.entries].filter(([id, { fate }]) => fate !== 'held' && !this.#mayBeGone(id))
    if (ended.length === 0) return
    const [id, { hold }] = this.#random.pick(ended)
    const { file, disk } = this.#life
    const record = this.#visits.get(id)?.record
    this.#note(`${id} is held and ended again`)
    const alive = (error: unknown) => !disk.dead && file.failure === null && error
    void file.hold(hold).then(
      () => this.#life.faults.push(`${id} was held twice`),
      error => {
        if (alive(error) && !/held before/.test(String(error))) this.#life.faults.push(String(error))
      },
    )
    if (record === undefined || record === null) return
    for (const ending of [file.void(id, record), file.settle(id, { state: 'settled', actual: { rial: 1n, tokens: 1n }, record })]) {
      void ending.then(
        answer => answer === 'already_ended' || this.#life.faults.push(`${id} was ended twice: ${answer}`),
        error => alive(error) && this.#life.faults.push(String(error)),
      )
    }
  }

  /** One step of letting old records go: whole days of the past, the last one among them today's eve at the latest. */
  #prune(): void {
    const { file, disk, runtime, faults } = this.#life
    const dayOf = (at: number) => runtime.windows('day', at)
    const before = dayOf(this.#clock.now() - this.#random.from(0, 40) * DAY).start
    this.#prunedBefore = Math.max(this.#prunedBefore, before)
    this.#note(`records from before ${new Date(before).toISOString()} are pruned`)
    void file.prune({ before, dayOf }).then(
      ({ records }) => {
        this.history.pruned += records
      },
      error => !disk.dead && file.failure === null && faults.push(String(error)),
    )
  }

  #mayBeGone(id: string): boolean {
    return (this.#books.entries.get(id)?.hold.at ?? this.#prunedBefore) < this.#prunedBefore
  }

  /** What must hold after each operation. A process that is no more is followed by the next; one that can not write is restarted after a while. */
  async #afterwards(): Promise<void> {
    const life = this.#life
    await life.disk.quiet()
    if (life.watched.violation !== null) throw life.watched.violation
    const [fault] = life.faults
    // Whoever meets a broken ledger says so; nothing else may go wrong.
    const expected = fault === undefined || life.broken || life.disk.dead
    must(expected, () => `a fault of the gateway: ${fault}`)
    for (const visit of this.#live) if (visit.over && !visit.client.waiting) this.#leaves(visit)
    if (life.watched.idle && !life.broken && !life.disk.dead) {
      const open = this.#books.open().length
      must(life.file.stats().open_holds === open, () => `${life.file.stats().open_holds} holds are open, not ${open}`)
    }
    if (life.disk.dead || (life.broken && this.#random.once(8))) await this.#restart()
  }

  #leaves(visit: Visit): void {
    this.#live.delete(visit)
    checkVisit(visit, this.#books)
    if (visit.client.whole) this.#received.push(visit)
  }

  /** The process is gone, or is made to go: its clients are cut off, and the next one finds the file. */
  async #restart(): Promise<void> {
    const { disk, watched, file } = this.#life
    if (disk.happened !== null) this.#fault(disk.happened)
    this.#note(`the process ends: ${disk.happened ?? 'killed'}`)
    disk.kill()
    watched.abandon()
    for (const visit of [...this.#live]) {
      const { client } = visit
      // What it had in full before that instant must be in the file.
      if (client.whole) this.#leaves(visit)
      else client.leave()
      visit.exchange.drain()
    }
    this.#live.clear()
    await file.close().catch(() => {})
    await this.#begin(true)
  }

  /** A stop by its operator: what is under way is cut off and settled, and the ledger is closed. */
  async #stop(): Promise<void> {
    const life = this.#life
    if (life.broken) return
    life.disk.armed = null
    this.#note('the gateway is stopped')
    for (const visit of this.#live) visit.exchange.drain()
    for (const visit of this.#live) visit.client.leave()
    // By the time that really passes: what it waits for may be a disk that is busy.
    const from = performance.now()
    while ([...this.#live].some(visit => !visit.over)) {
      must(performance.now() - from < 20_000, () => 'the gateway does not stop')
      await this.#turn()
    }
    for (const visit of [...this.#live]) this.#leaves(visit)
    must(this.#books.open().length === 0, () => `after a stop ${this.#books.open().join()} are held`)
    await life.file.close()
    life.disk.kill()
    await this.#begin(true)
  }

  async #begin(again: boolean): Promise<void> {
    const path = (life: number) => join(this.#folder, `${life}.db`)
    const before = this.#lives
    const now = this.#lives + 1
    this.#lives = now
    this.#life = await Life.begin(
      {
        path: path(now),
        next: path(now + 1),
        seed: this.history.seed,
        clock: this.#clock,
        books: this.#books,
        inspector: {
          hold: hold => checkHold(hold, this.#visits.get(hold.id) as Visit),
          end: (id, fate, record, actual) => {
            const visit = this.#visits.get(id) as Visit
            visit.record = record
            checkEnd(visit, fate, record, actual)
          },
        },
        random: new Random(this.history.seed + 104_729 * now),
      },
      this.#config,
    )
    if (again) for (const suffix of FILES) rmSync(path(before) + suffix, { force: true })
    await this.#recover()
    for (const credit of this.#books.doubtedCredits) await this.#life.watched.ledger.credit(credit)
    for (const { name, opening_balance_rial: amount } of this.#config.accounts.values()) {
      await this.#life.watched.ledger.credit({ id: `opening:${name}`, account: name, amount, note: '', at: this.#clock.now() })
    }
    await this.#look()
  }

  async #recover(): Promise<void> {
    const { file } = this.#life
    const records = await file.records({})
    this.#books.resolve(new Map(records.map(({ id, state }): [string, Fate] => [id, state])), id => this.#mayBeGone(id))
    const open = this.#books.open()
    const recovered = await file.recover(this.#clock.now())
    const listed = recovered.map(({ id }) => id)
    must([...listed].sort().join() === open.sort().join(), () => `open were ${open.join()}, recovered are ${listed.join()}`)
    for (const id of listed) this.#books.ended(id, 'recovered', null)
    this.history.recovered += listed.length
    await this.#sum()
  }

  /** What has ended is in the records or in the sums of their days, once. */
  async #sum(): Promise<Map<string, bigint>> {
    const rows = await this.#life.file.usage({ by: ['account'], timezone: this.#config.timezone, calendar: 'gregorian' })
    for (const { group, requests, cost_rial } of rows) {
      const ended = [...this.#books.entries.values()].filter(
        ({ hold, fate }) => fate !== 'held' && hold.record.account === (group.account ?? null),
      )
      const due = ended.reduce((sum, { actual }) => sum + (actual?.rial ?? 0n), 0n)
      must(requests === ended.length, () => `${group.account} has ${requests} requests in its records and sums, not ${ended.length}`)
      must(cost_rial === due, () => `${group.account} has ${cost_rial} Rial in its records and sums, not ${due}`)
    }
    return new Map(rows.map(({ group, cost_rial }) => [group.account ?? '', cost_rial]))
  }

  #look(): Promise<void> {
    return checkLedger(this.#life, this.#books, ACCOUNTS)
  }

  /** Everybody comes to an end: then nothing is pending, and all that was received in full is billed. */
  async #rest(): Promise<void> {
    this.#life.disk.armed = null
    if (this.#life.broken) await this.#restart()
    const from = performance.now()
    for (let turns = 0; this.#live.size > 0; turns++) {
      must(performance.now() - from < 20_000, () => `${[...this.#live].map(({ id }) => id).join()} do not end`)
      for (const { client } of this.#live) {
        client.send(Number.MAX_SAFE_INTEGER)
        client.read()
      }
      for (const far of this.#life.farEnd.seen) if (far.ready) far.go()
      if (turns > 500) for (const far of this.#life.farEnd.seen) far.break()
      await this.#turn()
      await this.#afterwards()
    }
    await this.#look()
    must(this.#books.open().length === 0, () => `at rest ${this.#books.open().join()} are held`)
    for (const { pending, counter } of this.#books.balances.values()) {
      must(pending === 0n, () => `at rest ${pending} of ${counter.meter} of ${counter.subject} are pending`)
    }
    await this.#reconcile()
  }

  /** The records of the file against what the ledger was asked to write; and the wallets against the records. */
  async #reconcile(): Promise<void> {
    const { file } = this.#life
    const spent = await this.#sum()
    const records = await file.records({})
    for (const record of records) {
      const entry = this.#books.entries.get(record.id)
      must(entry?.fate === record.state, () => `${record.id} is ${record.state}, not ${entry?.fate}`)
      must(record.cost_rial === (entry?.actual?.rial ?? 0n), () => `${record.id} costs ${record.cost_rial}, not ${entry?.actual?.rial}`)
    }
    const costs = new Map(records.map(({ id, cost_rial }) => [id, cost_rial]))
    for (const { id, due } of this.#received) {
      // What is in a sum is what was settled; the sum has been held against all that was.
      const cost = costs.get(id) ?? (this.#mayBeGone(id) ? this.#books.entries.get(id)?.actual?.rial : undefined)
      must(cost === due, () => `${id} was received in full for ${due} Rial, and is billed ${cost}`)
      this.history.reconciled++
      this.history.differenceRial += cost - due
    }
    this.history.admitted = this.#books.entries.size
    for (const account of ACCOUNTS) {
      const { credited, posted, pending } = await file.wallet(account)
      const right = posted === (spent.get(account) ?? 0n) && pending === 0n && credited === this.#books.creditOf(account)
      must(right, () => `the wallet of ${account}: ${credited} − ${posted} − ${pending}, its records come to ${spent.get(account)}`)
    }
  }

  /** One turn of the event loop, and what it has begun on the disk: how long that takes is not the seed's to say. */
  async #turn(): Promise<void> {
    await new Promise(resolve => setImmediate(resolve))
    await this.#life.disk.quiet()
  }

  #fault(kind: string): void {
    this.history.faults[kind] = (this.history.faults[kind] ?? 0) + 1
  }

  #note(words: string): void {
    this.history.log.push(`${this.history.operations}: ${words}`)
  }
}
