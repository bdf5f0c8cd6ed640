import t from 'tap'
import { steady } from '../src/clock.js'

t.test('a steady clock shows the wall clock, and where that steps back goes on at half the pace until it is caught up with', async t => {
  let wall = 1_000_000
  let monotonic = 50.5
  const clock = steady({ now: () => wall, monotonic: () => monotonic })
  const pass = (ms: number): number => {
    wall += ms
    monotonic += ms
    return clock.now()
  }
  t.equal(clock.now(), 1_000_000)
  t.equal(pass(250), 1_000_250)
  wall += 3_600_000
  t.equal(pass(0), 4_600_250, 'a step forward is followed')
  wall -= 1000
  t.equal(pass(0), 4_600_250, 'a step back is not')
  t.equal(pass(1), 4_600_250)
  t.equal(pass(1), 4_600_251, 'whole milliseconds')
  t.equal(pass(998), 4_600_750)
  t.equal(pass(1000), 4_601_250, 'caught up with')
  t.equal(pass(1000), 4_602_250)
  t.equal(clock.monotonic(), monotonic)
})

t.test('a step back of more than a minute is told, once for each', async t => {
  let wall = 1_000_000
  let monotonic = 0
  const told: number[] = []
  const clock = steady({ now: () => wall, monotonic: () => monotonic }, undefined, ms => told.push(ms))
  const step = (ms: number): void => {
    wall += ms
    clock.now()
  }
  const pass = (ms: number): void => {
    monotonic += ms
    step(ms)
  }
  clock.now()
  step(-60_000)
  t.strictSame(told, [], 'less is corrected all the time')
  step(-1)
  pass(10)
  t.strictSame(told, [60_001])
  pass(2)
  pass(130_000)
  step(365 * 86_400_000)
  step(-365 * 86_400_000)
  t.strictSame(told, [60_001, 365 * 86_400_000])
})
