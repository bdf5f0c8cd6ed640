import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { Registry } from 'prom-client'
import type { Command } from '../src/commands/command.js'
import { readSchema } from '../src/config/load.js'
import { CODES } from '../src/errors.js'
import { names } from '../src/plugin.js'
import { define } from '../src/telemetry/definitions.js'
import { loadKinds } from '../src/upstream/kinds.js'
import { qualityTables } from './bench/estimate-table.js'
import { kinds, settings, values } from './config/readme.js'
import { textSamples, toolSamples } from './support/estimate-samples.js'
import { code, filled, table } from './support/markdown.js'
import { ROOT } from './support/paths.js'

/*
 * The parts of the documents that are made from the code. `npm run docs` writes them; a test holds the committed files against them.
 */

/** Documents with such parts, by path from the root: the whole text as it should be. */
export async function documents(): Promise<Map<string, string>> {
  const schema = readSchema()
  const parts: Record<string, Record<string, string>> = {
    'README.md': { verbs: await verbs() },
    'config/README.md': {
      settings: settings(schema),
      values: values(schema),
      kinds: kinds(await loadKinds()),
      metrics: metrics(),
    },
    'src/README.md': { codes: codes() },
    'src/SECURITY.md': { dependencies: dependencies() },
    'src/metering/README.md': { estimates: qualityTables(textSamples(), toolSamples()) },
  }
  return new Map(Object.entries(parts).map(([path, given]) => [path, filled(readFileSync(ROOT + path, 'utf8'), given)]))
}

async function verbs(): Promise<string> {
  const folder = new URL('../src/commands/', import.meta.url)
  const rows = names(folder)
    .filter(name => name !== 'command')
    .map(async name => {
      const module = (await import(new URL(`${name}.js`, folder).href)) as Partial<Command>
      // A file without a verb of its own is shared by those beside it.
      return module.summary === undefined ? [] : [[code(`model-gateway ${name}`), module.summary]]
    })
  return table(['command', 'does'], (await Promise.all(rows)).flat())
}

function codes(): string {
  const rows = [...CODES].map(([name, { status, type, shouldRetry }]) => [
    String(status),
    code(name),
    type,
    shouldRetry === undefined ? '' : code(String(shouldRetry)),
  ])
  return table(['status', 'code', 'type', '`x-should-retry`'], rows)
}

/** Everything that is installed at run time: the packages that are named first, then what these need. */
function dependencies(): string {
  const read = (file: string) => JSON.parse(readFileSync(ROOT + file, 'utf8'))
  const { dependencies: named } = read('package.json') as { dependencies: Record<string, string> }
  const { packages } = read('package-lock.json') as { packages: Record<string, { version: string; license?: string; dev?: boolean }> }
  const rows = Object.entries(packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path, { version, license = '' }]) => {
      const name = path.replace(/^.*node_modules\//, '')
      return { name, cells: [code(name), version, license, name in named ? 'yes' : ''] }
    })
    .sort((a, b) => Number(b.name in named) - Number(a.name in named) || (a.name < b.name ? -1 : 1))
  return table(
    ['package', 'version', 'licence', 'named by the gateway'],
    rows.map(({ cells }) => cells),
  )
}

/** Name, type, labels and meaning of every metric of the gateway's own. */
function metrics(): string {
  const registry = new Registry()
  define(registry)
  const rows = registry.getMetricsAsArray().map(metric => {
    const {
      name,
      type,
      help,
      labelNames = [],
    } = metric as unknown as {
      readonly name: string
      readonly type: string
      readonly help: string
      readonly labelNames?: readonly string[]
    }
    const labels = labelNames.filter(label => label !== 'le')
    return [code(name), String(type), labels.map(code).join(', '), help]
  })
  return table(['metric', 'type', 'labels', 'meaning'], rows)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const [path, text] of await documents()) writeFileSync(ROOT + path, text)
}
