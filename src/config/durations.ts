import type { Ms } from './config.js'

const UNITS: ReadonlyMap<string, number> = new Map([
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
])

/** The longest that a timer of Node can wait: with one millisecond more it fires at once. */
export const LONGEST_TIMER: Ms = 2 ** 31 - 1

/** Milliseconds of `250ms`, `5s`, `1.5s`, `10m`, `1h30m`, `400d`, rounded to whole ones. `null` for anything else. */
export function parseDuration(text: string): Ms | null {
  if (!/^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$/.test(text)) return null
  let sum = 0
  for (const [, amount, unit] of text.matchAll(/([0-9.]+)(ms|s|m|h|d)/g)) sum += Number(amount) * (UNITS.get(unit as string) as number)
  const whole = Math.round(sum)
  return Number.isSafeInteger(whole) ? whole : null
}

/** The shortest text that `parseDuration` reads as the same: 90000 is `1m30s`. */
export function formatDuration(duration: Ms): string {
  let rest = duration
  let text = ''
  for (const [unit, size] of UNITS) {
    const amount = Math.floor(rest / size)
    if (amount > 0) text += `${amount}${unit}`
    rest -= amount * size
  }
  return text === '' ? '0s' : text
}

const SIZES: ReadonlyMap<string, number> = new Map([
  ['GiB', 1024 ** 3],
  ['GB', 1000 ** 3],
  ['MiB', 1024 ** 2],
  ['MB', 1000 ** 2],
  ['KiB', 1024],
  ['KB', 1000],
  ['kB', 1000],
  ['B', 1],
])

/** Bytes of `32MiB` (powers of 1024), `1MB` (powers of 1000) or `4096`. `null` for anything else. */
export function parseSize(text: string): number | null {
  const [, amount, unit = 'B'] = /^([0-9]+)([A-Za-z]+)?$/.exec(text) ?? []
  const size = SIZES.get(unit)
  if (amount === undefined || size === undefined) return null
  const bytes = Number(amount) * size
  return Number.isSafeInteger(bytes) ? bytes : null
}

/** The shortest text that `parseSize` reads as the same. */
export function formatSize(bytes: number): string {
  for (const [unit, size] of SIZES) if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`
  return `${bytes}B`
}
