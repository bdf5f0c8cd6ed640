import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Deadline } from '../src/deadline.js'

/** A deadline that notes when it is reached, in milliseconds from now on. */
function noted() {
  const from = performance.now()
  const reached: number[] = []
  let told: (() => void) | null = null
  let does: (() => void) | null = null
  const deadline = new Deadline(() => {
    reached.push(performance.now() - from)
    does?.()
    told?.()
  })
  const move = (ms: number) => {
    const now = performance.now()
    deadline.move(now + ms, now)
  }
  const next = () =>
    new Promise<void>(resolve => {
      told = resolve
    })
  const onReached = (what: () => void) => {
    does = what
  }
  return { deadline, move, reached, next, onReached }
}

t.test('is reached once, and not early', async t => {
  const { move, reached, next } = noted()
  move(30)
  await next()
  t.ok((reached[0] as number) >= 30)
  await sleep(50)
  t.equal(reached.length, 1)
})

t.test('moved later, it is reached then; moved earlier, too', async t => {
  const later = noted()
  later.move(20)
  later.move(120)
  await later.next()
  t.ok((later.reached[0] as number) >= 120, `${later.reached}`)
  const earlier = noted()
  earlier.move(60_000)
  earlier.move(20)
  await earlier.next()
  t.ok((earlier.reached[0] as number) < 30_000)
})

t.test('moved to never, or cleared, it is not reached; and can be set again', async t => {
  const { deadline, move, reached, next } = noted()
  move(10)
  move(Number.POSITIVE_INFINITY)
  await sleep(60)
  t.strictSame(reached, [])
  move(10)
  deadline.clear()
  await sleep(60)
  t.strictSame(reached, [])
  move(10)
  await next()
  t.equal(reached.length, 1)
})

t.test('many at once: each of those that are left is reached once, those that were cleared never, be it by one of them', async t => {
  const all = Array.from({ length: 600 }, () => noted())
  for (const [i, { move }] of all.entries()) move(20 + (i % 40))
  for (const [i, { deadline }] of all.entries()) if (i % 3 === 0) deadline.clear()
  const one = noted()
  const other = noted()
  one.onReached(() => other.deadline.clear())
  other.onReached(() => one.deadline.clear())
  one.move(30)
  other.move(30)
  await sleep(200)
  for (const [i, { reached }] of all.entries()) t.equal(reached.length, i % 3 === 0 ? 0 : 1)
  t.ok(all.every(({ reached }, i) => reached.every(ms => ms >= 20 + (i % 40))))
  t.equal(one.reached.length + other.reached.length, 1)
})

t.test('a process that waits for nothing else waits for a deadline, and not for one that was cleared', async t => {
  const from = performance.now()
  const lives = (code: string) =>
    execFileSync(
      process.execPath,
      ['--input-type=module', '-e', `import { Deadline } from '${new URL('../src/deadline.js', import.meta.url)}'\n${code}`],
      {
        encoding: 'utf8',
      },
    )
  const set = `const one = new Deadline(() => console.log('reached')); one.move(performance.now() + 50, performance.now());`
  t.equal(lives(set), 'reached\n')
  t.equal(lives(`${set} one.clear(); one.move(performance.now() + 60, performance.now())`), 'reached\n')
  t.equal(lives(`${set.replace('50', '60_000')} one.clear()`), '')
  t.ok(performance.now() - from < 50_000)
})

t.test('farther away than a timer can wait', async t => {
  const { deadline, move, reached } = noted()
  move(2 ** 40)
  await sleep(30)
  t.strictSame(reached, [])
  deadline.clear()
})
