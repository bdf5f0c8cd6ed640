import type { Model } from '../config/config.js'
import { type Bytes, base64Bytes, dataUrl, uint16, uint32, uint32le } from './data-url.js'

/** The dearest of the providers that say so; others count a third of it. */
const TOKENS_PER_SECOND = 32
/** Bytes per second of the thinnest speech that is sent: Opus at 16 kbit/s. */
const THINNEST = 2000

/** Tokens of a part `input_audio`: its length, read from the header of WAV and MP3, else the longest that its size allows. */
export function audioTokens(base64: string): number {
  return Math.ceil(audioSeconds(base64Bytes(base64)) * TOKENS_PER_SECOND)
}

function audioSeconds(bytes: Bytes): number {
  const head = bytes.at(0, 44)
  if (uint32(head, 0) === 0x52494646 && uint32(head, 8) === 0x57415645) {
    const perSecond = uint32le(head, 28)
    return bytes.length / (perSecond > 0 ? perSecond : THINNEST)
  }
  const tag =
    uint32(head, 0) >>> 8 === 0x494433 ? 10 + (((head[6] ?? 0) << 21) | ((head[7] ?? 0) << 14) | ((head[8] ?? 0) << 7) | (head[9] ?? 0)) : 0
  const frame = bytes.at(tag, 4)
  return Math.max(0, bytes.length - tag) / (mp3Rate(frame) ?? THINNEST)
}

/** Kilobits per second of layer III, MPEG 1 and MPEG 2. */
const MPEG1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const MPEG2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]

function mp3Rate(frame: Uint8Array): number | null {
  const sync = uint16(frame, 0)
  if ((sync & 0xffe6) !== 0xffe2) return null
  const rates = (sync & 0x18) === 0x18 ? MPEG1 : MPEG2
  const kilobits = rates[(frame[2] ?? 0) >> 4] ?? 0
  return kilobits > 0 ? (kilobits * 1000) / 8 : null
}

/** Providers document 1,500 to 3,000 a page, and take at most a hundred pages. */
const TOKENS_PER_PAGE = 3000
const PAGES_MOST = 100
/** A page of plain text takes at least so many bytes, compressed. */
const BYTES_PER_PAGE = 4000

/** The text that a part `file` is, or null where it is none. */
export function fileText(data: string): string | null {
  const file = dataUrl(data)
  return file !== null && isText(file.type) ? Buffer.from(file.bytes.at(0, file.bytes.length)).toString('utf8') : null
}

/**
 * Tokens of a part `file` besides its text: anything else counts as pages. A file that the provider already has (`file_id`) may be any: the most
 * that is taken counts, or the model's context where it is smaller.
 */
export function fileTokens(data: string | null, model: Pick<Model, 'context'>): number {
  const file = data === null ? null : dataUrl(data)
  if (file !== null && isText(file.type)) return 0
  const bytes = file?.bytes.length ?? (data === null ? Number.POSITIVE_INFINITY : base64Bytes(data).length)
  const pages = Math.min(PAGES_MOST, Math.max(1, Math.ceil(bytes / BYTES_PER_PAGE)))
  return Math.min(pages * TOKENS_PER_PAGE, model.context ?? Number.POSITIVE_INFINITY)
}

function isText(type: string): boolean {
  return /^text\/|^application\/(json|xml|yaml|x-yaml)/.test(type)
}
