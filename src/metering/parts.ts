import { isObject, type Json, type JsonObject } from '../json.js'
import { audioTokens } from './audio.js'
import { dataUrl } from './data-url.js'
import { addressText, addressTokens, fileText, fileTokens, isAddress, type Viewer, within } from './media.js'
import type { Texts } from './text.js'

/** Adds the text of a part of a message's content. What is not known of it is text, too. */
export function addPart(part: JsonObject, texts: Texts): void {
  const known = KNOWN.has(part.type)
  for (const name in part) {
    const value = part[name]
    if (name === 'type' && known) continue
    if (!known || name !== part.type) addUnknown(name, value, texts)
    else if (name === 'text' || name === 'refusal') addText(value, texts)
    else if (name === 'image_url') addText(addressText(addressOf(value)), texts)
    else if (name === 'file' && isObject(value)) {
      addText(value.filename, texts)
      if (typeof value.file_data === 'string') addText(fileText(value.file_data), texts)
    }
  }
}

/** What a part is besides its text. */
export function partTokens(part: JsonObject, model: Viewer): number {
  if (!KNOWN.has(part.type)) return unknownTokens(part, model, mediumOf(String(part.type), ''))
  let tokens = 0
  for (const name in part) {
    const value = part[name]
    if (name !== part.type) tokens += unknownTokens(value, model)
    else if (name === 'image_url') tokens += addressTokens(addressOf(value), isObject(value) ? value.detail : undefined, model)
    else if (name === 'input_audio' && isObject(value)) {
      tokens += typeof value.data === 'string' ? within(audioTokens(value.data, value.format), model) : 0
    } else if (name === 'file' && isObject(value)) {
      const given = typeof value.file_data === 'string' && typeof value.file_id !== 'string'
      tokens += fileTokens(given ? (value.file_data as string) : null, model)
    }
  }
  return tokens
}

/** The kinds of part that the format has, each under its own name. */
const KNOWN: ReadonlySet<unknown> = new Set(['text', 'refusal', 'image_url', 'input_audio', 'file'])

/** Adds what is not known here as the text of its JSON, but for data URLs, which are what they hold. */
export function addUnknown(name: string, value: Json | undefined, texts: Texts): void {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return
  const urls: string[] = []
  const json = JSON.stringify(value, (_name, inner: unknown) => {
    if (!isData(inner)) return inner
    urls.push(inner)
    return ''
  })
  texts.add(`${name}:${json}`)
  for (const url of urls) addText(addressText(url), texts)
}

/**
 * Tokens of the data URLs in what is not known here, besides their text. `named`: where addresses are media, too, what the names that lead there call them (`video_url`);
 * null: they are words.
 */
export function unknownTokens(value: Json | undefined, model: Viewer, named: string | null = null): number {
  if (typeof value === 'string') {
    return isData(value) || (named && isAddress(value)) ? addressTokens(value, undefined, model, named ?? '') : 0
  }
  if (typeof value !== 'object' || value === null) return 0
  let tokens = 0
  for (const name in value) {
    tokens += unknownTokens((value as JsonObject)[name], model, named === null ? null : mediumOf(name, named))
  }
  return tokens
}

const MEDIA = /video|audio|file|document|image|media|url/
const GENERAL = /image|media|url/

/** The outermost name that says what it is; each is looked at once. */
function mediumOf(name: string, outer: string): string {
  return outer === '' || GENERAL.test(outer) ? (MEDIA.exec(name)?.[0] ?? outer) : outer
}

function isData(value: unknown): value is string {
  return typeof value === 'string' && dataUrl(value) !== null
}

/** Some servers take the address itself. */
function addressOf(image: Json | undefined): string {
  const url = isObject(image) ? image.url : image
  return typeof url === 'string' ? url : ''
}

function addText(value: Json | undefined, texts: Texts): void {
  if (typeof value === 'string') texts.add(value)
}
