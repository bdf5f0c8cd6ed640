/** Letters in a piece at most: a longer word is broken, so that text without spaces comes in pieces too. */
const LETTERS_MAX = 12

/** The sandbox's tokens: a word with the white space that follows it. Joined again they are the text. */
export function pieces(text: string): string[] {
  const found: string[] = []
  for (let start = 0, end: number; start < text.length; start = end) {
    end = pieceEnd(text, start)
    found.push(text.slice(start, end))
  }
  return found
}

/** Exactly so many pieces: repeated, parted by a space, or cut. */
export function repeated(found: readonly string[], length: number): string[] {
  if (found.length >= length) return found.slice(0, length)
  const source = found.length === 0 ? ['token'] : found
  const last = source.length - 1
  return Array.from({ length }, (_, i) => {
    const piece = source[i % source.length] as string
    return i % source.length === last && i < length - 1 && !/\s$/.test(piece) ? `${piece} ` : piece
  })
}

/**
 * What the sandbox bills for a text that it reads: its pieces, and never more than a quarter of its bytes, which an estimate made from
 * bytes does not fall below. Allocates nothing.
 */
export function count(text: string): number {
  let n = 0
  for (let start = 0; start < text.length; start = pieceEnd(text, start)) n++
  return Math.min(n, Math.ceil(Buffer.byteLength(text) / 4))
}

function pieceEnd(text: string, start: number): number {
  const most = Math.min(text.length, start + LETTERS_MAX)
  let at = start
  while (at < most && !isSpace(text.charCodeAt(at))) at++
  // Never between the halves of a surrogate pair.
  if (at === most && at < text.length && (text.charCodeAt(at) & 0xfc00) === 0xdc00) at--
  while (at < text.length && isSpace(text.charCodeAt(at))) at++
  return at
}

function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d)
}
