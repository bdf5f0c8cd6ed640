import { fileURLToPath } from 'node:url'
import type { KindInfo } from '../../src/config/config.js'
import { type LoadOptions, loadConfig } from '../../src/config/load.js'
import { ConfigError } from '../../src/config/problems.js'

/** The folder that package.json stands in. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const SURFACES = ['chat', 'completions', 'rerank', 'moderations', 'embeddings']
/** Kinds as a loader may meet them: one without a server, one without an address, one with settings of its own. */
export const KINDS: ReadonlyMap<string, KindInfo> = new Map<string, KindInfo>([
  [
    'sandbox',
    {
      baseUrl: '',
      surfaces: SURFACES,
      modelOptions: { type: 'object', additionalProperties: false, properties: { pace: { type: 'integer', default: 5 } } },
    },
  ],
  ['openai', { surfaces: SURFACES }],
  [
    'claude',
    {
      baseUrl: 'https://claude.example/v1',
      surfaces: ['chat'],
      defaults: { cap: 'max_completion_tokens', usage_stream: 'always', usage: 'strict' },
      options: { type: 'object', required: ['region'], additionalProperties: false, properties: { region: { type: 'string' } } },
    },
  ],
])

/** The smallest config that loads; a test adds sections to it. */
export const BASE = `providers: {sandbox: {kind: sandbox}}
models: {sandbox/echo: {price: free}}
`

/** Loads a text as /etc/gw/gateway.yaml; `files` are all others that there are. */
export function load(yaml: string, options: Partial<LoadOptions> & { files?: Record<string, string> } = {}) {
  const { files = {}, ...rest } = options
  const readFile = (path: string) => {
    const text = path === '/etc/gw/gateway.yaml' ? yaml : files[path]
    if (text === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' })
    return text
  }
  return loadConfig('gateway.yaml', { env: {}, kinds: KINDS, cwd: '/etc/gw', readFile, ...rest })
}

/** The lines of what is wrong with it; none where it loads. */
export function problems(yaml: string, options: Parameters<typeof load>[1] = {}): string[] {
  try {
    load(yaml, options)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}
