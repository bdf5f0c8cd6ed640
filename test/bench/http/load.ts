import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { streaming } from './bodies.js'
import { SECRET } from './programs.js'

/** A figure of many measurements, in the unit of what was measured. */
export interface Spread {
  readonly p50: number
  readonly p99: number
}

export type Fields = Readonly<Record<string, string>>

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}

export function median(values: readonly number[]): number {
  return spread(values).p50
}

/** `more`: header fields besides. */
export function request(body: string, more: Fields = {}): Buffer {
  const fields = Object.entries(more).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${SECRET}\r\ncontent-type: application/json\r\n${fields.join('')}` +
      `user-agent: bench\r\naccept: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

export interface Throughput {
  readonly perSecond: number
  /** Microseconds. */
  readonly latency: Spread
  readonly errors: number
}

/** As many requests as it takes, over `connections` connections, for some seconds: Debian's wrk. */
export async function flood(
  folder: string,
  port: number,
  body: string,
  connections: number,
  seconds: number,
  more: Fields = {},
): Promise<Throughput> {
  const script = join(folder, 'wrk.lua')
  writeFileSync(
    script,
    `wrk.method = "POST"
wrk.body = ${JSON.stringify(body)}
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer ${SECRET}"
${Object.entries(more)
  .map(([name, value]) => `wrk.headers["${name}"] = "${value}"\n`)
  .join('')}
done = function(summary, latency)
  local bad = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format("RESULT %f %f %f %d\\n", summary.requests / summary.duration * 1e6, latency:percentile(50), latency:percentile(99), bad))
end`,
  )
  const args = ['-c', '1', 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, `http://127.0.0.1:${port}/v1/chat/completions`]
  const output = await new Promise<string>((resolve, reject) =>
    execFile('taskset', args, (error, stdout, stderr) => (error === null ? resolve(stdout) : reject(new Error(stderr || error.message)))),
  )
  const [, perSecond, p50, p99, errors] = /RESULT (\S+) (\S+) (\S+) (\d+)/.exec(output) ?? []
  if (perSecond === undefined) throw new Error(`wrk said: ${output}`)
  return { perSecond: Number(perSecond), latency: { p50: Number(p50), p99: Number(p99) }, errors: Number(errors) }
}

/** One connection of a client; answers are awaited one by one. */
export class Line {
  readonly #socket: Socket
  #received = ''
  #wanted: ((text: string) => boolean) | null = null
  #done: (() => void) | null = null

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      this.#received += text
      if (this.#wanted?.(this.#received) === true) this.#done?.()
    })
  }

  static open(port: number): Promise<Line> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(new Line(socket)))
      socket.once('error', reject)
    })
  }

  /** Sends, and resolves when what came since satisfies `until`. */
  async ask(bytes: Buffer, until: (received: string) => boolean): Promise<string> {
    this.#received = ''
    this.#wanted = until
    const done = new Promise<void>(resolve => {
      this.#done = resolve
    })
    this.#socket.write(bytes)
    await done
    return this.#received
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** True once an answer with a content-length is whole. */
export function whole(received: string): boolean {
  const end = received.indexOf('\r\n\r\n')
  if (end === -1) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(received)?.[1]
  return length !== undefined && received.length >= end + 4 + Number(length)
}

export function streamed(received: string): boolean {
  return received.endsWith('0\r\n\r\n')
}

/** Microseconds from a request to its whole answer, one at a time. */
export async function oneByOne(port: number, body: string, times: number, more: Fields = {}): Promise<number[]> {
  const line = await Line.open(port)
  const bytes = request(body, more)
  const taken: number[] = []
  for (let i = 0; i < times; i++) {
    const from = process.hrtime.bigint()
    const answer = await line.ask(bytes, whole)
    taken.push(Number(process.hrtime.bigint() - from) / 1000)
    if (!answer.startsWith('HTTP/1.1 200')) throw new Error(answer.slice(0, 300))
  }
  line.close()
  return taken
}

export interface Streams {
  /** Microseconds until the first chunk. */
  readonly first: number[]
  /** Microseconds from a chunk's writing at the provider to its arrival. */
  readonly delays: number[]
}

/** Streams one after the other on one connection. */
export async function streams(port: number, body: string, times: number): Promise<Streams> {
  const first: number[] = []
  const delays: number[] = []
  const bytes = request(body)
  const line = await Line.open(port)
  for (let i = 0; i < times; i++) {
    const from = process.hrtime.bigint()
    let seen = 0
    const answer = await line.ask(bytes, received => {
      const now = process.hrtime.bigint()
      for (;;) {
        const at = received.indexOf('"content":" ', seen)
        const end = at === -1 ? -1 : received.indexOf('"', at + 12)
        if (end === -1) break
        if (seen === 0) first.push(Number(now - from) / 1000)
        // Where the gateway has cut a piece in the middle of a number, that chunk is left out.
        const written = received.slice(at + 12, end)
        if (/^\d+$/.test(written)) delays.push(Number(now - BigInt(written)) / 1000)
        seen = end
      }
      return streamed(received)
    })
    if (!answer.startsWith('HTTP/1.1 200') || !answer.includes('[DONE]')) throw new Error(answer.slice(0, 300))
  }
  line.close()
  return { first, delays }
}

/** Opens so many streams that go on slowly; resolves when each has had its first chunks, with what ends them. */
export async function slowStreams(port: number, count: number): Promise<() => Promise<void>> {
  const bytes = request(streaming(100_000, 500))
  const lines: Line[] = []
  for (let i = 0; i < count; i += 50) {
    const opened = await Promise.all(Array.from({ length: Math.min(50, count - i) }, () => Line.open(port)))
    await Promise.all(opened.map(line => line.ask(bytes, received => received.split('"content"').length > 2)))
    lines.push(...opened)
  }
  await new Promise(resolve => setTimeout(resolve, 3000))
  return async () => {
    for (const line of lines) line.close()
    await new Promise(resolve => setTimeout(resolve, 1000))
  }
}
