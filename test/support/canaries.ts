import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DEMO_SECRET } from '../../src/config/keys.js'

/*
 * Makes every test that runs the program one of whether it keeps what it is told to itself. Keys of clients and providers, as the configs of
 * the tests have them, are looked for in all that a gateway gives out: its output, its metrics, its answers, its files, what its command line
 * prints. Prompts and answers, as scripted providers see and say them, are looked for in all of that but the answers.
 *
 * `CANARIES=FILE npm test`, then `node dist/test/support/canaries.js FILE`, tells how much was searched.
 */

export interface Searched {
  /** Gateways, each at its end. */
  readonly gateways: number
  /** Answers, outputs and files. */
  readonly places: number
  readonly bytes: number
  /** How often a key, a prompt or an answer was looked for in one of them. */
  readonly lookups: number
  /** The most secrets, and the most prompts and answers, that were looked for at one time. */
  readonly secrets: number
  readonly texts: number
}

/** Shorter ones are in words of our own by chance. */
const SHORTEST_SECRET = 8
const SHORTEST_TEXT = 11
/** The most texts of one process; a fuzzer has thousands. */
const TEXTS_MAX = 300
/** As much of a long text as is looked for. */
const HEAD = 60

// One process is one file of tests: what was a secret to one of its gateways is a secret to all.
const secrets = new Set<string>()
const texts = new Set<string>()
const ours = new Set<string>()

/** Takes the secrets of a config: `secret`, `api_key` and `admin_token`, variables looked up. */
export function takeSecrets(yaml: string, env: Readonly<Record<string, string | undefined>> = {}): void {
  for (const [, , written = ''] of yaml.matchAll(/\b(secret|api_key|admin_token): *("[^"]*"|'[^']*'|[^\s,}]+)/g)) {
    const value = written.replace(/^["']|["']$/g, '')
    takeSecret(/^\$\{(\w+)\}$/.exec(value) === null ? value : env[value.slice(2, -1)])
  }
  // What the config says may stand in the log.
  ours.add(yaml)
}

export function takeSecret(secret: string | undefined): void {
  if (secret !== undefined && secret.length >= SHORTEST_SECRET && !secret.includes('$') && secret !== DEMO_SECRET) secrets.add(secret)
}

const SAID = /"(?:content|text|prompt|input|query|documents|arguments|thinking|reasoning_content)": ?\[?"([^"\\]*(?:\\.[^"\\]*)*)"/g
/** As much of a body as is read for them. */
const READ = 20_000

/** Takes what is said in a body, asked or answered. */
export function takeTexts(body: string): void {
  if (texts.size >= TEXTS_MAX) return
  for (const [, said = ''] of body.slice(0, READ).matchAll(SAID)) {
    const text = plain(parsed(said))
    if (text.length >= SHORTEST_TEXT && ![...ours].some(config => config.includes(text))) texts.add(text)
  }
}

function parsed(said: string): string {
  try {
    return JSON.parse(`"${said}"`) as string
  } catch {
    return ''
  }
}

/** The longest piece of it that looks the same however often it is quoted. */
function plain(text: string): string {
  const pieces = text.slice(0, 1_000).split(/["\\\p{C}]+/u)
  return pieces.reduce((longest, piece) => (piece.length > longest.length ? piece : longest), '').slice(0, HEAD)
}

/** Throws where one of the secrets is in it. `where` is for the message. */
export function searchSecrets(where: string, given: string): void {
  search(where, Buffer.from(given), secrets)
}

/** Throws where a secret, a prompt or an answer is in it. */
export function searchAll(where: string, given: string | Buffer): void {
  const bytes = Buffer.isBuffer(given) ? given : Buffer.from(given)
  search(where, bytes, secrets)
  search(where, bytes, texts)
}

/** Every file below a folder. */
export function searchFiles(folder: string): void {
  if (!existsSync(folder)) return
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath ?? entry.path, entry.name)
    let bytes: Buffer
    try {
      bytes = readFileSync(file)
    } catch {
      // Gone meanwhile.
      continue
    }
    searchAll(file, bytes)
  }
}

let places = 0
let bytes = 0
let lookups = 0

function search(where: string, given: Buffer, canaries: ReadonlySet<string>): void {
  places++
  bytes += given.length
  for (const canary of canaries) {
    lookups++
    if (given.includes(canary)) throw new Error(`${where} gives away ${JSON.stringify(canary)}: ${around(given, canary)}`)
  }
}

function around(given: Buffer, canary: string): string {
  const at = given.indexOf(canary)
  return JSON.stringify(given.subarray(Math.max(0, at - 100), at + canary.length + 100).toString('utf8'))
}

/** One gateway has been searched to its end. */
export function count(): void {
  const { CANARIES } = process.env
  const line: Searched = { gateways: 1, places, bytes, lookups, secrets: secrets.size, texts: texts.size }
  places = 0
  bytes = 0
  lookups = 0
  if (CANARIES !== undefined) appendFileSync(CANARIES, `${JSON.stringify(line)}\n`)
}

/** What all of them come to. */
export function sum(lines: readonly Searched[]): Searched {
  const total = (of: keyof Searched) => lines.reduce((all, line) => all + line[of], 0)
  const most = (of: keyof Searched) => lines.reduce((max, line) => Math.max(max, line[of]), 0)
  return {
    gateways: total('gateways'),
    places: total('places'),
    bytes: total('bytes'),
    lookups: total('lookups'),
    secrets: most('secrets'),
    texts: most('texts'),
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , file = ''] = process.argv
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
  const { gateways, places, bytes, lookups, secrets, texts } = sum(
    lines.filter(line => line !== '').map(line => JSON.parse(line) as Searched),
  )
  console.log(
    `${gateways} gateways: ${places} outputs, answers and files of ${bytes} bytes searched, ${lookups} lookups of up to ${secrets} keys and ${texts} prompts and answers; 0 given away`,
  )
  process.exitCode = gateways > 0 && secrets > 0 && texts > 0 ? 0 : 1
}
