import { Socket } from 'node:net'
import { Worker } from './worker.js'

/*
 * The process of a worker, as the owner starts it. It ends when the owner says so, or at once when the owner is gone: nothing that a worker does counts
 * without it.
 */

/** Where the owner left its end: after the standard streams and Node's own channel. */
const OWNER_FD = 4

// Ctrl-C, and what stops a service, reach every process of the group: when to end is for the owner to say.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

const owner = new Socket({ fd: OWNER_FD, readable: true, writable: true })
const worker = new Worker(owner)
const gone = (): void => process.exit(worker.ending ? 0 : 1)
owner.on('error', gone)
owner.on('close', gone)
process.on('disconnect', gone)
