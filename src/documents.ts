import { isObject, type Json } from './json.js'

/** The texts of a checked rerank request's `documents`: strings or `{"text": string}`, in the order of the request. */
export function documentTexts(documents: Json | undefined): string[] {
  if (!Array.isArray(documents)) return []
  return documents.map((document: Json) => (isObject(document) ? String(document.text) : String(document)))
}
