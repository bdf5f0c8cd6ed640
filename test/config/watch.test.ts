import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Watch, type WatchOptions, watchConfig } from '../../src/config/watch.js'
import { fakeTimers } from '../support/timers.js'

/** No poll within a test, unless it is what is tested. */
const EVENTS: WatchOptions = { quiet: 20, poll: 3_600_000 }
const POLL: WatchOptions = { quiet: 20, poll: 25 }

function watched(t: Test, file: string, extra: string[], options: WatchOptions) {
  const seen: string[] = []
  let wake = () => {}
  const watch: Watch = watchConfig(
    file,
    extra,
    () => {
      seen.push(readFileSync(file, 'utf8'))
      wake()
    },
    options,
  )
  t.teardown(() => watch.close())
  return {
    seen,
    watch,
    /** Resolves once the callback has been called this many times in all. */
    async calls(count: number): Promise<void> {
      while (seen.length < count) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
  }
}

// The watch itself does not keep a process alive; a test that waits for it must.
const awake = setInterval(() => {}, 1000)
t.teardown(() => clearInterval(awake))

t.test('a plain write, an editor that renames, and a file of the same content', async t => {
  const dir = t.testdir({ 'gateway.yaml': 'one' })
  const file = join(dir, 'gateway.yaml')
  const { seen, calls } = watched(t, file, [], EVENTS)
  writeFileSync(file, 'two')
  await calls(1)
  writeFileSync(join(dir, '.gateway.yaml.swp'), 'three')
  renameSync(join(dir, '.gateway.yaml.swp'), file)
  await calls(2)
  writeFileSync(file, 'three')
  await sleep(80)
  t.strictSame(seen, ['two', 'three'], 'one call for each change')
  writeFileSync(file, 'four')
  await calls(3)
  t.strictSame(seen, ['two', 'three', 'four'], 'and it still watches after a rename')
})

t.test('the symlink swap of a Kubernetes volume', async t => {
  const dir = t.testdir({ '..2026_01': { 'gateway.yaml': 'one' } })
  symlinkSync('..2026_01', join(dir, '..data'))
  symlinkSync('..data/gateway.yaml', join(dir, 'gateway.yaml'))
  const file = join(dir, 'gateway.yaml')
  const { seen, calls } = watched(t, file, [], EVENTS)
  for (const [index, next] of ['..2026_02', '..2026_03'].entries()) {
    mkdirSync(join(dir, next))
    writeFileSync(join(dir, next, 'gateway.yaml'), next)
    symlinkSync(next, join(dir, '..data_tmp'))
    renameSync(join(dir, '..data_tmp'), join(dir, '..data'))
    await calls(index + 1)
  }
  t.strictSame(seen, ['..2026_02', '..2026_03'])
})

t.test('several writes in a row are one change', async t => {
  const dir = t.testdir({ 'gateway.yaml': 'one' })
  const file = join(dir, 'gateway.yaml')
  const timers = fakeTimers(t)
  const { seen } = watched(t, file, [], { quiet: 100, poll: 3_600_000 })
  for (const part of ['a', 'ab', 'abc']) {
    writeFileSync(file, part)
    // It has heard of it when it begins to wait, or to wait anew.
    for (const before = timers.made; timers.made === before; ) await new Promise(resolve => setImmediate(resolve))
    timers.advance(99)
    t.strictSame(seen, [])
  }
  timers.advance(100)
  t.strictSame(seen, ['abc'])
})

t.test('a file that is gone is no change until it is back', async t => {
  const dir = t.testdir({ 'gateway.yaml': 'one' })
  const file = join(dir, 'gateway.yaml')
  const { seen, calls } = watched(t, file, [], EVENTS)
  unlinkSync(file)
  await sleep(60)
  t.strictSame(seen, [])
  writeFileSync(file, 'one')
  await sleep(60)
  t.strictSame(seen, [], 'back as it was')
  writeFileSync(file, 'two')
  await calls(1)
  t.strictSame(seen, ['two'])
})

t.test('secrets and certificates are followed too, also those that come later or do not exist yet', async t => {
  const dir = t.testdir({ 'gateway.yaml': 'same', secrets: { a: '1', b: '1' } })
  const secret = (name: string) => join(dir, 'secrets', name)
  const { seen, calls, watch } = watched(t, join(dir, 'gateway.yaml'), [secret('a')], EVENTS)
  writeFileSync(secret('a'), '2')
  await calls(1)
  watch.follow([secret('b'), secret('c')])
  writeFileSync(secret('a'), '3')
  await sleep(60)
  t.equal(seen.length, 1, 'a is followed no more')
  writeFileSync(secret('b'), '2')
  await calls(2)
  writeFileSync(secret('c'), '1')
  await calls(3)
  t.strictSame(seen, ['same', 'same', 'same'])
})

t.test('a change between loading and following is not lost', async t => {
  const dir = t.testdir({ 'gateway.yaml': 'one' })
  const file = join(dir, 'gateway.yaml')
  const { seen, calls, watch } = watched(t, file, [], { quiet: 50, poll: 3_600_000 })
  writeFileSync(file, 'two')
  watch.follow([])
  await calls(1)
  t.strictSame(seen, ['two'])
})

t.test('what was read is known, and nothing that a file has become before it is followed', async t => {
  const dir = t.testdir({ 'gateway.yaml': 'one', a: '1', b: '\ufeff1' })
  const at = (name: string) => join(dir, name)
  const { seen, calls, watch } = watched(t, at('gateway.yaml'), [], EVENTS)
  t.equal(watch.read(at('a')), '1')
  t.equal(watch.read(at('b')), '1', 'without its byte order mark')
  t.throws(() => watch.read(at('c')), { code: 'ENOENT' })
  watch.follow([at('a'), at('b'), at('c')])
  writeFileSync(at('gateway.yaml'), 'two')
  await calls(1)
  t.strictSame(seen, ['two'], 'they are as they were')
  for (const [index, name] of ['a', 'c'].entries()) {
    watch.follow([])
    if (name === 'a') watch.read(at('a'))
    else t.throws(() => watch.read(at('c')), { code: 'ENOENT' })
    writeFileSync(at(name), '2')
    watch.follow([at(name)])
    await calls(2 + index)
  }
  writeFileSync(at('gateway.yaml'), 'three')
  t.equal(watch.read(at('gateway.yaml')), 'three')
  await sleep(80)
  t.equal(seen.length, 3, 'who has read a change need not be told of it')
})

t.test('the poll sees what no event tells of', async t => {
  const dir = t.testdir({})
  // The folder does not exist, so nothing can be watched.
  const file = join(dir, 'later', 'gateway.yaml')
  const { seen, calls } = watched(t, file, [], POLL)
  mkdirSync(join(dir, 'later'))
  writeFileSync(file, 'one')
  await calls(1)
  rmSync(join(dir, 'later'), { recursive: true })
  await sleep(60)
  mkdirSync(join(dir, 'later'))
  writeFileSync(file, 'two')
  await calls(2)
  t.strictSame(seen, ['one', 'two'])
})

t.test('a busy neighbour in the folder does not put a change off', async t => {
  const dir = t.testdir({ 'gateway.yaml': 'one' })
  const file = join(dir, 'gateway.yaml')
  const { seen, calls } = watched(t, file, [], { quiet: 50, poll: 3_600_000 })
  const busy = setInterval(() => writeFileSync(join(dir, 'ledger.db-wal'), String(Math.random())), 5)
  // Before any teardown: the folder goes with the first of them.
  try {
    writeFileSync(file, 'two')
    await calls(1)
  } finally {
    clearInterval(busy)
  }
  t.strictSame(seen, ['two'])
})

t.test('what is no regular file is not read: it would block, or take from a pipe what another is to read', async t => {
  const dir = t.testdir({ 'gateway.yaml': 'one' })
  const [file, pipe] = [join(dir, 'gateway.yaml'), join(dir, 'pipe')]
  execFileSync('mkfifo', [pipe])
  const { watch } = watched(t, file, [pipe, '/dev/zero'], EVENTS)
  watch.follow([pipe, '/dev/zero'])
  t.throws(() => watch.read(pipe), { message: /^it is no regular file/ })
  t.equal(watch.read(file), 'one')
})

t.test('nothing is called after close, nor followed', async t => {
  const dir = t.testdir({ 'gateway.yaml': 'one' })
  const file = join(dir, 'gateway.yaml')
  const { seen, watch } = watched(t, file, [], POLL)
  writeFileSync(file, 'two')
  watch.close()
  watch.follow([join(dir, 'secret')])
  writeFileSync(join(dir, 'secret'), 'one')
  await sleep(100)
  t.strictSame(seen, [])
})
