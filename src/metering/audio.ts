import { base64Bytes, dataUrl, uint16, uint16le, uint32, uint32le } from './data-url.js'

/** The dearest of the providers that say so; others count a third of it. */
const TOKENS_PER_SECOND = 32
/** The most that a provider takes in one prompt: nine and a half hours (Gemini). */
const SECONDS_MOST = 34_200
/** Bytes per second of the thinnest speech that is sent: Opus at 16 kbit/s. */
const THINNEST = 2000
/** And of the fattest: 48 kHz, two channels of 32 bits. A header that says more is believed so far. */
const FATTEST = 384_000

/**
 * Tokens of a part `input_audio`, base64 or a data URL: its length, by the frames of an MP3 and the header of a WAV file, else the longest that its size
 * allows. What a header says is believed only where a decoder would play the file by it: what is no sound is taken for the thinnest speech. `format`: what the provider is
 * told that it is. Audio elsewhere counts as the most that is taken.
 */
export function audioTokens(audio: string, format?: unknown): number {
  return Math.ceil(Math.min(SECONDS_MOST, audioSeconds(audio, format)) * TOKENS_PER_SECOND)
}

function audioSeconds(audio: string, format: unknown): number {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(audio)) return SECONDS_MOST
  const bytes = dataUrl(audio)?.bytes ?? base64Bytes(audio)
  const rate = typeof format !== 'string' || /wav/i.test(format) ? wavRate(bytes.at(0, 4096)) : null
  if (rate !== null) return bytes.length / rate
  const decoded = bytes.at(0, bytes.length)
  // Of text that is not all base64, a part may not have been read.
  return mp3Seconds(decoded) + (bytes.length - decoded.length) / THINNEST
}

/** Formats of a WAV file whose bytes are samples: integers, floats, and two of eight bits. */
const PLAIN: ReadonlySet<number> = new Set([1, 3, 6, 7])

/**
 * Bytes per second of a WAV file of plain samples; null for any other. The rate that the header states itself is of no account to a decoder, and may be
 * anything: it is what the samples come to.
 */
function wavRate(head: Uint8Array): number | null {
  if (uint32(head, 0) !== 0x52494646 || uint32(head, 8) !== 0x57415645) return null
  let at = 12
  while (at + 24 <= head.length && uint32(head, at) !== 0x666d7420) {
    const size = uint32le(head, at + 4)
    at += 8 + size + (size % 2)
  }
  if (at + 24 > head.length) return null
  const named = uint16le(head, at + 8)
  if (!PLAIN.has(named === 0xfffe ? uint16le(head, at + 32) : named)) return null
  const frame = Math.min(uint16le(head, at + 20), uint16le(head, at + 10) * Math.ceil(uint16le(head, at + 22) / 8))
  const rate = Math.min(FATTEST, uint32le(head, at + 12) * frame)
  return rate > 0 ? rate : null
}

/** Kilobits per second of layer III, MPEG 1 and MPEG 2. */
const MPEG1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0]
const MPEG2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0]
const SAMPLE_RATES = [44_100, 48_000, 32_000]

/** Frame by frame, since each may be of another rate: the first one says nothing of the others. */
function mp3Seconds(bytes: Uint8Array): number {
  let seconds = 0
  let loose = 0
  let at = tagLength(bytes)
  while (at < bytes.length) {
    const length = frameLength(bytes, at)
    if (length > 0 && (at + length >= bytes.length || isNext(bytes, at, at + length))) {
      seconds += frameSamples(bytes, at) / sampleRate(bytes, at)
      at += length
      continue
    }
    const from = at++
    while (at < bytes.length && !(bytes[at] === 0xff && ((bytes[at + 1] as number) & 0xe6) === 0xe2)) at++
    loose += at - from
  }
  return seconds + loose / THINNEST
}

/** Of an ID3v2 tag, which decoders jump over. One that is longer than the file, or whose length is none, is no tag. */
function tagLength(bytes: Uint8Array): number {
  if (uint32(bytes, 0) >>> 8 !== 0x494433) return 0
  const [a = 0, b = 0, c = 0, d = 0] = bytes.subarray(6, 10)
  const length = 10 + ((a << 21) | (b << 14) | (c << 7) | d)
  return (a | b | c | d) < 128 && length <= bytes.length ? length : 0
}

/** 0: there is no frame. */
function frameLength(bytes: Uint8Array, at: number): number {
  if ((uint16(bytes, at) & 0xffe6) !== 0xffe2 || (versionAt(bytes, at) & 3) === 1) return 0
  const third = bytes[at + 2] ?? 0
  const kilobits = (versionAt(bytes, at) === 3 ? MPEG1 : MPEG2)[third >> 4] ?? 0
  const rate = sampleRate(bytes, at)
  if (kilobits === 0 || Number.isNaN(rate)) return 0
  return Math.floor((frameSamples(bytes, at) * kilobits * 125) / rate) + ((third >> 1) & 1)
}

/** A frame of the same version and rate of samples. */
function isNext(bytes: Uint8Array, at: number, next: number): boolean {
  const same = ((bytes[at + 1] ?? 0) ^ (bytes[next + 1] ?? 0)) & 0xfe
  return same === 0 && (((bytes[at + 2] ?? 0) ^ (bytes[next + 2] ?? 0)) & 0x0c) === 0 && frameLength(bytes, next) > 0
}

/** 3: MPEG 1; 2: MPEG 2; 0: MPEG 2.5. */
function versionAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at + 1] ?? 0) >> 3) & 3
}

function frameSamples(bytes: Uint8Array, at: number): number {
  return versionAt(bytes, at) === 3 ? 1152 : 576
}

function sampleRate(bytes: Uint8Array, at: number): number {
  const rate = SAMPLE_RATES[((bytes[at + 2] ?? 0) >> 2) & 3] ?? Number.NaN
  const version = versionAt(bytes, at)
  return version === 3 ? rate : version === 2 ? rate / 2 : rate / 4
}
