type Env = Readonly<Record<string, string | undefined>>

/** What the environment says of the way to an address. `null`: straight there. `problem`: a variable names no proxy; it is not quoted. */
export type ProxyFound = { readonly proxy: string | null } | { readonly problem: string }

/**
 * The proxy that the environment names for this address, as curl reads it: `https_proxy` or `http_proxy`, in lower case or upper, but for
 * the hosts of `no_proxy`.
 */
export function proxyFor(url: URL, env: Env): ProxyFound {
  const name = url.protocol === 'https:' ? 'https_proxy' : 'http_proxy'
  const given = variable(env, name)
  if (given === '' || exempt(url, variable(env, 'no_proxy'))) return { proxy: null }
  const text = given.includes('://') ? given : `http://${given}`
  const proxy = URL.canParse(text) ? new URL(text) : null
  if (proxy === null || !/^https?:$/.test(proxy.protocol)) {
    return { problem: `${name.toUpperCase()} of the environment must be an address that begins with http:// or https://` }
  }
  // It goes out decoded.
  if (!isDecodable(proxy.username) || !isDecodable(proxy.password)) {
    return { problem: `the name and the password in ${name.toUpperCase()} of the environment must be percent-encoded (%25 is a %)` }
  }
  return { proxy: proxy.href }
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function variable(env: Env, name: string): string {
  return (env[name] ?? env[name.toUpperCase()] ?? '').trim()
}

/** `*`, or a host with all that is in its domain, on one port where one is named; with commas or spaces between. */
function exempt(url: URL, list: string): boolean {
  const host = bare(url.hostname)
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
  return list.split(/[\s,]+/).some(entry => {
    if (entry === '*') return true
    // An address of IPv6 without brackets has no port.
    const [, named = entry, only = port] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? []
    const name = bare(named)
    return name !== '' && only === port && (host === name || host.endsWith(`.${name}`))
  })
}

function bare(host: string): string {
  return host.replace(/^\*?\.|^\[|\]$/g, '').toLowerCase()
}
