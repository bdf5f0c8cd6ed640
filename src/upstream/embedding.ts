import { GatewayError } from '../errors.js'
import type { Call } from './providers/provider.js'

/** The texts of an embeddings request, for providers that take nothing else. Throws `invalid_request` on token ids. */
export function inputTexts({ body: { input } }: Call): string[] {
  if (typeof input === 'string') return [input]
  if (Array.isArray(input) && input.every(item => typeof item === 'string')) return input as string[]
  throw new GatewayError('invalid_request', 'input must be a string or an array of strings: this model takes no token ids.', {
    param: 'input',
  })
}

/**
 * What the texts are for: the request's `input_type`, else that of the model's options. `words` translates `query` and `document` (also
 * spelled `search_query` and `search_document`); other values pass as they are.
 */
export function inputType({ body, model }: Call, words: { readonly query: string; readonly document: string }): string | undefined {
  const given = typeof body.input_type === 'string' ? body.input_type : model.options.input_type
  if (given === 'query' || given === 'search_query') return words.query
  if (given === 'document' || given === 'search_document') return words.document
  return typeof given === 'string' ? given : undefined
}

/** The setting of a model for {@link inputType}. */
export const inputTypeOption = {
  type: 'object',
  additionalProperties: false,
  properties: {
    input_type: {
      type: 'string',
      description: 'What embedded texts are for where a request does not say: query, document, or a word of the provider.',
    },
  },
} as const
