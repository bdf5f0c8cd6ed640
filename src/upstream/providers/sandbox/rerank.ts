import { isObject } from '../../../json.js'
import { count } from './pieces.js'
import { words } from './request.js'
import type { Said, Spoken } from './spoken.js'
import { usage } from './usage.js'

/** Documents, best first: the score is the share of the query's words that a document has, 0 to 1. Ties keep the request's order. */
export function rerank({ body, call, options }: Spoken): Said {
  const query = typeof body.query === 'string' ? body.query : ''
  const documents = (Array.isArray(body.documents) ? body.documents : []).map(document => {
    if (typeof document === 'string') return document
    return isObject(document) && typeof document.text === 'string' ? document.text : ''
  })
  const wanted = words(query)
  const results = documents
    .map((text, index) => ({
      index,
      relevance_score: share(wanted, words(text)),
      ...(body.return_documents === true ? { document: { text } } : {}),
    }))
    .sort((a, b) => b.relevance_score - a.relevance_score)
  const top = typeof body.top_n === 'number' && body.top_n >= 1 ? Math.floor(body.top_n) : results.length
  const used = usage(
    documents.reduce((sum, text) => sum + count(text), count(query)),
    null,
    options,
  )
  const answer = {
    id: `rerank-${call.id}`,
    object: 'list',
    model: body.model ?? call.model.upstream,
    results: results.slice(0, top),
    ...(used === undefined ? {} : { usage: used }),
  }
  return { kind: 'json', body: answer, tokens: 0 }
}

function share(wanted: ReadonlySet<string>, found: ReadonlySet<string>): number {
  if (wanted.size === 0) return 0
  let shared = 0
  for (const word of wanted) if (found.has(word)) shared++
  return shared / wanted.size
}
