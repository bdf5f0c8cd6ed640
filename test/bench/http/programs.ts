import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { programFile } from '../../support/paths.js'

export const SECRET = 'mgk_bench_0123456789abcdef0123456789abcdef'
const HERE = import.meta.dirname
const ROOT = join(HERE, '..', '..', '..', '..')

/** A program under measurement, or one that is needed for it. */
export interface Program {
  readonly name: string
  readonly port: number
  readonly pid: number
  /** Of the page of metrics and probes, where there is one. */
  readonly ops: number | null
  /** Milliseconds from its start until it said that it listens. */
  readonly startedMs: number
  stop(): Promise<void>
}

/** CPU numbers: what is measured has the first to itself, the provider and the load share the second. */
const CORE = { measured: '0', others: '1' } as const

export function far(): Promise<Program> {
  return node('far', 'others', [join(HERE, 'far.js')])
}

export function pipe(origin: string): Promise<Program> {
  return node('pipe', 'measured', [join(HERE, 'pipe.js'), origin])
}

export interface GatewayFacts {
  readonly name: string
  readonly durability: 'process' | 'power'
  /** Where its config, its ledger and its log lie. */
  readonly folder: string
  readonly origin: string
  readonly keys?: number
  readonly models?: number
  /** What is run instead of the program as it is shipped. */
  readonly program?: string
}

/** The gateway with everything on, logging to a file. Ledger and log lie apart from the config, whose folder it watches. */
export async function gateway(facts: GatewayFacts, flags: readonly string[] = []): Promise<Program> {
  const file = join(facts.folder, `${facts.name}.yaml`)
  writeFileSync(file, yaml(facts))
  mkdirSync(join(facts.folder, 'logs'), { recursive: true })
  return node(
    facts.name,
    'measured',
    [...flags, facts.program ?? programFile(), 'serve', '--config', file],
    join(facts.folder, 'logs', `${facts.name}.log`),
  )
}

/** Every ceiling is set, and none is reached. */
export function yaml({ name, durability, folder, origin, keys = 1, models = 1 }: GatewayFacts): string {
  const sha = createHash('sha256').update(SECRET).digest('hex')
  const key = (id: string, digest: string): string =>
    `  ${id}: {account: acme, plan: paid, sha256: ${digest}, budget: {daily_tokens: 900000000000, daily_rial: 900000000000, monthly_rial: 9000000000000}}\n`
  let others = ''
  for (let i = 1; i < keys; i++) others += key(`app-${i}`, createHash('sha256').update(`key ${i}`).digest('hex'))
  let catalog = ''
  for (let i = 1; i < models; i++)
    catalog += `  up/model-${i}: {price: {input: 20000, output: 60000}, max_output_tokens: 4096, default_max_tokens: 512}\n`
  return `listen: 127.0.0.1:0
ops: 127.0.0.1:0
ledger: {path: ${join(folder, 'data', `${name}.db`)}, durability: ${durability}}
policies: [auth, rate, budget, hold]
log: {format: json}
providers:
  up: {kind: openai, base_url: ${origin}/v1, api_key: sk-bench, max_connections: 2048}
models:
  up/bench: {price: {input: 20000, output: 60000}, max_output_tokens: 4096, default_max_tokens: 512}
${catalog}plans:
  paid: {requests_per_minute: 100000000, requests_per_hour: 1000000000, requests_per_day: 10000000000, tokens_per_minute: 900000000000}
accounts:
  acme: {opening_balance_rial: 9000000000000}
keys:
${key('bench', sha)}${others}`
}

async function node(name: string, on: keyof typeof CORE, args: readonly string[], log?: string): Promise<Program> {
  const started = performance.now()
  const output = log === undefined ? ('pipe' as const) : openSync(log, 'w')
  const child = spawn('taskset', ['-c', CORE[on], process.execPath, ...args], { stdio: ['ignore', output, 'inherit'] })
  process.once('exit', () => child.kill())
  const ends = new Promise<never>((_, reject) => child.once('exit', code => reject(new Error(`${name} ended with ${code}`))))
  ends.catch(() => {})
  const told = await Promise.race([log === undefined ? said(child) : logged(log), ends])
  return { name, ...told, pid: child.pid as number, startedMs: performance.now() - started, stop: () => ended(child) }
}

type Ports = Pick<Program, 'port' | 'ops'>

function said(child: ChildProcess): Promise<Ports> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  return new Promise(resolve => lines.once('line', line => resolve({ port: (JSON.parse(line) as { port: number }).port, ops: null })))
}

async function logged(file: string): Promise<Ports> {
  for (;;) {
    const text = readFileSync(file, 'utf8')
    const port = /"message":"listening","address":"http:\/\/127.0.0.1:(\d+)"/.exec(text)?.[1]
    const ops = /"ops":"http:\/\/127.0.0.1:(\d+)"/.exec(text)?.[1]
    if (port !== undefined && ops !== undefined) return { port: Number(port), ops: Number(ops) }
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

/** A plain reverse proxy in front of `origin`. */
export async function nginx(folder: string, origin: string): Promise<Program> {
  const port = await freePort()
  const started = performance.now()
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `worker_processes 1; daemon off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log error;
events { worker_connections 8192; }
http {
  access_log off; client_body_buffer_size 64m; client_max_body_size 64m; client_body_temp_path ${folder}; proxy_temp_path ${folder};
  fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  keepalive_requests 1000000000;
  upstream far { server ${origin.replace('http://', '')}; keepalive 1024; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:${port} backlog=4096; location / { proxy_pass http://far; proxy_http_version 1.1; proxy_set_header connection ""; proxy_buffering off; } }
}`,
  )
  const child = spawn('taskset', ['-c', CORE.measured, 'nginx', '-c', file, '-p', folder], { stdio: 'ignore' })
  process.once('exit', () => child.kill())
  for (let i = 0; i < 100; i++) {
    await new Promise(resolve => setTimeout(resolve, 20))
    if (await answers(port)) break
  }
  if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`)
  return { name: 'nginx', port, ops: null, pid: child.pid as number, startedMs: performance.now() - started, stop: () => ended(child) }
}

/** Portkey's gateway, as its package starts. It is told where to go by header fields: see `portkeyFields`. */
export async function portkey(): Promise<Program> {
  const port = await freePort()
  const started = performance.now()
  const entry = join(ROOT, 'test', 'bench', 'others', 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js')
  const child = spawn('taskset', ['-c', CORE.measured, process.execPath, entry, `--port=${port}`, '--headless'], {
    stdio: 'ignore',
    env: { ...process.env, TRUSTED_CUSTOM_HOSTS: '127.0.0.1', NODE_ENV: 'production' },
  })
  process.once('exit', () => child.kill())
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`portkey ended with ${child.exitCode}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  return { name: 'portkey', port, ops: null, pid: child.pid as number, startedMs: performance.now() - started, stop: () => ended(child) }
}

export function portkeyFields(origin: string): Readonly<Record<string, string>> {
  return { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${origin}/v1` }
}

function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    () => true,
    () => false,
  )
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise(resolve => {
    if (child.exitCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill('SIGTERM')
  })
}

/** Nanoseconds of CPU time that a process and its children have used so far, all their threads together. */
export function cpuOf(pid: number): number {
  let sum = 0
  for (const one of [pid, ...childrenOf(pid)]) {
    for (const thread of readdirSync(`/proc/${one}/task`)) {
      sum += Number(readFileSync(`/proc/${one}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
    }
  }
  return sum
}

/** Bytes of memory that a process and its children have resident. */
export function rssOf(pid: number): number {
  let sum = 0
  for (const one of [pid, ...childrenOf(pid)])
    sum += Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${one}/status`, 'utf8'))?.[1] ?? 0) * 1024
  return sum
}

function childrenOf(pid: number): number[] {
  // Not every kernel lists children of a process by itself.
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number)
}

function parentOf(pid: string): number | null {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    // It has ended meanwhile.
    return null
  }
}

function freePort(): Promise<number> {
  return new Promise(resolve => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
