import { createHash } from 'node:crypto'
import { type FSWatcher, realpathSync, watch } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { type ReadFile, readBytes, textOf } from './secrets.js'

export interface WatchOptions {
  /** Quiet time after the last sign of a change, in milliseconds: editors and copies write in several steps. Default 100. */
  readonly quiet?: number
  /** The files are compared this often in any case, in milliseconds: not every file system tells. Default 5000. */
  readonly poll?: number
}

export interface Watch {
  /** Reads a regular file as text, by its absolute path. What it held is known from then on: anything else is a change, once it is followed. */
  readonly read: ReadFile
  /** Follows these files besides the main one from now on, in place of those before. What a new one that was not read holds now counts as known. */
  follow(extraFiles: readonly string[]): void
  /** No call of `onChange` after this, and nothing is followed any more. */
  close(): void
}

/**
 * Calls `onChange` when what a file holds has changed, or one of `extraFiles`: written in place, replaced by a rename, or swapped behind a
 * symlink (`..data` of a Kubernetes volume). A file that is written with what it held before is no change; neither is one that is gone: it
 * counts when it is back. Does not keep the process alive. Begin to watch before you load, load by `read`, and follow what the loading named:
 * nothing is missed in between, nor a file that was missing when a load failed.
 */
export function watchConfig(file: string, extraFiles: readonly string[], onChange: () => void, options: WatchOptions = {}): Watch {
  const { quiet = 100, poll = 5000 } = options
  const watchers = new Map<string, FSWatcher>()
  const main = resolve(file)
  let closed = false
  let files = [main, ...extraFiles]
  let known = digests(files)
  let timer: NodeJS.Timeout | undefined
  // Others that live in the same folders, such as a ledger under load, must not put off the comparison for ever.
  let names = new Set<string>()

  const compare = () => {
    timer = undefined
    watchFolders()
    let changed = false
    for (const [path, digest] of digests(files)) {
      if (digest === null || digest === known.get(path)) continue
      known.set(path, digest)
      changed = true
    }
    if (changed) onChange()
  }
  const stirred = () => {
    clearTimeout(timer)
    timer = setTimeout(compare, quiet).unref()
  }
  // Folders, not files: a watch on a file stays with what was renamed away.
  const watchFolders = () => {
    const places = files.flatMap(placesOf)
    names = new Set(places.map(place => basename(place)))
    const folders = new Set(places.map(place => dirname(place)))
    for (const [folder, watcher] of watchers) {
      if (folders.has(folder)) continue
      watcher.close()
      watchers.delete(folder)
    }
    for (const folder of folders) if (!watchers.has(folder)) watchFolder(folder)
  }
  const watchFolder = (folder: string) => {
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        if (name === null || name.startsWith('..') || names.has(name)) stirred()
      })
      watchers.set(folder, watcher)
      watcher.on('error', () => {
        watcher.close()
        watchers.delete(folder)
      })
    } catch {
      // No such folder for the moment, or no watches left on this machine: the poll sees the change.
    }
  }

  watchFolders()
  const interval = setInterval(compare, poll).unref()
  return {
    read(path) {
      known.set(path, null)
      const bytes = readBytes(path)
      known.set(path, digestOf(bytes))
      return textOf(bytes)
    },
    follow(extra) {
      if (closed) return
      files = [...new Set([main, ...extra])]
      // What was read, or followed before, is known as it was then, not as it may have become since.
      known = new Map([...digests(files), ...[...known].filter(([path]) => files.includes(path))])
      watchFolders()
    },
    close() {
      closed = true
      clearTimeout(timer)
      clearInterval(interval)
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}

/** As a file is named, and as it is called where it lies: they differ behind a symlink. */
function placesOf(file: string): string[] {
  try {
    return [file, realpathSync(file)]
  } catch {
    return [file]
  }
}

/** `null` for a file that can not be read. */
function digests(files: readonly string[]): Map<string, string | null> {
  const read = (file: string) => {
    try {
      return digestOf(readBytes(file))
    } catch {
      return null
    }
  }
  return new Map(files.map(file => [file, read(file)]))
}

function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
