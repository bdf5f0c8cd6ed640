import { createHash } from 'node:crypto'
import { type FSWatcher, readFileSync, realpathSync, watch } from 'node:fs'
import { dirname } from 'node:path'

export interface WatchOptions {
  /** Quiet time after the last sign of a change, in milliseconds: editors and copies write in several steps. Default 100. */
  readonly quiet?: number
  /** The files are compared this often in any case, in milliseconds: not every file system tells. Default 5000. */
  readonly poll?: number
}

export interface Watch {
  /** Follows these files besides the main one from now on, in place of those before. What they hold now counts as known. */
  follow(extraFiles: readonly string[]): void
  /** No call of `onChange` after this. */
  close(): void
}

/**
 * Calls `onChange` when what a file holds has changed, or one of `extraFiles`: written in place, replaced by a rename, or swapped behind a
 * symlink (`..data` of a Kubernetes volume). A file that is written with what it held before is no change; neither is one that is gone: it
 * counts when it is back. Does not keep the process alive.
 */
export function watchConfig(file: string, extraFiles: readonly string[], onChange: () => void, options: WatchOptions = {}): Watch {
  const { quiet = 100, poll = 5000 } = options
  const watchers = new Map<string, FSWatcher>()
  let files = [file, ...extraFiles]
  let known = digests(files)
  let timer: NodeJS.Timeout | undefined

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
    const folders = new Set(files.flatMap(foldersOf))
    for (const [folder, watcher] of watchers) {
      if (folders.has(folder)) continue
      watcher.close()
      watchers.delete(folder)
    }
    for (const folder of folders) if (!watchers.has(folder)) watchFolder(folder)
  }
  const watchFolder = (folder: string) => {
    try {
      const watcher = watch(folder, { persistent: false }, stirred)
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
    follow(extra) {
      const before = known
      files = [file, ...extra]
      known = digests(files)
      // The main file is what was loaded last, not what it may have become since.
      known.set(file, before.get(file) ?? null)
      watchFolders()
    },
    close() {
      clearTimeout(timer)
      clearInterval(interval)
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}

/** Where a file is named, and where it lies: they differ behind a symlink. */
function foldersOf(file: string): string[] {
  try {
    return [dirname(file), dirname(realpathSync(file))]
  } catch {
    return [dirname(file)]
  }
}

/** `null` for a file that can not be read. */
function digests(files: readonly string[]): Map<string, string | null> {
  const read = (file: string) => {
    try {
      return createHash('sha256').update(readFileSync(file)).digest('hex')
    } catch {
      return null
    }
  }
  return new Map(files.map(file => [file, read(file)]))
}
