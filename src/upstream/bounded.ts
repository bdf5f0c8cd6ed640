import type { Json, JsonObject } from '../json.js'

/** Levels of arrays and objects, values, and code units of a text. */
const LEVELS_MAX = 8
const VALUES_MAX = 1_000
const TEXT_MAX = 64 * 1024

/**
 * Parsed JSON of a provider that is about its answer (a failure, a usage), without what lies too deep, or comes after too much. JSON.parse has no
 * bound, and whatever goes down level by level into what it gives, JSON.stringify and messages between threads too, overflows the stack.
 */
export function bounded(told: unknown): Json | undefined {
  let left = VALUES_MAX
  const part = (value: Json, levels: number): Json => {
    if (typeof value === 'string') return value.slice(0, TEXT_MAX)
    if (typeof value !== 'object' || value === null) return value
    if (levels === 0) return '…'
    const parts: [name: string, Json][] = []
    for (const name in value) {
      if (left-- <= 0) break
      parts.push([name, part((value as JsonObject)[name] as Json, levels - 1)])
    }
    return Array.isArray(value) ? parts.map(([, each]) => each) : Object.fromEntries(parts)
  }
  return told === undefined ? undefined : part(told as Json, LEVELS_MAX)
}
