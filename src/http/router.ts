import type { Endpoint } from '../endpoints/endpoint.js'
import type { Page } from '../endpoints/page.js'
import { GatewayError } from '../errors.js'

export type Route =
  | { readonly kind: 'endpoint'; readonly endpoint: Endpoint }
  | { readonly kind: 'page'; readonly page: Page; readonly rest: string }

/** What clients of other wire formats try, and what they should call. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ['/v1/responses', 'This gateway speaks chat completions: POST /v1/chat/completions.'],
  ['/v1/messages', 'This gateway speaks chat completions: POST /v1/chat/completions.'],
])

/** Finds who answers a path. */
export class Router {
  readonly #endpoints = new Map<string, Endpoint>()
  readonly #pages = new Map<string, Page>()
  readonly #below: readonly Page[]

  constructor(endpoints: readonly Endpoint[], pages: readonly Page[]) {
    for (const endpoint of endpoints) for (const path of endpoint.paths) this.#endpoints.set(path, endpoint)
    for (const page of pages) this.#pages.set(page.path, page)
    this.#below = pages.filter(page => page.path.endsWith('/'))
  }

  /** `path` is without its query. Throws `not_found` and `method_not_allowed`. */
  route(method: string, path: string): Route {
    const endpoint = this.#endpoints.get(path)
    if (endpoint !== undefined) {
      if (method !== 'POST') throw wrongMethod('POST')
      return { kind: 'endpoint', endpoint }
    }
    const page = this.#pages.get(path) ?? this.#below.find(below => path.startsWith(below.path) && path.length > below.path.length)
    if (page === undefined)
      throw new GatewayError('not_found', INSTEAD.get(path) ?? 'There is nothing at this path. The API lies under /v1.')
    if (method !== 'GET' && method !== 'HEAD') throw wrongMethod('GET, HEAD')
    return { kind: 'page', page, rest: decoded(path.slice(page.path.length)) }
  }
}

function wrongMethod(allow: string): GatewayError {
  return new GatewayError('method_not_allowed', `This path takes ${allow.replace(', ', ' and ')} only.`, { headers: { allow } })
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new GatewayError('not_found', 'This path is not a valid URL.')
  }
}
