import t from 'tap'
import { Room } from '../../src/http/room.js'

t.test('what is taken is bounded, and can be taken again when it was given back', async t => {
  const room = new Room(100)
  t.ok(room.take(60, 0))
  t.notOk(room.take(41, 0))
  t.ok(room.take(40, 60))
  t.notOk(room.take(1, 0))
  room.give(60)
  t.ok(room.take(41, 0))
  t.notOk(room.take(20, 0))
  t.ok(room.take(19, 0))
})

t.test('who is alone gets more than there is: a body within limits.body is never refused for ever', async t => {
  const room = new Room(100)
  t.ok(room.take(90, 0))
  t.ok(room.take(90, 90))
  t.notOk(room.take(1, 0))
})
