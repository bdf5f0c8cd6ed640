import t from 'tap'
import { Batches, type Store } from '../../src/ledger/batch.js'

/** A store that notes what is asked of it, and fails where it is told to. */
class Noted implements Store {
  readonly log: string[] = []
  written = false
  failing: 'commit' | 'sync' | 'tidy' | null = null
  /** Sync and tidy wait until they are let go. */
  gate: Promise<void> = Promise.resolve()

  write(what: string): string {
    this.written = true
    this.log.push(what)
    return what
  }
  commits = 0
  commit(): boolean {
    this.commits++
    if (!this.written) return false
    this.#note('commit')
    this.written = false
    return true
  }
  rollback(): void {
    this.log.push('rollback')
  }
  async sync(): Promise<void> {
    await this.gate
    this.#note('sync')
  }
  async tidy(): Promise<void> {
    if (this.failing === 'tidy') this.#note('tidy')
  }
  isBroken(error: unknown): boolean {
    return error instanceof EvalError
  }
  #note(step: 'commit' | 'sync' | 'tidy'): void {
    if (this.failing === step) throw new Error(`no ${step} today`)
    this.log.push(step)
  }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

function batches(store: Noted): Batches {
  return new Batches(store, (_, operations) => store.log.push(`${operations} operations`))
}

t.test('what is asked for in one turn is one transaction, in the order in which it was asked for', async t => {
  const store = new Noted()
  const group = batches(store)
  t.strictSame(await Promise.all(['a', 'b', 'c'].map(what => group.run(() => store.write(what)))), ['a', 'b', 'c'])
  t.strictSame(store.log, ['a', 'b', 'c', 'commit', 'sync', '3 operations'])
})

t.test('nothing is resolved before it is durable; meanwhile the next batch gathers, and is not written', async t => {
  const store = new Noted()
  const group = batches(store)
  let open = () => {}
  store.gate = new Promise(resolve => {
    open = resolve
  })
  const resolved: string[] = []
  const run = (what: string) => group.run(() => store.write(what)).then(() => resolved.push(what))
  const first = run('a')
  while (store.log.length < 2) await turn()
  const others = [run('b'), run('c')]
  for (let i = 0; i < 5; i++) await turn()
  t.strictSame([resolved, store.log], [[], ['a', 'commit']])
  open()
  await Promise.all([first, ...others])
  t.strictSame(store.log, ['a', 'commit', 'sync', '1 operations', 'b', 'c', 'commit', 'sync', '2 operations'])
})

t.test('how long a batch took until it was durable is told, in seconds', async t => {
  const store = new Noted()
  const told: number[] = []
  const group = new Batches(store, seconds => told.push(seconds))
  store.gate = new Promise(resolve => setTimeout(resolve, 20))
  const began = performance.now()
  await group.run(() => store.write('a'))
  const most = (performance.now() - began) / 1000
  t.equal(told.length, 1)
  t.ok((told[0] as number) > 0.01 && (told[0] as number) <= most, `${told[0]} of ${most} s`)
})

t.test('operations that write nothing are answered without a commit', async t => {
  const store = new Noted()
  t.equal(await batches(store).run(() => 5), 5)
  t.strictSame(store.log, [])
})

t.test('an operation that throws for a reason of its own is rejected alone', async t => {
  const store = new Noted()
  const group = batches(store)
  const answers = await Promise.allSettled([
    group.run(() => store.write('a')),
    group.run(() => {
      throw new RangeError('its own')
    }),
    group.run(() => store.write('b')),
  ])
  t.match(answers, [{ value: 'a' }, { reason: { message: 'its own' } }, { value: 'b' }])
  t.equal(group.failure, null)
})

for (const step of ['commit', 'sync'] as const) {
  t.test(`a ${step} that fails: the whole batch and all that follows is rejected, and nothing is tried again`, async t => {
    const store = new Noted()
    const group = batches(store)
    store.failing = step
    const answers = await Promise.allSettled([group.run(() => store.write('a')), group.run(() => 'reads')])
    store.failing = null
    for (const answer of answers) t.match(answer, { status: 'rejected', reason: { code: 'ledger_unavailable', status: 503 } })
    await t.rejects(
      group.run(() => store.write('b')),
      { code: 'ledger_unavailable', message: /^(?!.*today)/, cause: { message: /no (commit|sync) today/ } },
    )
    t.equal(
      group.failure,
      `the ledger could not be written: no ${step} today. What was under way then may or may not be in it. Remove the cause, then restart the gateway.`,
    )
    t.notOk(store.log.includes('b'))
    t.equal(store.log.at(-1), 'rollback')
  })
}

t.test('a broken store in the middle of a batch: none of it is answered', async t => {
  const store = new Noted()
  const group = batches(store)
  const answers = await Promise.allSettled([
    group.run(() => store.write('a')),
    group.run(() => {
      throw new EvalError('broken')
    }),
  ])
  t.strictSame(
    answers.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  t.notOk(store.log.includes('commit'))
  t.match(group.failure, /broken/)
})

t.test('tidying that fails leaves answers as they were given, and rejects what follows', async t => {
  const store = new Noted()
  const group = batches(store)
  store.failing = 'tidy'
  t.equal(await group.run(() => store.write('a')), 'a')
  await t.rejects(
    group.run(() => store.write('b')),
    { code: 'ledger_unavailable' },
  )
  t.match(group.failure, /no tidy today/)
})

t.test('a crowd is written in several transactions, and other callbacks run in between', async t => {
  const store = new Noted()
  const group = batches(store)
  let turns = 0
  const count = () => {
    turns++
    if (turns < 100) setImmediate(count)
  }
  setImmediate(count)
  const numbers = await Promise.all(Array.from({ length: 1000 }, (_, i) => group.run(() => store.write(String(i)))))
  t.strictSame(
    numbers,
    numbers.slice().sort((a, b) => Number(a) - Number(b)),
  )
  t.strictSame(
    store.log.filter(line => line.includes('operations')),
    ['256 operations', '256 operations', '256 operations', '232 operations'],
  )
  t.ok(turns >= 3, `${turns} turns`)
})

t.test('stop: what was asked for before comes to its end, what is asked for after is rejected', async t => {
  const store = new Noted()
  const group = batches(store)
  const before = group.run(() => store.write('a'))
  const stopped = group.stop('closed')
  await t.rejects(
    group.run(() => store.write('b')),
    { code: 'ledger_unavailable' },
  )
  await stopped
  t.equal(await before, 'a')
  await group.stop('again')
  t.equal(group.failure, 'closed')
})

t.test('a task has the store to itself: it waits for what is being written, and nothing is written until it is over', async t => {
  const store = new Noted()
  const group = batches(store)
  const first = group.run(() => store.write('a'))
  let open = () => {}
  const gate = new Promise<void>(resolve => {
    open = resolve
  })
  const tasks = ['one', 'two'].map(name =>
    group.between(async () => {
      store.log.push(name)
      await gate
    }),
  )
  await first
  const second = group.run(() => store.write('b'))
  for (let i = 0; i < 5; i++) await turn()
  t.strictSame(store.log, ['a', 'commit', 'sync', '1 operations', 'one'])
  open()
  await Promise.all([...tasks, second])
  t.strictSame(store.log.slice(4), ['one', 'two', 'b', 'commit', 'sync', '1 operations'])
})

t.test('a task alone commits nothing', async t => {
  const store = new Noted()
  let ran = 0
  await batches(store).between(async () => {
    ran++
  })
  t.strictSame([ran, store.commits], [1, 0])
})

t.test('a task that rejects has failed the store; those that wait are rejected, and all that follow', async t => {
  const store = new Noted()
  const group = batches(store)
  const gone = { code: 'ledger_unavailable', cause: { message: /no checkpoint/ } }
  const first = group.between(async () => {
    throw new Error('no checkpoint')
  })
  const next = group.between(async () => {})
  await Promise.all([t.rejects(first, gone), t.rejects(next, gone)])
  await t.rejects(
    group.between(async () => {}),
    gone,
  )
  t.match(group.failure, /no checkpoint/)
})

t.test('a store that is known to be lost answers nothing more, and the first reason is the one that is told', async t => {
  const group = batches(new Noted())
  const waiting = group.run(() => 1)
  group.fail(new Error('removed'))
  group.fail(new Error('replaced'))
  await t.rejects(waiting, { code: 'ledger_unavailable', cause: { message: /removed/ } })
  t.match(group.failure, /could not be written: removed\./)
})
