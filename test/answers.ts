import { readFileSync } from 'node:fs'
import { CODES } from '../src/errors.js'
import { openapi, SEEN } from './support/api.js'

/*
 * After a run of all tests: how many answers were held against config/openapi.yaml, and whether every operation and every status of it was
 * among them. `npm test` begins a new count.
 */

const counts = new Map<string, number>()
for (const line of readFileSync(SEEN, 'utf8').trim().split('\n')) {
  const [, count = '', what = ''] = /^(\d+) (.*)$/.exec(line) ?? []
  counts.set(what, (counts.get(what) ?? 0) + Number(count))
}
const seen = [...counts.keys()]
const paths = Object.entries(openapi().document.paths as Record<string, object>)
const answers = paths.map(([path]) => `${openapi().operation(path, 'POST') === undefined ? 'GET' : 'POST'} ${path} 200`)
// How a client's leaving ends nobody sees; 417 and 431 are said to what is no proper HTTP, on connections that are cut.
const unseen = new Set([417, 431, 499])
const statuses = new Set([...CODES.values()].map(({ status }) => status).filter(status => !unseen.has(status)))
const missing = [
  ...answers.filter(answer => !counts.has(answer)),
  ...[...statuses].filter(status => !seen.some(what => what.endsWith(` ${status}`))).map(status => `an answer of status ${status}`),
]
const sum = [...counts.values()].reduce((total, count) => total + count, 0)
process.stdout.write(
  `${sum} answers of ${counts.size} kinds are as config/openapi.yaml has them, ${missing.length} kinds of it were not seen\n`,
)
for (const what of missing) process.stdout.write(`not seen: ${what}\n`)
process.exitCode = missing.length === 0 ? 0 : 1
