import { isObject, type Json } from '../json.js'
import { bounded } from './bounded.js'
import type { Failure } from './providers/provider.js'

/** Bytes of a message that are passed on. */
const MESSAGE_MAX = 2048
/** A shorter one would tear words apart, and is no secret. */
export const SECRET_MIN = 6

/**
 * What a provider says of its own failure, in any of the shapes that are common: `error.message`, `error` (text), `message` (text or object),
 * `detail` (text or FastAPI's list), `error_type`; the first element where the body is an array. `body` is parsed JSON, or the text where it is
 * none, of which a page says nothing. A number is no code (it is the status once more), and `type` one word as a code is; `status` is only set where
 * the answer's own was a success. The message is the provider's own, to be scrubbed before anybody sees it; it is absent where nothing was said.
 */
export function readFailure(status: number, body: unknown): Failure {
  const top = bounded(Array.isArray(body) ? body[0] : body)
  if (typeof top === 'string') return top.trimStart().startsWith('<') ? {} : told(top)
  if (!isObject(top)) return {}
  const error = isObject(top.error) ? top.error : top
  const code = codeOf(error.code) ?? codeOf(top.code) ?? codeOf(top.error_type)
  const meant = status < 400 ? statusOf(error.code, code) : undefined
  const type = codeOf(error.type)
  const param = typeof error.param === 'string' ? error.param : paramOf(error.detail)
  return {
    ...told(
      textOf(error.message) ??
        (typeof top.error === 'string' ? textOf(top.error) : undefined) ??
        textOf(top.message) ??
        textOf(top.detail) ??
        '',
    ),
    ...(meant === undefined ? {} : { status: meant }),
    ...(code === undefined ? {} : { code }),
    ...(type === undefined ? {} : { type }),
    ...(param === undefined || param === '' ? {} : { param }),
  }
}

/** What the bytes of a failure say, for `readFailure`: parsed JSON, or the text where it is none. */
export function said(bytes: Buffer): unknown {
  const text = bytes.toString('utf8')
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Removes what a client must not see: the given secrets, anything like a key, addresses, stack traces. At most 2 kB of UTF-8. */
export function scrub(message: string, secrets: readonly string[] = []): string {
  let text = message
  // The longest first: a secret may be part of another one.
  for (const secret of secrets.filter(secret => secret.length >= SECRET_MIN).sort((a, b) => b.length - a.length)) {
    text = text.replaceAll(secret, '[hidden]')
  }
  // Before the patterns, so that their time is bounded whatever a provider sends.
  text = text.slice(0, 2 * MESSAGE_MAX)
  text = text.split(/\n[ \t]*(?:at |File "|Traceback )|Traceback \(most recent/, 1)[0] as string
  for (const [pattern, replacement] of HIDDEN) text = text.replace(pattern, replacement)
  return cut(text.trim(), MESSAGE_MAX)
}

const HIDDEN: readonly (readonly [RegExp, string])[] = [
  [/\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'<>)\]}]+/gi, '[address]'],
  [/\bBearer\s+[^\s"',;]+/gi, 'Bearer [hidden]'],
  [/\b(?:sk|pk|rk|gsk|xai|jina|pa|hf|fw|nvapi|mgk|ghp|key)[-_][\w*.-]{6,}/g, '[hidden]'],
  [/\bAIza[\w*-]{6,}/g, '[hidden]'],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{12,}/g, '[hidden]'],
  // A run that mixes letters and digits and is too long for a word: a key, a token, a hash. Model names have dashes or slashes in between.
  [/\b(?=\w*\d)(?=\w*[A-Za-z])\w{32,}={0,2}/g, '[hidden]'],
  [/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g, '[address]'],
  [/\[[0-9a-f]*:[0-9a-f:.]+\](?::\d{1,5})?/gi, '[address]'],
  [/\blocalhost(?::\d{1,5})?\b/gi, '[address]'],
  [
    /\b(?:[a-z0-9-]{1,63}\.){1,8}(?:com|net|org|io|ai|dev|app|cloud|xyz|aws|internal|local|lan|svc|ir|de|fr|eu|uk|cn)\b(?::\d{1,5})?/gi,
    '[address]',
  ],
  // A bare name with a port, where words say that it is a host: `cannot connect to inference-7f:8000`.
  [/\b(to|from|at|host|server|upstream)\s+[a-z][a-z0-9.-]*:\d{2,5}\b/gi, '$1 [address]'],
]

function told(text: string): Failure {
  return text.trim() === '' ? {} : { message: text }
}

/** A text as it is; FastAPI's list as `place: message`; an object as what is said in it, else as JSON. */
function textOf(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(itemText).join('; ')
  if (!isObject(value) || Object.keys(value).length === 0) return undefined
  return textOf(value.message) ?? textOf(value.detail) ?? JSON.stringify(value)
}

function itemText(item: Json): string {
  if (!isObject(item) || typeof item.msg !== 'string') return textOf(item) ?? JSON.stringify(item)
  const place = placeOf(item.loc)
  return place === '' ? item.msg : `${place}: ${item.msg}`
}

/** FastAPI: `["body", "messages", 0, "role"]` → `messages[0].role`. */
function placeOf(loc: Json | undefined): string {
  if (!Array.isArray(loc)) return ''
  const steps: readonly Json[] = loc[0] === 'body' ? loc.slice(1) : loc
  return steps.reduce<string>((path, step) => {
    if (typeof step === 'number') return `${path}[${step}]`
    return path === '' ? String(step) : `${path}.${step}`
  }, '')
}

function paramOf(detail: Json | undefined): string | undefined {
  const first = Array.isArray(detail) ? detail[0] : undefined
  return isObject(first) ? placeOf(first.loc) : undefined
}

/** A code is one word. Some providers put a sentence there, or the status. */
function codeOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && /^[A-Za-z_][\w.-]{0,63}$/.test(value) ? value : undefined
}

/** The status that a code is, as a number or (LiteLLM) as text; or that the one word has which clients act upon. */
function statusOf(said: Json | undefined, code: string | undefined): number | undefined {
  if (code === 'context_length_exceeded') return 400
  const status = typeof said === 'string' && /^\d{3}$/.test(said) ? Number(said) : said
  return typeof status === 'number' && Number.isSafeInteger(status) && status >= 400 && status < 600 ? status : undefined
}

/** At most so many bytes, no character torn. */
function cut(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text
  const whole = Buffer.from(text).subarray(0, bytes - 3)
  // A character that was torn decodes to U+FFFD.
  return `${whole.toString().replace(/\uFFFD$/, '')}…`
}
