import { randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Makes ids that sort by the time at which they were made. */
export type NewId = (at: number) => string

/**
 * ULIDs (https://github.com/ulid/spec): 48 bits of milliseconds, 80 random bits, 26 characters of Crockford's base 32.
 * Within one millisecond, and while the clock steps back, each id is the one before plus one: ids of one maker never repeat
 * and never sort backwards.
 */
export function ulids(random: (bytes: Uint8Array) => void = pooled()): NewId {
  const digits = new Uint8Array(26)
  const entropy = new Uint8Array(16)
  let last = -1
  return at => {
    if (at > last) {
      last = at
      writeTime(digits, at)
      random(entropy)
      for (let i = 0; i < 16; i++) digits[10 + i] = (entropy[i] as number) & 31
    } else {
      increment(digits)
    }
    let id = ''
    for (let i = 0; i < 26; i++) id += ALPHABET[digits[i] as number]
    return id
  }
}

/** Random bytes from a pool: a call to the system's source costs a microsecond and more, whatever its size. At most 4096 at once. */
export function pooled(): (bytes: Uint8Array) => void {
  const pool = new Uint8Array(4096)
  let used = pool.length
  return bytes => {
    if (used + bytes.length > pool.length) {
      randomFillSync(pool)
      used = 0
    }
    bytes.set(pool.subarray(used, used + bytes.length))
    used += bytes.length
  }
}

const REQUEST_ID = /^req_([0-7][0-9A-HJKMNP-TV-Z]{9})[0-9A-HJKMNP-TV-Z]{16}$/
/** The latest time that an id can begin with. */
export const TIME_MAX = 2 ** 48 - 1

/** The time that a request id begins with; `null`: it is not of our making. */
export function timeOf(id: string): number | null {
  const digits = REQUEST_ID.exec(id)?.[1]
  if (digits === undefined) return null
  let time = 0
  for (let i = 0; i < digits.length; i++) time = time * 32 + ALPHABET.indexOf(digits[i] as string)
  return time
}

/** What sorts before all request ids of this time and later ones, and after those of earlier ones. */
export function prefixOf(time: number): string {
  const digits = new Uint8Array(10)
  writeTime(digits, Math.min(Math.max(Math.ceil(time), 0), TIME_MAX))
  let prefix = 'req_'
  for (const digit of digits) prefix += ALPHABET[digit]
  return prefix
}

function writeTime(digits: Uint8Array, at: number): void {
  let rest = at
  for (let i = 9; i >= 0; i--) {
    digits[i] = rest % 32
    rest = Math.floor(rest / 32)
  }
}

function increment(digits: Uint8Array): void {
  for (let i = 25; i >= 0; i--) {
    if ((digits[i] as number) < 31) {
      digits[i] = (digits[i] as number) + 1
      return
    }
    digits[i] = 0
  }
}

/** The gateway's own request id: `req_` and a ULID. Primary key of the usage record. */
export function requestIds(ulid: NewId): NewId {
  return at => `req_${ulid(at)}`
}
