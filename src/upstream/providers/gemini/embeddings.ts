import { isObject, type Json, type JsonObject } from '../../../json.js'
import { counts, noAnswer, reported } from '../../chat/answer.js'
import { unreadable } from '../../chat/conversation.js'
import { numberOf, present } from '../../chat/parameters.js'
import { googleFailure } from '../../google-failure.js'
import type { Call } from '../provider.js'
import { isError } from './answer.js'

/** An embeddings request as a `batchEmbedContents` request: one entry per text. Inputs made of token ids are refused, the tokens being another model's. */
export function embeddingsRequest(call: Call): JsonObject {
  const { upstream } = call.model
  const model = upstream.includes('/') ? upstream : `models/${upstream}`
  const outputDimensionality = numberOf(call.body.dimensions)
  return {
    requests: textsOf(call.body.input).map(text => present({ model, content: { parts: [{ text }] }, outputDimensionality })),
  }
}

/** Vectors are lists of numbers, whatever `encoding_format` was asked for. Without `usage` where the provider reports none. */
export function embeddingsOf(body: unknown, call: Call): JsonObject {
  if (isError(body)) throw reported(googleFailure(200, body), call)
  const embeddings = isObject(body) && Array.isArray(body.embeddings) ? (body.embeddings as readonly Json[]) : []
  if (!isObject(body) || embeddings.length !== textsOf(call.body.input).length)
    throw noAnswer('The provider answered without an embedding for each input.')
  const usage = isObject(body.usageMetadata) ? counts(body.usageMetadata, ['promptTokenCount']) : null
  return present({
    object: 'list',
    data: embeddings.map((embedding, index) => ({ object: 'embedding', index, embedding: valuesOf(embedding) })),
    model: call.model.id,
    usage:
      usage === null || usage.promptTokenCount === 0
        ? undefined
        : { prompt_tokens: usage.promptTokenCount, total_tokens: usage.promptTokenCount },
  })
}

function textsOf(input: Json | undefined): readonly string[] {
  if (typeof input === 'string') return [input]
  const texts = Array.isArray(input) ? (input as readonly Json[]) : []
  return texts.map((text, index) => {
    if (typeof text !== 'string') throw unreadable(`input[${index}]`, 'must be a string: this model takes no token ids.')
    return text
  })
}

function valuesOf(embedding: Json): Json {
  if (isObject(embedding) && Array.isArray(embedding.values)) return embedding.values
  throw noAnswer('The provider answered with an embedding that has no values.')
}
