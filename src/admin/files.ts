import { readFileSync } from 'node:fs'
import type { Reply } from '../http/inner.js'
import { PACKAGE } from '../paths.js'

/** Where the page's files lie, in a clone as in the package: they are plain, and nothing compiles them. */
export const FOLDER = new URL('src/admin/page/', PACKAGE)

const TYPES = { 'index.html': 'text/html', 'page.css': 'text/css', 'page.js': 'text/javascript' } as const
/** The page decides by its address what it shows. */
const PATHS: ReadonlyMap<string, keyof typeof TYPES> = new Map([
  ['/', 'index.html'],
  ['/spend', 'index.html'],
  ['/limits', 'index.html'],
  ['/providers', 'index.html'],
  ['/page.css', 'page.css'],
  ['/page.js', 'page.js'],
])

/**
 * Nothing but what this listener itself serves: no script, style, font, frame or connection of any other place, and no text that becomes a
 * script. The icon is in the page.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** On every answer of the page's listener. */
export const SHIELD: Readonly<Record<string, string>> = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
}

/** The page's file at a path: read once, at the start, so that a broken installation shows then. They hold nothing that is anybody's. */
export function files(): (path: string) => Reply | null {
  const read = (name: keyof typeof TYPES): Reply => {
    return { status: 200, contentType: `${TYPES[name]}; charset=utf-8`, body: readFileSync(new URL(name, FOLDER)), headers: SHIELD }
  }
  const replies = new Map([...PATHS].map(([path, name]) => [path, read(name)]))
  return path => replies.get(path) ?? null
}
