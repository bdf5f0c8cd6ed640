import { createCohere } from '@ai-sdk/cohere'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createTogetherAI } from '@ai-sdk/togetherai'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { CohereClient, CohereClientV2 } from 'cohere-ai'
import * as openai6 from 'openai-6'
import * as openai7 from 'openai-7'
import { VoyageAIClient } from 'voyageai'
import { KEY } from './gateway.mjs'

/*
 * The libraries as their users set them up: a base URL and a key, nothing else. Retries are off, but where a test is about them.
 */

// It warns of settings that its own defaults bring along.
globalThis.AI_SDK_LOG_WARNINGS = false

/** Both majors of `openai`, as modules. */
export const OPENAI = [
  { name: 'openai 6', module: openai6 },
  { name: 'openai 7', module: openai7 },
]

export const openai = (gateway, { module = openai7, apiKey = KEY, maxRetries = 0, ...more } = {}) =>
  new module.default({ baseURL: gateway.v1, apiKey, maxRetries, ...more })

export const aiSdk = (gateway, { apiKey = KEY, ...more } = {}) =>
  createOpenAICompatible({ name: 'gateway', baseURL: gateway.v1, apiKey, includeUsage: true, ...more })

export const aiCohere = (gateway, { apiKey = KEY } = {}) => createCohere({ baseURL: `${gateway.url}/v2`, apiKey })
export const aiTogether = (gateway, { apiKey = KEY } = {}) => createTogetherAI({ baseURL: gateway.v1, apiKey })

export const langchain = (gateway, { apiKey = KEY, model = 'sandbox/echo', maxRetries = 0, ...more } = {}) =>
  new ChatOpenAI({ model, apiKey, maxRetries, configuration: { baseURL: gateway.v1 }, ...more })

export const langchainEmbeddings = (gateway, { model = 'sandbox/echo', ...more } = {}) =>
  new OpenAIEmbeddings({ model, apiKey: KEY, maxRetries: 0, configuration: { baseURL: gateway.v1 }, ...more })

export const cohereV1 = (gateway, { apiKey = KEY } = {}) => new CohereClient({ environment: gateway.url, token: apiKey })
export const cohereV2 = (gateway, { apiKey = KEY } = {}) => new CohereClientV2({ environment: gateway.url, token: apiKey })

export const voyage = (gateway, { apiKey = KEY } = {}) => new VoyageAIClient({ environment: gateway.v1, apiKey })
