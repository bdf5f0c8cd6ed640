import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { said } from './failure.js'

/** The most that is read of a refusal, and that it may be unpacked. Bytes. */
export const REFUSAL_BYTES_MAX = 64 * 1024

const UNPACK: ReadonlyMap<unknown, typeof gunzipSync> = new Map([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
])

/**
 * What a refusal says, as parsed JSON, or as text where it is none; `undefined` where it cannot be read. One that was compressed, though nobody
 * asked for that (a cache or a page of a proxy), is unpacked: its status counts in any case, and its words should.
 */
export function refusalBody(bytes: Buffer, encoding: unknown): unknown {
  try {
    const plain = isPlain(encoding) ? bytes : UNPACK.get(encoding)?.(bytes, { maxOutputLength: REFUSAL_BYTES_MAX })
    return plain === undefined ? undefined : said(plain)
  } catch {
    return undefined
  }
}

/** The bytes are as they were written. `encoding`: the `content-encoding` of an answer. */
export function isPlain(encoding: unknown): boolean {
  return encoding === undefined || encoding === 'identity' || encoding === ''
}
