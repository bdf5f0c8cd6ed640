import type { Model } from '../config/config.js'
import { type Bytes, dataUrl, uint16, uint16le, uint24le, uint32 } from './data-url.js'

/** Pixels. */
export interface Size {
  readonly width: number
  readonly height: number
}

/**
 * Tokens that a model counts for an image: by the rule of its family and the size found in the first bytes of a PNG, JPEG, GIF or WebP data
 * URL. An image elsewhere, of another format, or whose size a decoder might read otherwise, counts as the most that the rule gives, since it can not be measured.
 * Never the base64 text.
 */
export function imageTokens(url: string, detail: unknown, model: Pick<Model, 'upstream' | 'provider'>): number {
  const data = dataUrl(url)
  return ruleOf(model)(data === null ? null : imageSize(data.bytes), typeof detail === 'string' ? detail : 'auto')
}

type Rule = (size: Size | null, detail: string) => number

/** By the provider's name for the model; first match counts. The figures are those that the providers document for each generation. */
const RULES: readonly (readonly [RegExp, Rule])[] = [
  [/claude-(opus-4-[7-9]|opus-[5-9]|sonnet-[5-9]|haiku-[5-9])/, claude(2576, 4784)],
  [/claude/, claude(1568, 1600)],
  [/gemini-[12]\b|gemini-[12]\./, geminiTiles],
  [/gemini|gemma/, geminiFlat],
  [/gpt-4o-mini/, tiles(2833, 5667)],
  [/gpt-4\.1-mini|gpt-5(\.\d)?-mini/, patches(1.62, 1536)],
  [/gpt-4\.1-nano|gpt-5(\.\d)?-nano/, patches(2.46, 1536)],
  [/o4-mini/, patches(1.72, 1536)],
  [/gpt-5\.[5-9]|gpt-[6-9]/, patches(1.2, 12_500)],
  [/gpt-5/, tiles(70, 140)],
  [/(^|\/)o[13]\b/, tiles(75, 150)],
  [/gpt-4|gpt-4o|chatgpt/, tiles(85, 170)],
]

function ruleOf(model: Pick<Model, 'upstream' | 'provider'>): Rule {
  const name = model.upstream.toLowerCase()
  for (const [pattern, rule] of RULES) if (pattern.test(name)) return rule
  if (model.provider.kind === 'anthropic') return claude(2576, 4784)
  if (model.provider.kind === 'gemini') return geminiFlat
  return open
}

/** OpenAI's tiles: fitted into 2048², the shorter side to 768, then squares of 512. Low detail costs the base alone. */
function tiles(base: number, each: number): Rule {
  return (size, detail) => {
    if (detail === 'low') return base
    if (size === null) return base + each * 8
    const fit = Math.min(1, 2048 / Math.max(size.width, size.height))
    const shrink = Math.min(1, 768 / (Math.min(size.width, size.height) * fit)) * fit
    const count = Math.ceil((size.width * shrink) / 512) * Math.ceil((size.height * shrink) / 512)
    return base + each * Math.min(8, count)
  }
}

/** OpenAI's patches of 32²: at most `most` of them, each costing `factor`. */
function patches(factor: number, most: number): Rule {
  return size => Math.ceil(factor * Math.min(most, size === null ? most : cells(size, 32)))
}

/** Patches of 28², scaled down to a longest edge and a most of tokens. */
function claude(edge: number, most: number): Rule {
  return size => {
    if (size === null) return most
    const fit = Math.min(1, edge / Math.max(size.width, size.height))
    return Math.min(most, cells({ width: size.width * fit, height: size.height * fit }, 28))
  }
}

function geminiTiles(size: Size | null): number {
  if (size === null) return 258 * 64
  return size.width <= 384 && size.height <= 384 ? 258 : 258 * Math.min(64, cells(size, 768))
}

function geminiFlat(_size: Size | null, detail: string): number {
  return detail === 'ultra_high' ? 2240 : 1120
}

/** Open models differ; most cut into patches of 28² and merge no further. */
function open(size: Size | null): number {
  return size === null ? 16_384 : Math.min(16_384, cells(size, 28))
}

function cells(size: Size, edge: number): number {
  return Math.max(1, Math.ceil(size.width / edge)) * Math.max(1, Math.ceil(size.height / edge))
}

/** No pixel takes more bytes in any of the formats; and what a file may hold besides its picture. */
const BYTES_PER_PIXEL = 16
const BESIDES = 1_048_576

/** `null`: not one of the four formats, cut off, without a size, or with far more bytes than a picture of that size has. */
export function imageSize(bytes: Bytes): Size | null {
  const head = bytes.at(0, 32)
  const size = pngSize(head) ?? webpSize(head) ?? (uint16(head, 0) === 0xffd8 ? jpegSize(bytes) : gifSize(bytes, head))
  if (size === null || size.width === 0 || size.height === 0) return null
  return bytes.length <= BESIDES + BYTES_PER_PIXEL * size.width * size.height ? size : null
}

function pngSize(head: Uint8Array): Size | null {
  if (uint32(head, 0) !== 0x89504e47 || uint32(head, 12) !== 0x49484452 || head.length < 24) return null
  return { width: uint32(head, 16), height: uint32(head, 20) }
}

/** A first frame that is larger than the screen enlarges it. */
function gifSize(bytes: Bytes, head: Uint8Array): Size | null {
  if (uint32(head, 0) !== 0x47494638 || head.length < 13) return null
  const flags = head[10] as number
  let at = 13 + (flags >= 128 ? 6 << (flags & 7) : 0)
  for (let blocks = 0; blocks < 4096; blocks++) {
    const block = bytes.at(at, 9)
    if (block.length < 9) return null
    if (block[0] === 0x2c) {
      if (!bytes.plain(at + 9)) return null
      const [right, bottom] = [uint16le(block, 1) + uint16le(block, 5), uint16le(block, 3) + uint16le(block, 7)]
      return { width: Math.max(uint16le(head, 6), right), height: Math.max(uint16le(head, 8), bottom) }
    }
    // Extensions are parts of up to 255 bytes behind their length.
    if (block[0] !== 0x21) return null
    at += 2
    for (let length = 1; length > 0 && blocks < 4096; blocks++) {
      length = bytes.at(at, 1)[0] ?? 0
      at += length + 1
    }
  }
  return null
}

function webpSize(head: Uint8Array): Size | null {
  if (uint32(head, 0) !== 0x52494646 || uint32(head, 8) !== 0x57454250 || head.length < 30) return null
  const kind = head[15]
  if (kind === 0x58) return { width: uint24le(head, 24) + 1, height: uint24le(head, 27) + 1 }
  if (kind === 0x20) return { width: uint16le(head, 26) & 0x3fff, height: uint16le(head, 28) & 0x3fff }
  if (kind !== 0x4c) return null
  const bits = uint16le(head, 21) + uint16le(head, 23) * 65536
  return { width: (bits % 16384) + 1, height: (Math.floor(bits / 16384) % 16384) + 1 }
}

/** Segments before the frame header are jumped over, however large (photographs carry previews). */
function jpegSize(bytes: Bytes): Size | null {
  let at = 2
  for (let segments = 0; segments < 256; segments++) {
    const head = bytes.at(at, 9)
    if (head.length < 9 || head[0] !== 0xff) return null
    const marker = head[1] as number
    if (marker === 0xff) {
      at++
      continue
    }
    const frame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (frame) return bytes.plain(at + 9) ? { width: uint16(head, 7), height: uint16(head, 5) } : null
    // Decoders disagree about all others: some have no length.
    if (marker < 0xe0 && marker !== 0xc4 && marker !== 0xcc && marker !== 0xdb && marker !== 0xdd) return null
    at += 2 + uint16(head, 2)
  }
  return null
}
