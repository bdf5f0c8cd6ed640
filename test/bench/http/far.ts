/*
 * A provider for measurements: answers chat completions as fast as a process can, with as little HTTP as will do.
 *   node far.js            prints {"port": …} and serves until it is killed
 * The request's `user` says what a stream is like: `chunks=200 every=5` are 200 chunks, one each 5 ms (0: as fast as they are taken).
 * Each chunk carries the moment at which it was written, in nanoseconds of the system's monotonic clock.
 */
import { createServer, type Socket } from 'node:net'

const ANSWER = JSON.stringify({
  id: 'chatcmpl-bench00000000000000000000',
  object: 'chat.completion',
  created: 1_760_000_000,
  model: 'bench',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'The quick brown fox jumps over the lazy dog. '.repeat(8), refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 210, completion_tokens: 90, total_tokens: 300, prompt_tokens_details: { cached_tokens: 0 } },
})
const WHOLE = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_bench\r\ncontent-length: ${ANSWER.length}\r\n\r\n${ANSWER}`,
)
const STREAM = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req_bench\r\ntransfer-encoding: chunked\r\n\r\n'
const ASKED = /"user":"chunks=(\d+) every=(\d+)"/

const server = createServer({ noDelay: true }, socket => {
  let pending: Buffer = Buffer.alloc(0)
  socket.on('error', () => {})
  socket.on('data', chunk => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    for (;;) {
      const end = pending.indexOf('\r\n\r\n')
      if (end === -1) return
      const length = Number(/content-length: *(\d+)/i.exec(pending.toString('latin1', 0, end))?.[1] ?? 0)
      if (pending.length < end + 4 + length) return
      const body = pending.subarray(end + 4, end + 4 + length)
      pending = pending.subarray(end + 4 + length)
      if (body.includes('"stream":true')) void stream(socket, body.toString('latin1'))
      else socket.write(WHOLE)
    }
  })
})

async function stream(socket: Socket, body: string): Promise<void> {
  const [, chunks = '20', every = '0'] = ASKED.exec(body) ?? []
  socket.write(STREAM)
  await wait(Number(every))
  for (let i = 0; i < Number(chunks) && !socket.destroyed; i++) {
    const flowing = send(
      socket,
      `data: {"id":"chatcmpl-bench00000000000000000000","object":"chat.completion.chunk","created":1760000000,"model":"bench","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":" ${process.hrtime.bigint()}"},"logprobs":null,"finish_reason":null}]}\n\n`,
    )
    if (!flowing) await new Promise<void>(resolve => socket.once('drain', resolve).once('close', resolve))
    if (i + 1 < Number(chunks)) await wait(Number(every))
  }
  send(
    socket,
    'data: {"id":"chatcmpl-bench00000000000000000000","object":"chat.completion.chunk","created":1760000000,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
  )
  if (body.includes('"include_usage":true')) {
    send(
      socket,
      'data: {"id":"chatcmpl-bench00000000000000000000","object":"chat.completion.chunk","created":1760000000,"model":"bench","choices":[],"usage":{"prompt_tokens":210,"completion_tokens":90,"total_tokens":300}}\n\n',
    )
  }
  send(socket, 'data: [DONE]\n\n')
  socket.write('0\r\n\r\n')
}

function send(socket: Socket, text: string): boolean {
  return socket.write(`${text.length.toString(16)}\r\n${text}\r\n`)
}

function wait(ms: number): Promise<void> {
  return new Promise(resolve => (ms === 0 ? setImmediate(resolve) : setTimeout(resolve, ms)))
}

server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as { port: number }).port })}\n`)
})
