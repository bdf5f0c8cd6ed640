import type { Config } from '../config/config.js'
import { DEMO_SECRET, sha256Of } from '../config/keys.js'
import { ConfigError } from '../config/problems.js'
import { Gateway } from '../gateway.js'
import { createLog, droppedLine, type Log } from '../telemetry/log.js'
import { createOutput, toDescriptor } from '../telemetry/output.js'
import { COMMON, type Flags, noMore, optionsHelp, readFlags } from '../terminal/flags.js'
import { VERSION } from '../version.js'
import type { Io } from './command.js'

export const summary = 'run the gateway'

export const flags = { config: COMMON.config, help: COMMON.help } as const satisfies Flags

export const usage = `
model-gateway [serve] [-c gateway.yaml]

Runs the gateway until SIGTERM or SIGINT: open requests may then end within drain_timeout; a second signal stops at once.
SIGHUP, or a change of the file, reads the config again.

${optionsHelp(flags)}
`

/** Characters of log lines that may wait for a slow reader. */
const LOG_PENDING_MAX = 8 * 1024 * 1024
/** Between two writes of the log. Milliseconds. */
const LOG_REST_MS = 20
/** For what is still open, once all is stopped and told. Milliseconds. */
const LINGER_MS = 200

export async function run(args: string[], io: Io): Promise<number> {
  const { flags: given, words } = readFlags(args, flags)
  noMore(words)
  const file = given.config ?? 'gateway.yaml'
  let log: Log | undefined
  const make = (config: Config): Log => {
    log = makeLog(config)
    return log
  }
  // Signals that come while it starts must not leave a half-started process behind, nor be lost.
  const stopping = new Stopping()
  let gateway: Gateway | undefined
  let again = false
  process.on('SIGHUP', () => {
    if (gateway === undefined) again = true
    else void gateway.reload()
  })
  try {
    gateway = await start(file, io, make)
  } catch (error) {
    log?.flushSync()
    if (!(error instanceof ConfigError)) throw error
    io.stderr(`${error.message}\n${remedy(error)}`)
    return 2
  }
  for (const warning of gateway.warnings) io.stderr(`warning: ${warning}\n`)
  greet(gateway, io, log as Log)
  if (again) void gateway.reload()
  const signal = await stopping.asked
  log?.info('stopping', { signal })
  await gateway.stop()
  log?.flushSync()
  // A connection to a provider that does not come about would keep the process until timeout.connect has passed.
  setTimeout(() => process.exit(), LINGER_MS).unref()
  return 0
}

async function start(file: string, io: Io, log: (config: Config) => Log): Promise<Gateway> {
  try {
    return await Gateway.start({ file, env: io.env, log })
  } catch (error) {
    // What the sockets of the other listeners say is the cause of their errors.
    const { cause, message } = error as Error
    throw notListening(error, 'listen', file) ?? notListening(cause, message.startsWith('admin') ? 'admin' : 'ops', file) ?? error
  }
}

/** What to do about a config that can not be used, where the problems themselves do not say it. */
function remedy({ problems }: ConfigError): string {
  if (problems.some(({ path, message }) => path === '' && message.endsWith('there is no such file')))
    return 'Write a first one: model-gateway init. Or name the one that there is: model-gateway serve -c FILE\n'
  const variables = problems.flatMap(({ message }) => /^the environment has no variable (\w+)/.exec(message)?.[1] ?? [])
  if (variables.length === 0) return ''
  const set = [...new Set(variables)].map(name => `${name}=…`).join(' ')
  return `Set what is missing before the start: export ${set}\n`
}

/** An address that can not be had, in words for the operator; `undefined` for any other error. */
function notListening(error: unknown, section: 'listen' | 'ops' | 'admin', file: string): Error | undefined {
  const { code, port, address } = (error ?? {}) as NodeJS.ErrnoException & { port?: number; address?: string }
  if (port === undefined) return undefined
  if (code === 'EADDRINUSE')
    return new Error(`${address}:${port} is taken by another program.\nStop it, or choose another address under ${section}: in ${file}.`)
  if (code === 'EACCES')
    return new Error(`${address}:${port} may not be listened on.\nChoose a port above 1023 under ${section}: in ${file}.`)
  return undefined
}

/** The first signal is told; the second ends the process at once. */
class Stopping {
  readonly asked: Promise<string>

  constructor() {
    this.asked = new Promise(resolve => {
      let asked = false
      for (const signal of ['SIGTERM', 'SIGINT'] as const) {
        process.on(signal, () => {
          if (asked) process.exit(signal === 'SIGINT' ? 130 : 143)
          asked = true
          resolve(signal)
        })
      }
    })
  }
}

function makeLog(config: Config): Log {
  const terminal = process.stdout.isTTY === true
  const format = config.log.format === 'auto' ? (terminal ? 'pretty' : 'json') : config.log.format
  const color = terminal && process.env.NO_COLOR === undefined
  const now = Date.now
  const output = createOutput(toDescriptor(1), {
    pendingMax: LOG_PENDING_MAX,
    rest: terminal ? 0 : LOG_REST_MS,
    dropped: droppedLine(format, color, now),
  })
  return createLog({ format, level: config.log.level, color, output, now })
}

function greet(gateway: Gateway, io: Io, log: Log): void {
  const { config, listener, ops, admin, adminToken } = gateway
  const address = `${config.tls === null ? 'http' : 'https'}://${shown(listener.host)}:${listener.port}`
  if (process.stdout.isTTY !== true) {
    log.info('listening', {
      address,
      ...(ops === null ? {} : { ops: `http://${shown(ops.host)}:${ops.port}` }),
      ...(admin === null ? {} : { admin: `http://${shown(admin.host)}:${admin.port}` }),
      version: VERSION,
      file: config.file,
    })
    if (admin !== null && config.admin_token === null) {
      log.warn('nobody can open the page: its token is shown on a terminal only; set admin_token')
    }
    return
  }
  const lines = [
    `model-gateway ${VERSION} listens on ${address}`,
    ...(admin === null
      ? []
      : [
          `page       http://${shown(admin.host)}:${admin.port}/${config.admin_token === null ? `#token=${adminToken}` : ' (opens with admin_token)'}`,
        ]),
    ...(ops === null ? [] : [`metrics    http://${shown(ops.host)}:${ops.port}/metrics`]),
    `providers  ${[...config.providers.values()].map(({ name, kind, api_key }) => `${name}${api_key === null && kind !== 'sandbox' ? ' (no key)' : ''}`).join(', ')}`,
    `models     ${config.models.size}, keys ${config.keys.size}, policies ${config.policies.map(({ use }) => use).join(' ')}`,
    `ledger     ${config.ledger.path} (durability: ${config.ledger.durability})`,
    '',
    ...curl(config, address),
  ]
  io.stdout(`${lines.join('\n')}\n`)
}

/** A call that can be pasted: with the demo key where it is configured, else with a variable that is to hold a key. */
function curl(config: Config, address: string): string[] {
  const model = [...config.aliases.keys()][0] ?? [...config.models.keys()][0]
  if (model === undefined) return []
  const demo = sha256Of(DEMO_SECRET)
  const known = [...config.keys.values()].some(key => key.sha256 === demo)
  const header = config.keys.size === 0 ? '' : ` -H "authorization: Bearer ${known ? DEMO_SECRET : '$API_KEY'}"`
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] })
  return [`curl ${address}/v1/chat/completions${header} -H "content-type: application/json" -d '${body}'`]
}

function shown(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
