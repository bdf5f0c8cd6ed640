import { type Io, UsageError } from './commands/command.js'
import { ConfigError } from './config/problems.js'
import { didYouMean } from './config/suggest.js'
import { commandOf, verbs } from './terminal/verbs.js'
import { VERSION } from './version.js'

/** Runs the verb that the arguments name (`serve`, where they name none) and resolves with the exit code. */
export async function main(args: string[], io: Io): Promise<number> {
  const [first, ...rest] = args
  if (first === '--version' || first === '-v') {
    io.stdout(`model-gateway ${VERSION}\n`)
    return 0
  }
  if (first === '--help' || first === '-h' || first === 'help') {
    const verb = rest[0]
    if (verb === undefined) return overview(io)
    return main([verb, '--help'], io)
  }
  const named = first !== undefined && !first.startsWith('-')
  return verb(named ? first : 'serve', named ? rest : args, io)
}

async function verb(name: string, args: string[], io: Io): Promise<number> {
  if (!verbs().includes(name)) {
    io.stderr(`model-gateway: there is no verb ${JSON.stringify(name)}${didYouMean(name, verbs())}\nmodel-gateway --help lists them.\n`)
    return 2
  }
  const command = await commandOf(name)
  if (args.includes('--help') || args.includes('-h')) {
    io.stdout(`${command.usage.trim()}\n`)
    return 0
  }
  try {
    return await command.run(args, io)
  } catch (error) {
    if (error instanceof ConfigError) {
      io.stderr(`${error.message}\n`)
      return 2
    }
    if (error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')) {
      io.stderr(`model-gateway ${name}: ${(error as Error).message}\nmodel-gateway ${name} --help says more.\n`)
      return 2
    }
    io.stderr(`model-gateway ${name}: ${(error as Error).message}\n`)
    return 1
  }
}

async function overview(io: Io): Promise<number> {
  const lines = await Promise.all(
    verbs().map(async name => {
      const { summary } = await commandOf(name)
      return `  ${name.padEnd(12)}${summary}`
    }),
  )
  io.stdout(`model-gateway [verb] [options]\n\n${lines.join('\n')}\n\nWithout a verb: serve. model-gateway VERB --help says more of one.\n`)
  return 0
}
