import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createOutput, type Destination, toDescriptor } from '../../src/telemetry/output.js'

/** A destination whose writes end when the test says so. */
function scripted() {
  const writes: string[] = []
  const ends: ((error?: Error | null) => void)[] = []
  const destination: Destination = {
    write: (text, done) => {
      writes.push(text)
      ends.push(done)
    },
    writeSync: text => void writes.push(`sync:${text}`),
  }
  return { writes, end: (error?: Error) => ends.shift()?.(error), destination }
}

const OPTIONS = { pendingMax: 100, dropped: (lines: number) => `dropped ${lines}\n` }

t.test('the lines of one turn go out as one write, and the next write waits for its end', async t => {
  const { writes, end, destination } = scripted()
  const output = createOutput(destination, OPTIONS)
  output.push('a\n')
  output.push('b\n')
  t.strictSame(writes, [], 'nothing is written in the turn of the request')
  await turn()
  output.push('c\n')
  await turn()
  output.push('d\n')
  await turn()
  t.strictSame(writes, ['a\nb\n'])
  end()
  await turn()
  t.strictSame(writes, ['a\nb\n', 'c\nd\n'])
})

t.test('beyond the bound lines are dropped, counted, and told of when there is room', async t => {
  const { writes, end, destination } = scripted()
  const output = createOutput(destination, OPTIONS)
  output.push(`${'x'.repeat(59)}\n`)
  await turn()
  output.push(`${'y'.repeat(39)}\n`)
  for (let i = 0; i < 1000; i++) output.push('z\n')
  end()
  await turn()
  t.strictSame(writes, [`${'x'.repeat(59)}\n`, `${'y'.repeat(39)}\ndropped 1000\n`])
  end()
  output.push('again\n')
  await turn()
  t.equal(writes[2], 'again\n', 'and only once')
})

t.test('a line that is longer than the bound is dropped, and told of', async t => {
  const { writes, destination } = scripted()
  const output = createOutput(destination, OPTIONS)
  output.push('x'.repeat(101))
  await turn()
  t.strictSame(writes, ['dropped 1\n'])
})

t.test('a destination that fails or throws is tried again with the next line', async t => {
  const { writes, end, destination } = scripted()
  const output = createOutput(destination, OPTIONS)
  output.push('a\n')
  await turn()
  end(new Error('EPIPE'))
  output.push('b\n')
  await turn()
  t.strictSame(writes, ['a\n', 'b\n'])
  let thrown = 0
  const broken = createOutput(
    {
      write: () => {
        thrown++
        throw new Error('broken')
      },
    },
    OPTIONS,
  )
  broken.push('a\n')
  await broken.drained()
  broken.push('b\n')
  await broken.drained()
  t.equal(thrown, 2)
})

t.test('drained waits for what is pending; flushSync does not wait', async t => {
  const { writes, end, destination } = scripted()
  const output = createOutput(destination, OPTIONS)
  await output.drained()
  output.push('a\n')
  await turn()
  output.push('b\n')
  let drained = false
  const wait = output.drained().then(() => {
    drained = true
  })
  await turn()
  t.equal(drained, false)
  output.flushSync()
  output.flushSync()
  t.strictSame(writes, ['a\n', 'sync:b\n'])
  end()
  await wait
  t.equal(drained, true)
})

t.test('a stream of Node is a destination', async t => {
  const stream = new PassThrough()
  const output = createOutput(stream, OPTIONS)
  output.push('a\n')
  await output.drained()
  output.push('b\n')
  output.flushSync()
  t.equal(stream.read().toString(), 'a\nb\n')
})

t.test('a descriptor gets every byte in order', async t => {
  const file = join(t.testdir(), 'log')
  const fd = openSync(file, 'a')
  t.teardown(() => closeSync(fd))
  const output = createOutput(toDescriptor(fd), { ...OPTIONS, pendingMax: 1e7 })
  let expected = ''
  for (let i = 0; i < 200; i++) {
    const line = `${i} ${'ی'.repeat(i * 10)}\n`
    expected += line
    output.push(line)
    if (i % 10 === 0) await turn()
  }
  await output.drained()
  output.push('last\n')
  output.flushSync()
  t.equal(readFileSync(file, 'utf8'), `${expected}last\n`)
})

t.test('a stop does not wait for ever for a reader that does not read', async t => {
  const { writes, destination } = scripted()
  const output = createOutput(destination, OPTIONS)
  output.push('a\n')
  await turn()
  output.push('b\n')
  await output.drained()
  output.flushSync()
  t.strictSame(writes, ['a\n'], 'what waits behind it is not written past it')
})

t.test('a reader that stalls neither blocks the process nor fills its memory', async t => {
  const module = fileURLToPath(new URL('../../src/telemetry/output.js', import.meta.url))
  const script = `
    import { createOutput, toDescriptor } from ${JSON.stringify(module)}
    const output = createOutput(toDescriptor(1), { pendingMax: 1e6, dropped: n => 'dropped ' + n + '\\n' })
    let longest = 0, last = performance.now(), turns = 0
    const timer = setInterval(() => {
      const now = performance.now()
      longest = Math.max(longest, now - last)
      last = now
      for (let i = 0; i < 100; i++) output.push('x'.repeat(999) + '\\n')
      if (++turns < 60) return
      clearInterval(timer)
      process.stderr.write(JSON.stringify({ longest }))
      output.drained().then(() => { output.push('end\\n'); return output.drained() })
    }, 5)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script])
  t.teardown(() => child.kill())
  const [told] = await once(child.stderr, 'data')
  t.ok(JSON.parse(String(told)).longest < 20_000, 'it went on while nobody read')
  let received = ''
  child.stdout.setEncoding('utf8').on('data', data => {
    received += data
  })
  await once(child, 'close')
  t.match(received.slice(-200), /\ndropped \d+\nend\n$/)
  const dropped = Number(/dropped (\d+)\nend/.exec(received)?.[1])
  t.equal(received.split('\n').filter(line => line.length === 999).length + dropped, 6000, 'every line is there or counted')
})
