import { randomInt } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LiveCopy } from '../../src/ledger/live-copy.js'

const PAGE = 512

interface Copying {
  readonly copy: LiveCopy
  readonly write: (...pages: number[]) => Promise<void>
  readonly same: () => boolean
}

async function copying(t: Test, pages: number): Promise<Copying> {
  const folder = t.testdir()
  const [from, to] = [join(folder, 'from'), join(folder, 'to')]
  writeFileSync(from, Buffer.alloc(pages * PAGE, 1))
  const source = await open(from, 'r+')
  const target = await open(to, 'wx')
  t.teardown(() => Promise.all([source.close(), target.close()]))
  const copy = new LiveCopy(source, target, PAGE)
  let writes = 1
  return {
    copy,
    write: async (...pages) => {
      copy.writing(pages)
      for (const page of pages) await source.write(Buffer.alloc(PAGE, ++writes % 256), 0, PAGE, page * PAGE)
    },
    same: () => readFileSync(from).equals(readFileSync(to)),
  }
}

t.test('a file that no one writes to', async t => {
  for (const pages of [0, 1, 5000]) {
    const { copy, same } = await copying(t, pages)
    await copy.follow(async () => {})
    await copy.finish()
    t.ok(same(), `${pages} pages`)
  }
})

t.test('what is written while it is copied, in front of it and behind it, and what is added, is in the copy', async t => {
  const { copy, write, same } = await copying(t, 20_000)
  let over = false
  let pages = 20_000
  let writes = 0
  const writer = (async () => {
    for (; !over; writes++) await write(randomInt(pages), pages++)
  })()
  let rounds = 0
  await copy.follow(async () => {
    rounds++
    await new Promise(resolve => setImmediate(resolve))
  })
  over = true
  await writer
  await copy.finish()
  t.ok(writes > 0 && rounds > 0, `${writes} writes in ${rounds} rounds`)
  t.ok(same())
})

t.test('what a writer keeps to itself comes with a flush, and a copy is not begun anew for it', async t => {
  const { copy, write, same } = await copying(t, 300)
  const kept = [200, 40, 3]
  await copy.follow(async () => {
    await write(...Array.from({ length: kept.shift() ?? 0 }, (_, i) => (i * 7) % 300))
  })
  t.strictSame(kept, [3], 'few pages are left for the end')
  await write(...kept)
  await copy.finish()
  t.ok(same())
})

t.test('a writer that is always faster is not followed for ever', async t => {
  const { copy, write, same } = await copying(t, 100)
  let rounds = 0
  await copy.follow(async () => {
    rounds++
    await write(...Array.from({ length: 100 }, (_, i) => i))
  })
  t.equal(rounds, 10)
  await copy.finish()
  t.ok(same())
})
