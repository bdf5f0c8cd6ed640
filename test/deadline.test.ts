import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Deadline } from '../src/deadline.js'

/** A deadline that notes when it is reached, in milliseconds from now on. */
function noted() {
  const from = performance.now()
  const reached: number[] = []
  let told: (() => void) | null = null
  const deadline = new Deadline(() => {
    reached.push(performance.now() - from)
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
  return { deadline, move, reached, next }
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

t.test('farther away than a timer can wait', async t => {
  const { deadline, move, reached } = noted()
  move(2 ** 40)
  await sleep(30)
  t.strictSame(reached, [])
  deadline.clear()
})
