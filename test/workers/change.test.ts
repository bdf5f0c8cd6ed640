import t from 'tap'
import type { Config } from '../../src/config/config.js'
import { prepareAll, switchAll } from '../../src/workers/change.js'
import type { Order } from '../../src/workers/messages.js'
import { Post } from '../../src/workers/post.js'

/** Nobody looks into it here. */
const config = {} as Config
/** Nobody is late by it while a test runs. */
const PATIENCE_MS = 600_000

interface Told {
  readonly post: Post
  /** What its worker was told. */
  readonly orders: Order['kind'][]
}

/** A post whose worker is up, and says what `answer` does. */
function up(number: number, answer: (post: Post, order: Order) => void): Told {
  const post = new Post(number)
  const orders: Order['kind'][] = []
  post.state = 'up'
  post.process = {
    tell: order => {
      orders.push(order.kind)
      answer(post, order)
    },
    kill: () => {},
  }
  return { post, orders }
}

const silent = (): void => {}

function willing(post: Post, order: Order): void {
  if (order.kind === 'prepare') post.heard({ kind: 'prepared', change: order.change, problem: null })
  else if (order.kind === 'switch') post.heard({ kind: 'switched', change: order.change, done: true })
}

t.test('what comes too late for one change is no answer to the next', async t => {
  const { post, orders } = up(1, silent)
  await t.rejects(prepareAll([post], { change: 1, config }, 1), { message: 'worker 1 has not made ready within 0.001 s' })
  t.strictSame(orders, ['prepare', 'abandon'])
  const next = prepareAll([post], { change: 2, config }, PATIENCE_MS)
  post.heard({ kind: 'prepared', change: 1, problem: null })
  post.heard({ kind: 'prepared', change: 2, problem: 'no such package' })
  await t.rejects(next, { message: 'no such package' })
  t.strictSame(await switchAll([post], 2, PATIENCE_MS), [], 'it is not asked to')

  const late = switchAll([Object.assign(post, { ready: 2 })], 2, 1)
  t.strictSame(await late, [post])
  const again = switchAll([Object.assign(post, { ready: 3 })], 3, PATIENCE_MS)
  post.heard({ kind: 'switched', change: 2, done: true })
  post.heard({ kind: 'switched', change: 3, done: false })
  t.strictSame(await again, [post])
})

t.test('all make ready or none; each reason is told once, and what was made ready is given up', async t => {
  const refusing = (why: string) => (post: Post, order: Order) =>
    void (order.kind === 'prepare' && post.heard({ kind: 'prepared', change: order.change, problem: why }))
  const all = [up(1, willing), up(2, refusing('no')), up(3, refusing('no')), up(4, refusing('not here'))]
  const posts = all.map(({ post }) => post)
  await t.rejects(prepareAll(posts, { change: 7, config }, PATIENCE_MS), { message: 'no\nnot here' })
  for (const { orders } of all) t.strictSame(orders, ['prepare', 'abandon'])
})

t.test('those that do not run it are named; one that has ended meanwhile is not', async t => {
  const stubborn = up(2, (post, order) => {
    if (order.kind === 'switch') post.heard({ kind: 'switched', change: order.change, done: false })
    else willing(post, order)
  })
  const dying = up(3, (post, order) => {
    if (order.kind === 'switch') post.heard(null)
    else willing(post, order)
  })
  const posts = [up(1, willing).post, stubborn.post, dying.post]
  await prepareAll(posts, { change: 1, config }, PATIENCE_MS)
  t.strictSame(await switchAll(posts, 1, PATIENCE_MS), [stubborn.post])
})

t.test('one that begins meanwhile has to make ready too, before any runs it; one that could not begin is not waited for', async t => {
  const slow = up(1, silent)
  const next = up(2, silent)
  const failing = up(3, silent)
  const posts = [slow.post, next.post, failing.post]
  next.post.state = 'starting'
  failing.post.state = 'starting'
  const all = prepareAll(posts, { change: 1, config }, PATIENCE_MS)
  next.post.state = 'up'
  next.post.heard({ kind: 'listening', host: '127.0.0.1', port: 80 })
  failing.post.state = 'ended'
  failing.post.heard(null)
  await new Promise(setImmediate)
  t.strictSame(next.orders, [])
  slow.post.heard({ kind: 'prepared', change: 1, problem: null })
  await new Promise(setImmediate)
  t.strictSame([slow.orders, next.orders, failing.orders], [['prepare'], ['prepare'], []])
  next.post.heard({ kind: 'prepared', change: 1, problem: 'not here' })
  await t.rejects(all, { message: 'not here' })
  t.strictSame(
    [slow.orders, next.orders],
    [
      ['prepare', 'abandon'],
      ['prepare', 'abandon'],
    ],
  )
})
