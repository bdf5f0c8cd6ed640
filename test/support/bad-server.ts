import { createServer, type Server, type Socket } from 'node:net'
import type { Parsed } from './parsed.js'

/** A request that has come whole, and the connection to answer it on with bytes of any kind. */
export interface Call {
  readonly socket: Socket
  readonly path: string
  readonly body: Parsed
}

export type Act = (call: Call) => unknown

export interface BadServer {
  readonly port: number
  /** What is done with requests whose path begins so. */
  on(prefix: string, act: Act): void
  /** Requests that came, by path. */
  readonly seen: Map<string, number>
}

/** A server that writes bytes, not answers: what it does with a request is up to the script of its path. Ends with the test. */
export async function badServer(t: { teardown(fn: () => unknown): unknown }): Promise<BadServer> {
  const acts: [string, Act][] = []
  const seen = new Map<string, number>()
  const port = await tcp(t, socket => {
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', chunk => {
      text += chunk
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) return
      const length = Number(/^content-length: *(\d+)/im.exec(text)?.[1] ?? 0)
      if (text.length < end + 4 + length) return
      const path = text.split(' ', 2)[1] as string
      const body = JSON.parse(Buffer.from(text.slice(end + 4, end + 4 + length), 'latin1').toString('utf8'))
      text = ''
      seen.set(path, (seen.get(path) ?? 0) + 1)
      const act = acts.find(([prefix]) => path.startsWith(prefix))?.[1]
      if (act === undefined) socket.destroy()
      else act({ socket, path, body })
    })
  })
  return { port, on: (prefix, act) => acts.push([prefix, act]), seen }
}

/** A server of connections. Its port. */
export async function tcp(t: { teardown(fn: () => unknown): unknown }, each: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server: Server = createServer({ noDelay: true }, socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    each(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('a server without a port')
  return address.port
}
