import type { Endpoint } from '../../src/endpoints/endpoint.js'
import type { JsonObject } from '../../src/json.js'

/** A body, the field that is to blame (`null`: the body is right) and the message. */
export type Row = readonly [body: JsonObject, param: string | null, message?: string]

/** What `check` says of each body, as rows that can be compared with those that were expected. */
export function refusals(endpoint: Endpoint, rows: readonly Row[]): Row[] {
  return rows.map(([body]) => {
    try {
      endpoint.check(body)
      return [body, null]
    } catch (error) {
      const { code, param, message } = error as { code?: string; param?: string; message: string }
      return code === 'invalid_request' ? [body, param ?? '', message] : [body, `threw ${code}`, message]
    }
  })
}
