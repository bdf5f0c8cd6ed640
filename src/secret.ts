import { randomBytes } from 'node:crypto'

/** A fresh secret: 256 random bits, in characters that need no quotes anywhere. */
export function newSecret(): string {
  return `mgk_${randomBytes(32).toString('base64url')}`
}
