/*
 * The bare pipe that the gateway is held against: node:http to undici's dispatch, with no logic at all.
 *   node pipe.js <origin>   prints {"port": …} and serves until it is killed
 */
import { createServer, type ServerResponse } from 'node:http'
import { type Dispatcher, Pool } from 'undici'

const pool = new Pool(process.argv[2] ?? '', { connections: 1024, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })

class Passing implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
  }

  onRequestStart(): void {}

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    const fields: string[] = ['content-type', String(headers['content-type'])]
    if (headers['content-length'] !== undefined) fields.push('content-length', String(headers['content-length']))
    this.#response.writeHead(status, fields)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.write(chunk)) return
    controller.pause()
    this.#response.once('drain', () => controller.resume())
  }

  onResponseEnd(): void {
    this.#response.end()
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#response.destroy(error)
  }
}

const server = createServer({ noDelay: true }, (request, response) => {
  const chunks: Buffer[] = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
    pool.dispatch({ method: 'POST', path: request.url ?? '/', headers: ['content-type', 'application/json'], body }, new Passing(response))
  })
})
server.listen(0, '127.0.0.1', 4096, () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as { port: number }).port })}\n`)
})
