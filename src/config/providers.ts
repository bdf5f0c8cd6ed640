import type { PemFile, ProviderSettings } from './config.js'
import type { ProviderDraft, Section } from './draft.js'
import type { Findings } from './findings.js'
import { readOptions } from './options.js'
import type { Path } from './problems.js'
import { proxyFor } from './proxies.js'
import { readTimer } from './sections.js'
import { didYouMean } from './suggest.js'
import { readAuthorities } from './tls.js'

/** The providers of the file. What is wrong with them is in `findings`; one of an unknown kind is left out. */
export function readProviders(findings: Findings, drafts: Section<ProviderDraft>): Map<string, ProviderSettings> {
  const providers = new Map<string, ProviderSettings>()
  const { kinds } = findings.source
  for (const [name, draft] of Object.entries(drafts)) {
    const path = ['providers', name]
    if (draft.kind === undefined) continue
    const kind = kinds.get(draft.kind)
    if (kind === undefined) {
      findings.wrong([...path, 'kind'], `there is no kind ${JSON.stringify(draft.kind)}${didYouMean(draft.kind, kinds.keys())}`)
      continue
    }
    const given = findings.source.raw([...path, 'base_url']) !== undefined
    if (!given && kind.baseUrl === undefined)
      findings.wrong(path, `"base_url" is missing: the kind ${JSON.stringify(draft.kind)} has no address of its own`)
    const rerank = draft.rerank ?? kind.defaults?.rerank
    const baseUrl =
      draft.base_url === undefined ? (kind.baseUrl ?? '') : readBaseUrl(findings, draft.base_url, draft.insecure, [...path, 'base_url'])
    const ca = draft.ca === undefined ? null : readCa(findings, draft.ca, baseUrl, [...path, 'ca'])
    const proxy = draft.proxy === 'none' ? null : readProxy(findings, baseUrl, [...path, 'proxy'])
    const timer = (field: keyof ProviderDraft['timeout']) => readTimer(findings, draft.timeout[field], [...path, 'timeout', field])
    providers.set(name, {
      name,
      kind: draft.kind,
      base_url: baseUrl,
      api_key: draft.api_key ?? null,
      ...(ca === null ? {} : { ca }),
      ...(proxy === null ? {} : { proxy }),
      timeout: { connect: timer('connect'), first_byte: timer('first_byte'), idle: timer('idle'), total: timer('total') },
      max_connections: draft.max_connections,
      keep_connections: draft.keep_connections,
      queue: draft.queue,
      queue_timeout: readTimer(findings, draft.queue_timeout, [...path, 'queue_timeout']),
      retry_unknown: draft.retry_unknown,
      health:
        draft.health === 'off'
          ? null
          : { failures: draft.health.failures, ejection: readTimer(findings, draft.health.ejection, [...path, 'health', 'ejection']) },
      usage_stream: draft.usage_stream ?? kind.defaults?.usage_stream ?? 'option',
      cap: draft.cap ?? kind.defaults?.cap ?? 'max_tokens',
      on_disconnect: draft.on_disconnect,
      usage: draft.usage ?? kind.defaults?.usage ?? 'normal',
      ...(rerank === undefined ? {} : { rerank }),
      options: readOptions(findings, [...path, 'options'], draft.kind, kind.options),
    })
  }
  return providers
}

/** Without a trailing slash. Messages do not quote it: it may hold what should not be in a log. */
function readBaseUrl(findings: Findings, text: string, insecure: boolean, path: Path): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    findings.wrong(path, 'must be an address that begins with https:// (or http:// on this machine)')
    return ''
  }
  if (url.username !== '' || url.password !== '') findings.wrong(path, 'must hold no credentials: put them into api_key')
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(text)) findings.wrong(path, 'must end with its path: no ? and no #')
  if (url.protocol === 'http:' && !insecure && !isLoopback(url.hostname)) {
    findings.wrong(
      path,
      'must be https://, or on this machine; `insecure: true` beside it allows prompts and the key to travel unencrypted',
    )
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

function readCa(findings: Findings, name: string, baseUrl: string, path: Path): PemFile | null {
  if (!baseUrl.startsWith('https:')) findings.wrong(path, 'is of no use: the provider is not reached by https://')
  return readAuthorities(findings, name, path)
}

/**
 * This machine is never reached through a proxy: there, its address would be the proxy's own, and what is sent unencrypted because it stays
 * here would travel.
 */
function readProxy(findings: Findings, baseUrl: string, path: Path): string | null {
  if (!URL.canParse(baseUrl) || isLoopback(new URL(baseUrl).hostname)) return null
  const found = proxyFor(new URL(baseUrl), findings.source.env)
  if (!('problem' in found)) return found.proxy
  findings.wrong(path, found.problem)
  return null
}

/** Does a host name this machine, whoever answers DNS? */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127\.\d+\.\d+\.\d+$/.test(name)
}
