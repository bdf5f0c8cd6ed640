/** Bytes behind base64 text, read piece by piece: nothing is decoded but what is asked for. */
export interface Bytes {
  /** How many there are. */
  readonly length: number
  /** Up to `count` bytes from `offset`; fewer at the end. */
  at(offset: number, count: number): Uint8Array
  /** Is what stands before that byte all base64? Where it is not, decoders leave it out, and the offsets behind it are others. */
  plain(before: number): boolean
}

export interface DataUrl {
  /** Lower case, without parameters: `image/png`. */
  readonly type: string
  readonly bytes: Bytes
}

/** `data:<type>;base64,<data>`; `null` for any other address. */
export function dataUrl(url: string): DataUrl | null {
  if (url.slice(0, 5).toLowerCase() !== 'data:') return null
  const comma = url.indexOf(',')
  // A header longer than that is none.
  if (comma < 0 || comma > 256) return null
  const header = url.slice(5, comma).toLowerCase()
  if (!/;\s*base64\s*(;|$)/.test(header)) return null
  return { type: header.slice(0, header.indexOf(';')).trim(), bytes: base64Bytes(url, comma + 1) }
}

/** Base64 text from `start` on, without line breaks (clients send none). */
export function base64Bytes(text: string, start = 0): Bytes {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const length = Math.max(0, Math.floor(((text.length - padding - start) * 3) / 4))
  return {
    length,
    at(offset, count) {
      const group = Math.floor(offset / 3)
      const skip = offset - group * 3
      const piece = text.slice(start + group * 4, start + (group + Math.ceil((skip + count) / 3)) * 4)
      return Buffer.from(piece, 'base64').subarray(skip, skip + count)
    },
    plain: before => /^[A-Za-z0-9+/]*$/.test(text.slice(start, start + Math.ceil((before * 4) / 3))),
  }
}

const byte = (bytes: Uint8Array, at: number): number => bytes[at] ?? 0

export const uint16 = (bytes: Uint8Array, at: number): number => byte(bytes, at) * 256 + byte(bytes, at + 1)
export const uint32 = (bytes: Uint8Array, at: number): number => uint16(bytes, at) * 65536 + uint16(bytes, at + 2)
export const uint16le = (bytes: Uint8Array, at: number): number => byte(bytes, at) + byte(bytes, at + 1) * 256
export const uint24le = (bytes: Uint8Array, at: number): number => uint16le(bytes, at) + byte(bytes, at + 2) * 65536
export const uint32le = (bytes: Uint8Array, at: number): number => uint16le(bytes, at) + uint16le(bytes, at + 2) * 65536
