import type { Model } from '../config/config.js'
import { audioTokens } from './audio.js'
import { base64Bytes, type DataUrl, dataUrl } from './data-url.js'
import { imageTokens } from './image.js'

/** What of a model counts for the media that it is sent. */
export type Viewer = Pick<Model, 'upstream' | 'provider' | 'context'>

type Kind = 'image' | 'audio' | 'video' | 'file' | 'text'

/**
 * Tokens of what an address, or a data URL, leads to, besides text: an image, unless it says that it is anything else. Providers take sound, films and documents
 * under the name of an image, too. `named`: how a client calls it that calls it something else.
 */
export function addressTokens(url: string, detail: unknown, model: Viewer, named = ''): number {
  const data = dataUrl(url)
  switch (data === null ? kindAt(url, named) : kindOf(data)) {
    case 'text':
      return 0
    case 'image':
      return imageTokens(url, detail, model)
    case 'audio':
      return within(audioTokens(url, data?.type), model)
    case 'video':
      return videoTokens(data, model)
    case 'file':
      return fileTokens(data === null ? null : url, model)
  }
}

/** The text that a data URL is; null where it is none. What is not base64 is read as it stands. */
export function addressText(url: string): string | null {
  const data = dataUrl(url)
  if (data === null) return /^data:/i.test(url) ? url : null
  return kindOf(data) === 'text' ? decoded(data) : null
}

/** Providers document 1,500 to 3,000 a page, and take at most a hundred pages. */
const TOKENS_PER_PAGE = 3000
const PAGES_MOST = 100
/** A page of plain text takes at least so many bytes, compressed. */
const BYTES_PER_PAGE = 4000

/** The text that a part `file` is, or null where it is none. */
export function fileText(data: string): string | null {
  const file = fileOf(data)
  if (file === null) return isAddress(data) ? null : data
  return kindOf(file) === 'text' ? decoded(file) : null
}

/**
 * Tokens of a part `file` besides its text: images, sound and films as what they are, anything else as pages. A file that the provider already has (`file_id`), or
 * gets elsewhere, may be any: the most that is taken counts, or the model's context where it is smaller.
 */
export function fileTokens(data: string | null, model: Viewer): number {
  const file = data === null ? null : fileOf(data)
  if (data === null || file === null) return data === null || isAddress(data) ? within(PAGES_MOST * TOKENS_PER_PAGE, model) : 0
  switch (kindOf(file)) {
    case 'text':
      return 0
    case 'image':
      return imageTokens(data, undefined, model)
    case 'audio':
      return within(audioTokens(data, file.type), model)
    case 'video':
      return videoTokens(file, model)
    case 'file':
      return within(Math.min(PAGES_MOST, Math.max(1, Math.ceil(file.bytes.length / BYTES_PER_PAGE))) * TOKENS_PER_PAGE, model)
  }
}

/** Nothing that is longer than the model's context is ever billed. */
export function within(tokens: number, { context }: Pick<Model, 'context'>): number {
  return Math.min(tokens, context ?? Number.POSITIVE_INFINITY)
}

/** A frame and its sound (Gemini); and the bytes per second of the thinnest film that is sent. */
const VIDEO_TOKENS_PER_SECOND = 300
const VIDEO_THINNEST = 10_000
/** The longest context that films are sent to. */
const VIDEO_MOST = 1_048_576

function videoTokens(video: DataUrl | null, model: Viewer): number {
  const seconds = video === null ? Number.POSITIVE_INFINITY : video.bytes.length / VIDEO_THINNEST
  return within(Math.min(VIDEO_MOST, Math.ceil(seconds * VIDEO_TOKENS_PER_SECOND)), model)
}

/** By the type that it says it is; of a type that says nothing, by its first bytes. */
function kindOf({ type, bytes }: DataUrl): Kind {
  const [, said] = /^(image|audio|video|text)\//.exec(type) ?? []
  if (said !== undefined) return said as Kind
  if (type === 'application/pdf') return 'file'
  if (/^application\/(json|xml|yaml|x-yaml)/.test(type)) return 'text'
  const head = bytes.at(0, 512)
  const written = head.length > 0 && head.every(byte => byte >= 9) && Buffer.from(head.subarray(0, 4)).toString('latin1') !== '%PDF'
  return written ? 'text' : 'file'
}

/** Of an address only the names are known. */
function kindAt(url: string, named: string): Kind {
  const [said] = /video|audio|file|document/.exec(named) ?? []
  if (said !== undefined) return said === 'document' ? 'file' : (said as Kind)
  const path = url.split(/[?#]/, 1)[0] ?? ''
  if (/\.(pdf|txt|csv|md|html?|json|xml|docx?|pptx?|xlsx?)$/i.test(path)) return 'file'
  if (/\.(mp4|mov|mpe?g|webm|avi|mkv|flv|wmv|3gpp?)$/i.test(path) || /^https?:\/\/(\w+\.)?youtu(\.be|be\.com)\//i.test(url)) return 'video'
  return /\.(mp3|wav|ogg|opus|flac|aac|aiff|m4a)$/i.test(path) ? 'audio' : 'image'
}

/** Data of a file: a data URL, or base64 alone; null for anything else. */
function fileOf(data: string): DataUrl | null {
  return dataUrl(data) ?? (/^[\w+/=\s-]+$/.test(data.slice(0, 256)) ? { type: '', bytes: base64Bytes(data) } : null)
}

/** Does it lead elsewhere? */
export function isAddress(data: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(data)
}

function decoded({ bytes }: DataUrl): string {
  return Buffer.from(bytes.at(0, bytes.length)).toString('utf8')
}
