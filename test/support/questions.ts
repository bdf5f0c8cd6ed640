import { join } from 'node:path'
import { Catalog } from '../../src/config/catalog.js'
import type { Config, Key } from '../../src/config/config.js'
import { loadConfig } from '../../src/config/load.js'
import type { Endpoint, Surface } from '../../src/endpoints/endpoint.js'
import { ENDPOINTS } from '../../src/endpoints/endpoints.js'
import type { Runtime } from '../../src/runtime.js'
import { kindsOf, loadProviders } from '../../src/upstream/kinds.js'
import { Wires } from '../../src/upstream/upstream.js'

interface Test {
  testdir(files: Record<string, string>): string
}

const PROVIDERS = await loadProviders()

/** The sections that say which models there are, and for whom. */
export const MODELS = `
providers:
  up: {kind: openai, api_key: sk-x, cap: max_completion_tokens}
  old: {kind: openai, base_url: "https://old.example/v1", api_key: sk-x, cap: max_tokens, usage_stream: always}
  claude: {kind: anthropic, api_key: sk-x}
  sandbox: {kind: sandbox}
models:
  up/m: {price: {input: 1000000, output: 2000000}, max_output_tokens: 4096, default_max_tokens: 100}
  up/few: {price: free, max_output_tokens: 50, default_max_tokens: 40, parameters: [temperature, stop]}
  up/renamed: {upstream: their-name, price: free, default_max_tokens: 7, cap: max_tokens}
  old/m: {price: {input: 5000000, output: 9000000}, max_output_tokens: 200, default_max_tokens: 150}
  claude/c: {price: free, max_output_tokens: 1000, default_max_tokens: 100}
  up/falls: {price: {input: 1, output: 1}, max_output_tokens: 4096, default_max_tokens: 100, fallback: [old/m, claude/c]}
  up/chat-only: {price: free, default_max_tokens: 10, surfaces: [chat]}
  sandbox/echo: {price: free, max_output_tokens: 100, default_max_tokens: 50}
aliases: {default: up/m}
plans: {p: {}}
keys:
  a: {plan: p, secret: mgk_test_key_a}
  b: {plan: p, secret: mgk_test_key_b, models: [sandbox/*]}
`

export interface Asking {
  readonly config: Config
  /** As much of a runtime as a question needs. */
  readonly runtime: Runtime
  key(name?: string): Key
}

/** A config, as it is when it is loaded. */
export function asking(t: Test, yaml = MODELS): Asking {
  const file = join(t.testdir({ 'gateway.yaml': yaml }), 'gateway.yaml')
  const { config } = loadConfig(file, { env: {}, kinds: kindsOf(PROVIDERS) })
  return {
    config,
    runtime: {
      config,
      catalog: new Catalog(config),
      upstreams: new Wires(config, PROVIDERS),
      tokenizers: { any: false },
    } as unknown as Runtime,
    key: (name = 'a') => config.keys.get(name) as Key,
  }
}

export function endpointOf(surface: Surface): Endpoint {
  return ENDPOINTS.find(endpoint => endpoint.surface === surface) as Endpoint
}
