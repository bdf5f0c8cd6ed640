import chatCompletions from './chat-completions.js'
import completions from './completions.js'
import embeddings from './embeddings.js'
import type { Endpoint } from './endpoint.js'
import moderations from './moderations.js'
import rerank from './rerank.js'

/** Every surface that the gateway meters. */
export const ENDPOINTS: readonly Endpoint[] = [chatCompletions, completions, embeddings, rerank, moderations]
