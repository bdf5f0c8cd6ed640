import { write, writeSync } from 'node:fs'
import { FlatText } from '../flat-text.js'

/** Where text goes. A Writable of Node is one, apart from `writeSync`. */
export interface Destination {
  /** Calls `done` once, when it can take more. The next write waits for it. */
  write(text: string, done: (error?: Error | null) => void): unknown
  /** At the end of the process only: may block. */
  writeSync?(text: string): void
}

export interface Output {
  /** Adds a line (with its line break). Never blocks and never throws; drops the line when too much is pending. */
  push(line: string): void
  /** Writes what is pending before it returns: for the end of a process that can not wait. */
  flushSync(): void
  /** Resolves when all that was pushed is written, or lost to an output that fails, or that has taken nothing for DRAIN_MS. */
  drained(): Promise<void>
}

/** How long a stop waits for a reader that does not read. Milliseconds. */
const DRAIN_MS = 2_000

export interface OutputOptions {
  /** Characters that may wait; lines beyond are dropped. */
  readonly pendingMax: number
  /** Between two writes, in milliseconds: a write costs as much as 20 lines. The first line after a silence does not wait. Default 0. */
  readonly rest?: number
  /** The line that tells, once there is room again, how many were dropped. */
  readonly dropped: (lines: number) => string
}

/** Gathers the lines of one turn of the event loop into one write, and keeps what comes during a write, or right after it, for the next. */
export function createOutput(destination: Destination, { pendingMax, rest = 0, dropped }: OutputOptions): Output {
  const pending = new FlatText()
  let lost = 0
  let writing = 0
  let scheduled = false
  let resting = false
  let waiting: (() => void)[] = []
  let stalled = false

  function take(): string {
    if (lost > 0) pending.add(dropped(lost))
    lost = 0
    return pending.take()
  }

  function flush(): void {
    scheduled = false
    resting = false
    if (writing > 0) return
    if (pending.length === 0 && lost === 0) {
      for (const resolve of waiting) resolve()
      waiting = []
      return
    }
    const text = take()
    writing = text.length
    let called = false
    const done = () => {
      if (called) return
      called = true
      writing = 0
      if (rest === 0 || waiting.length > 0) schedule()
      else {
        resting = true
        setTimeout(flush, rest)
      }
    }
    try {
      destination.write(text, done)
    } catch {
      done()
    }
  }

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(flush)
  }

  return {
    push(line) {
      if (pending.length + writing + line.length > pendingMax) lost++
      else pending.add(line)
      if (writing === 0 && !resting) schedule()
    },
    flushSync() {
      // It would wait for the same reader.
      if (stalled) return
      const text = take()
      if (text === '') return
      try {
        if (destination.writeSync === undefined) destination.write(text, () => {})
        else destination.writeSync(text)
      } catch {
        // The process ends, and there is no other place to say it.
      }
    },
    drained() {
      return new Promise(resolve => {
        const late = setTimeout(() => {
          stalled = true
          resolve()
        }, DRAIN_MS)
        waiting.push(() => {
          clearTimeout(late)
          resolve()
        })
        schedule()
      })
    },
  }
}

/** How often, and how long at most, an output that takes nothing is asked again. */
const RETRY_MS = 20
const RETRIES_SYNC = 50

/**
 * A file descriptor, 1 being stdout. `process.stdout` blocks the whole process while the reader of a pipe stalls; this waits in a thread of
 * the pool instead. What can not be written (the reader has gone) is lost in silence.
 */
export function toDescriptor(fd: number): Destination {
  return {
    write(text, done) {
      const bytes = Buffer.from(text)
      const from = (offset: number): void => {
        write(fd, bytes, offset, bytes.length - offset, null, (error, written) => {
          if (error?.code === 'EAGAIN') setTimeout(from, RETRY_MS, offset)
          else if (error !== null || offset + written >= bytes.length) done(error)
          else from(offset + written)
        })
      }
      from(0)
    },
    writeSync(text) {
      const bytes = Buffer.from(text)
      let offset = 0
      for (let retries = 0; offset < bytes.length && retries < RETRIES_SYNC; ) {
        try {
          offset += writeSync(fd, bytes, offset)
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
          retries++
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
        }
      }
    },
  }
}
