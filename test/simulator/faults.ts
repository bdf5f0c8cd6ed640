import { copyFileSync, existsSync, statSync, truncateSync } from 'node:fs'
import type { Store } from '../../src/ledger/batch.js'
import type { Random } from './random.js'

/** What happens to the disk, or to the process, at a commit. `lost`: what was written since the last sync may be gone, wholly or in part. */
export const DISK_FAULTS = [
  'killed before a commit',
  'killed after a commit',
  'killed after a sync',
  'power lost before a sync',
  'a commit fails and is not written',
  'a commit fails and is written',
  'a sync fails and all is kept',
  'a sync fails and something is lost',
] as const
export type DiskFault = (typeof DISK_FAULTS)[number]

/** What a ledger consists of, by what follows its name. */
export const FILES = ['', '-wal', '-mark'] as const

const LOSING: ReadonlySet<DiskFault> = new Set<DiskFault>(['power lost before a sync', 'a sync fails and something is lost'])

/** Thrown where the process is no more; what catches it is no more, either. */
class Killed extends Error {}

/**
 * Stands between the ledger's batches and its file, and lets one fault happen when it was armed. A kill leaves a copy of the files as
 * they were at that instant; whatever the old process still does goes nowhere.
 */
export class Disk {
  armed: DiskFault | null = null
  /** The fault that has come about. */
  happened: DiskFault | null = null
  /** Nothing of this process counts any more. */
  dead = false
  readonly #random: Random
  readonly #path: string
  readonly #next: string
  #syncedBytes = 0
  #syncing: Promise<void> = Promise.resolve()
  #tidying: Promise<void> = Promise.resolve()
  #copied = false

  /** `next`: where the files are copied to for the process that comes after this one. */
  constructor(path: string, next: string, random: Random) {
    this.#path = path
    this.#next = next
    this.#random = random
  }

  /** The ledger is open: all that it has by now is on the disk. */
  begun(): void {
    this.#syncedBytes = this.#walBytes()
  }

  readonly wrap = (store: Store): Store => ({
    commit: () => this.#commit(store),
    rollback: () => store.rollback(),
    sync: () => this.#sync(store),
    tidy: () => this.#tidy(store),
    isBroken: error => store.isBroken(error),
  })

  /** Resolves when nothing of the file is on another thread. */
  async quiet(): Promise<void> {
    await this.#syncing
    await this.#tidying
  }

  /** The process ends here and now, and leaves its files as they are. */
  kill(): void {
    this.dead = true
    this.#copy()
  }

  #commit(store: Store): boolean {
    if (this.dead) throw new Killed()
    const fault = this.armed
    if (fault === 'killed before a commit') this.#die(fault)
    if (fault === 'a commit fails and is not written') this.#fail(fault)
    const written = store.commit()
    if (!written) return false
    if (fault === 'killed after a commit' || fault === 'power lost before a sync') this.#die(fault)
    if (fault === 'a commit fails and is written') this.#fail(fault)
    return true
  }

  async #sync(store: Store): Promise<void> {
    for (let turns = this.#random.from(0, 2); turns > 0; turns--) await new Promise(resolve => setImmediate(resolve))
    if (this.dead) throw new Killed()
    // Only now: it may have been disarmed meanwhile.
    const fault = this.armed
    if (fault === 'a sync fails and all is kept' || fault === 'a sync fails and something is lost') this.#fail(fault)
    this.#syncing = store.sync()
    await this.#syncing
    this.#syncedBytes = this.#walBytes()
    if (fault === 'killed after a sync') this.#die(fault)
  }

  #tidy(store: Store): Promise<void> | undefined {
    const tidying = store.tidy()?.then(() => {
      this.#syncedBytes = this.#walBytes()
    })
    this.#tidying = tidying ?? Promise.resolve()
    return tidying
  }

  #die(fault: DiskFault): never {
    this.happened = fault
    this.kill()
    throw new Killed()
  }

  #fail(fault: DiskFault): never {
    this.happened = fault
    throw new Error(`EIO: ${fault}`)
  }

  #copy(): void {
    if (this.#copied) return
    this.#copied = true
    // Closing a descriptor of the file drops SQLite's locks on it: nobody else wants this file any more.
    for (const suffix of FILES) {
      if (existsSync(this.#path + suffix)) copyFileSync(this.#path + suffix, this.#next + suffix)
    }
    if (this.happened === null || !LOSING.has(this.happened)) return
    truncateSync(`${this.#next}-wal`, this.#random.from(this.#syncedBytes, this.#walBytes()))
  }

  #walBytes(): number {
    return existsSync(`${this.#path}-wal`) ? statSync(`${this.#path}-wal`).size : 0
  }
}
