import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import type { Connector } from './sockets.js'

/**
 * Makes connections through a proxy (CONNECT), which sees the name and the port of the origin, and nothing else of what is said to an origin
 * with https. `straight` speaks TLS through it. A proxy that refuses is an error with the code `ERR_PROXY_<its status>`; the proxy has as
 * long as a straight connection has, and TLS then has as long again.
 */
export function tunnel(proxy: URL, timeoutMs: number, straight: Connector): Connector {
  const { username, password } = proxy
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')
  const authorization = username === '' && password === '' ? {} : { 'proxy-authorization': `Basic ${credentials}` }
  return (target, callback) => {
    const { hostname, protocol, port } = target
    const secure = protocol === 'https:'
    const origin = `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port === '' ? (secure ? 443 : 80) : port}`
    const asked = (proxy.protocol === 'https:' ? requestHttps : requestHttp)({
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port === '' ? (proxy.protocol === 'https:' ? 443 : 80) : proxy.port,
      method: 'CONNECT',
      path: origin,
      headers: { host: origin, ...authorization },
      agent: false,
    })
    const late = setTimeout(() => asked.destroy(failure('TIMEOUT')), timeoutMs)
    asked.once('close', () => clearTimeout(late))
    asked.once('connect', ({ statusCode }, socket: Socket, early: Buffer) => {
      clearTimeout(late)
      // An origin does not speak first: what came already is not of it.
      if (statusCode !== 200 || early.length > 0) {
        socket.destroy()
        callback(failure(statusCode === 200 ? 'UNASKED' : String(statusCode)), null)
      } else if (secure) straight({ ...target, httpSocket: socket }, callback)
      else callback(null, socket.setNoDelay(true))
    })
    asked.once('error', error => callback(error, null))
    asked.end()
  }
}

function failure(what: string): Error {
  return Object.assign(new Error('the proxy did not open the way to the provider'), { code: `ERR_PROXY_${what}` })
}
