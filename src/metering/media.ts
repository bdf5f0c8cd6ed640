import type { Model } from '../config/config.js'
import { base64Bytes, dataUrl } from './data-url.js'

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
