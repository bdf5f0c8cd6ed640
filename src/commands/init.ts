import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { DEMO_SECRET, sha256Of } from '../config/keys.js'
import { PACKAGE } from '../paths.js'
import { newSecret } from '../secret.js'
import { json } from '../terminal/data.js'
import { COMMON, type Flags, noMore, optionsHelp, readFlags } from '../terminal/flags.js'
import { type Io, UsageError } from './command.js'

export const summary = 'write a first gateway.yaml, with a key of your own'

export const flags = {
  force: { type: 'boolean', about: 'overwrite a file that is there' },
  json: COMMON.json,
  help: COMMON.help,
} as const satisfies Flags

export const usage = `
model-gateway init [FILE] [--force]

Writes a config that works as it stands, explained line by line, with a fresh key, and prints the key this once: the file has only
its SHA-256. Asks nothing. FILE is gateway.yaml unless it is given.

${optionsHelp(flags)}
`

export async function run(args: string[], io: Io): Promise<number> {
  const {
    flags: given,
    words: [name = 'gateway.yaml', ...rest],
  } = readFlags(args, flags)
  noMore(rest)
  const file = resolve(io.cwd, name)
  const key = newSecret()
  write(file, firstConfig(readFileSync(new URL('gateway.yaml', PACKAGE), 'utf8'), key, schemaSeenFrom(dirname(file))), given.force)
  if (given.json) {
    io.stdout(`${json({ file, name: NAME, key, sha256: sha256Of(key) })}\n`)
    return 0
  }
  io.stdout(`${key}\n`)
  const option = name === 'gateway.yaml' ? '' : ` -c ${name}`
  io.stderr(
    [
      `${file} is written, and the key above is in it by its SHA-256. Keep the key: it is shown this once.`,
      '',
      `model-gateway serve${option}`,
      `curl http://127.0.0.1:8080/v1/chat/completions -H "authorization: Bearer ${key}" -H "content-type: application/json" -d '{"model":"default","messages":[{"role":"user","content":"Hello"}]}'`,
      '',
    ].join('\n'),
  )
  return 0
}

/** What the key is called in the file. */
const NAME = 'app'

/** The first config of this package with a key of one's own in the place of the one that everybody knows. */
function firstConfig(template: string, key: string, schema: string): string {
  const swaps: readonly (readonly [RegExp, string])[] = [
    [/^( +)demo:$/m, `$1${NAME}:`],
    [
      new RegExp(`^( +)secret: ${DEMO_SECRET}.*$`, 'm'),
      `$1sha256: ${sha256Of(key)}   # of the key that init has printed; \`model-gateway keys new\` makes more`,
    ],
    [/(\$schema=)\S+/, `$1${schema}`],
  ]
  let text = template
  for (const [found, put] of swaps) {
    if (!found.test(text))
      throw new Error(`the gateway.yaml of this package has been changed: ${found} is not in it. Install the package anew.`)
    text = text.replace(found, put)
  }
  return text
}

/** Editors look for it relative to the file; from elsewhere on the disk, by its address. */
function schemaSeenFrom(folder: string): string {
  const schema = new URL('config/gateway.schema.json', PACKAGE)
  const path = relative(folder, fileURLToPath(schema))
  return path.startsWith('..') ? pathToFileURL(fileURLToPath(schema)).href : `./${path}`
}

/** For its owner's eyes: secrets of providers may come to stand in it. */
function write(file: string, text: string, force: boolean): void {
  try {
    writeFileSync(file, text, { mode: 0o600, flag: force ? 'w' : 'wx' })
    if (force) chmodSync(file, 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new Error(`${file} is there already: nothing was written. --force overwrites it.`, { cause: error })
    if (code === 'ENOENT' && !existsSync(dirname(file))) throw new UsageError(`the folder ${dirname(file)} does not exist`)
    if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
      const why = code === 'EROFS' ? 'this disk is read-only' : 'this user may not'
      throw new Error(`${file} can not be written: ${why}.\nChoose another place: model-gateway init FILE`, { cause: error })
    }
    throw error
  }
}
