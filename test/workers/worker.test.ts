import { deserialize, serialize } from 'node:v8'
import t, { type Test } from 'tap'
import { FRAME, Frames } from '../../src/workers/frames.js'
import type { Order, Word } from '../../src/workers/messages.js'
import { Worker } from '../../src/workers/worker.js'
import { asking, MODELS } from '../support/questions.js'
import { socketPair } from '../support/socket-pair.js'

interface Owner {
  tell(order: Order): void
  /** Its next word of this kind. */
  next(kind: Word['kind']): Promise<Word>
}

/** A worker in this process, with a test as its owner. */
async function begun(t: Test): Promise<Owner> {
  const [near, far] = await socketPair()
  new Worker(far)
  const words: Word[] = []
  let heard = (): void => {}
  const frames = new Frames(near, (kind, payload) => {
    if (kind === FRAME.word) words.push(deserialize(payload) as Word)
    heard()
  })
  const owner: Owner = {
    tell: order => frames.bytes(FRAME.order, serialize(order)),
    next: async kind => {
      for (;;) {
        const at = words.findIndex(word => word.kind === kind)
        if (at !== -1) return words.splice(at, 1)[0] as Word
        await new Promise<void>(resolve => {
          heard = resolve
        })
      }
    },
  }
  const { config } = asking(t, `listen: 127.0.0.1:0\n${MODELS}`)
  const form = { format: 'json', color: false } as const
  owner.tell({ kind: 'begin', config, workers: 2, port: 0, form, now: Date.now(), taught: [], watched: false })
  await owner.next('listening')
  t.teardown(async () => {
    owner.tell({ kind: 'end' })
    await new Promise(resolve => near.once('close', resolve))
  })
  return owner
}

t.test('it runs what was made ready for a change, once, and nothing that was made ready for another', async t => {
  const owner = await begun(t)
  const { config } = asking(t)
  const bad = asking(t, `policies: [./none.mjs]\n${MODELS}`).config
  const ready = async (change: number, of = config) => {
    owner.tell({ kind: 'prepare', change, config: of })
    return owner.next('prepared')
  }
  const switched = async (change: number) => {
    owner.tell({ kind: 'switch', change })
    return owner.next('switched')
  }
  t.strictSame(await ready(1), { kind: 'prepared', change: 1, problem: null })
  t.match(await ready(2, bad), { kind: 'prepared', change: 2, problem: /none\.mjs/ })
  t.strictSame(await switched(2), { kind: 'switched', change: 2, done: false })
  t.strictSame(await switched(1), { kind: 'switched', change: 1, done: false }, 'given up by the one after')
  t.strictSame(await ready(3), { kind: 'prepared', change: 3, problem: null })
  t.strictSame(await switched(3), { kind: 'switched', change: 3, done: true })
  t.strictSame(await switched(3), { kind: 'switched', change: 3, done: false })
  await ready(4)
  owner.tell({ kind: 'abandon' })
  t.strictSame(await switched(4), { kind: 'switched', change: 4, done: false })
})
