import { createHash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** What a socket's address may come to in bytes; the kernel's structure has room for 108 (macOS: 104), one of them a zero. */
const ADDRESS_MAX = process.platform === 'darwin' ? 103 : 107
/** What must be left of it for a name, when the folder is named by a descriptor. */
const NAME_MAX = 80

/**
 * Where the gateway that owns a ledger can be spoken to: a Unix socket beside the file. `null`: nowhere, for a ledger in memory and on
 * systems without such sockets.
 */
export function socketOf(ledger: string, platform: NodeJS.Platform = process.platform): string | null {
  if (ledger === ':memory:' || platform === 'win32') return null
  const name = `${basename(ledger)}.sock`
  const short = `ledger-${createHash('sha256').update(name).digest('hex').slice(0, 16)}.sock`
  return join(dirname(ledger), Buffer.byteLength(name) > NAME_MAX ? short : name)
}

/** A way to name a socket that the kernel takes, for as long as it is not closed. */
export interface Address {
  readonly path: string
  close(): void
}

/** The address of a socket, however long its path. Throws an Error with a remedy where there is none. */
export function addressOf(socket: string, platform: NodeJS.Platform = process.platform): Address {
  if (Buffer.byteLength(socket) <= ADDRESS_MAX) return { path: socket, close: () => {} }
  if (platform !== 'linux')
    throw new Error(`${socket} is too long for a socket (${ADDRESS_MAX} bytes at most): choose a shorter ledger.path`)
  // The kernel follows /proc to the folder, whose own path then does not count.
  const folder = openSync(dirname(socket), 'r')
  return { path: `/proc/self/fd/${folder}/${basename(socket)}`, close: () => closeSync(folder) }
}
