/*
 * How good and how fast estimates of tokens are: `npm run estimates`. Real tokenizers (test/tokenizers) count the fixture's texts again; then a
 * table for each of them, for the half of the texts that the rates were not tuned on, as src/metering/README.md explains it; tools; and the
 * time for 1 MiB and for a small chat. Exits 1 where a bar does not hold.
 */
import { textSamples, toolSamples, VOCABULARIES } from '../support/estimate-samples.js'
import { BARS, broken, judge, judgeTools, TOOL_BARS } from './estimate-quality.js'
import { PACE_BARS, paceBar, paces, smallPace } from './estimate-speed.js'
import { qualityTables } from './estimate-table.js'
import { tokenizers } from './real-tokenizers.js'

const samples = textSamples()
const tools = toolSamples()
const faults: string[] = []
// Before the tokenizers are loaded: one of them is WebAssembly, whose memory grows, and what that does slows down arrays of the whole process.
const { texts, lookups } = paces(samples)
const small = smallPace()

for (const [name, count] of await tokenizers(process.argv.includes('gemini'))) {
  const differing = samples.filter(sample => count(sample.text) !== sample[name]).length
  if (differing > 0) faults.push(`${name}: ${differing} texts count differently than the fixture says`)
}
for (const [name, bars] of BARS)
  for (const row of judge(samples, name)) if (row.name === 'all') faults.push(...broken(row, bars).map(fault => `${name}, ${fault}`))
for (const name of ['o200k', 'cl100k'] as const) {
  const { least, most } = judgeTools(tools, name)
  if (!(least >= TOOL_BARS.least && most <= TOOL_BARS.most)) faults.push(`${name}, tools: from ${least} to ${most}`)
}
print(aligned(qualityTables(samples, tools)))

const bar = paceBar(lookups)
print(
  `1 MiB, least of several. Bar: ${PACE_BARS.ms} ms where a million lookups take ${PACE_BARS.lookups} ms; here they take ${lookups.toFixed(2)} ms; fails beyond ${bar.toFixed(2)} ms\n`,
)
for (const { name, estimate, parse } of texts) {
  print(`${name.padEnd(24)}${estimate.toFixed(2).padStart(7)} ms${(estimate / parse).toFixed(1).padStart(7)} × JSON.parse`)
  if (estimate > bar) faults.push(`1 MiB of ${name}: ${estimate.toFixed(2)} ms`)
}
print(`\nchat request of 1 KiB: ${small.estimate.toFixed(2)} µs; parsing its body: ${small.parse.toFixed(2)} µs\n`)

for (const fault of faults) print(`FAULT ${fault}`)
print(
  `${samples.length} texts, ${Object.keys(VOCABULARIES).length} vocabularies, ${tools.length} requests with tools, ${faults.length} faults`,
)
process.exitCode = faults.length === 0 ? 0 : 1

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Tables of Markdown, with columns of one width each. */
function aligned(markdown: string): string {
  return markdown
    .split('\n\n')
    .map(block => {
      if (!block.startsWith('|')) return block.replaceAll('**', '')
      const rows = block.split('\n').map(line => line.slice(2, -2).split(' | '))
      const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => (row[column] ?? '').length)))
      return rows
        .filter(([first]) => first !== '---')
        .map(row => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  '))
        .join('\n')
    })
    .join('\n\n')
    .concat('\n')
}
