import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Registry } from 'prom-client'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfig } from '../src/config/load.js'
import { define } from '../src/telemetry/definitions.js'
import { loadKinds } from '../src/upstream/kinds.js'
import type { Parsed } from './support/parsed.js'
import { ROOT } from './support/paths.js'

const DEPLOY = `${ROOT}config/deploy/`
const DOCKERFILE = readFileSync(`${DEPLOY}Dockerfile`, 'utf8')

function manifests(file: string): Parsed[] {
  return parseAllDocuments(readFileSync(`${DEPLOY}kubernetes/${file}`, 'utf8'), { version: '1.1' }).map(document => document.toJS())
}

t.test('what the image has is enough to run', async t => {
  const folder = t.testdir()
  const copied = [...DOCKERFILE.matchAll(/^COPY --from=build \/app\/(\S+) \.\/(\S+)$/gm)]
  t.ok(copied.length >= 4)
  for (const [, from = '', to = ''] of copied) {
    t.equal(from, to)
    if (from === 'node_modules') symlinkSync(ROOT + from, join(folder, to))
    else cpSync(ROOT + from, join(folder, to), { recursive: true })
  }
  const [, entry = ''] = /ENTRYPOINT \["\/nodejs\/bin\/node", "\/app\/([^"]+)"\]/.exec(DOCKERFILE) ?? []
  const env = { ...process.env, OPENAI_API_KEY: 'sk-1', MISTRAL_API_KEY: 'k', APP_KEY: 'mgk_0123456789abcdef' }
  const check = (file: string): string =>
    execFileSync(process.execPath, [join(folder, entry), 'check', '-c', ROOT + file], { cwd: folder, encoding: 'utf8', env, stdio: 'pipe' })
  t.match(check('gateway.yaml'), /sandbox\/echo/)
  t.match(check('config/examples/catalog.yaml'), /openai\/gpt-4o:[\s\S]*context: 128000/, 'with what is known of models')
})

t.test('the image: built on the Debian that it runs on, with the same Node, for a user that is not root', async t => {
  const [, node = '', debian = ''] = /^FROM node:(\d+)-(\w+) AS build$/m.exec(DOCKERFILE) ?? []
  const [, runtime, release, user] = /^FROM gcr\.io\/distroless\/nodejs(\d+)-debian(\d+):(\w+)$/m.exec(DOCKERFILE) ?? []
  t.strictSame({ node: runtime, debian: release, user }, { node, debian: String({ bookworm: 12, trixie: 13 }[debian]), user: 'nonroot' })
  t.equal(node, '24')
  t.equal(DOCKERFILE.match(/^FROM /gm)?.length, 2, 'what builds it is not in it')
  t.notMatch(DOCKERFILE, /^(ENV|ARG) .*(KEY|SECRET|TOKEN)/m)
})

for (const file of ['sidecar.yaml', 'gateway.yaml']) {
  t.test(`kubernetes/${file}: a pod that can run, and a config that fits it`, async t => {
    const all = manifests(file)
    const kind = (name: string) => all.find(one => one.kind === name)
    const workload = kind('StatefulSet') ?? kind('Deployment')
    const { template } = workload.spec
    const pod = template.spec
    const [container] = [...(pod.initContainers ?? []), ...pod.containers].filter(one => one.image.startsWith('model-gateway:'))
    t.strictSame(template.metadata.labels.app, workload.spec.selector.matchLabels.app)

    t.equal(pod.securityContext.fsGroup, container.securityContext.runAsUser)
    t.match(container.securityContext, { runAsNonRoot: true, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false })
    t.ok(container.resources.requests && container.resources.limits)
    const mounts: { name: string; mountPath: string; readOnly?: boolean; subPath?: string }[] = container.volumeMounts
    t.ok(
      mounts.every(mount => mount.subPath === undefined),
      'a file that is mounted by itself never changes',
    )
    const writable = mounts.filter(mount => mount.readOnly !== true)
    t.equal(writable.length, 1, 'one writable volume')
    const claims = workload.spec.volumeClaimTemplates ?? []
    const volumes = [...pod.volumes, ...claims.map((claim: Parsed) => claim.metadata)].map(volume => volume.name)
    t.strictSame(mounts.map(mount => mount.name).sort(), volumes.sort(), 'every volume is there and is used')

    const [, command = ''] = /CMD \["serve", "-c", "([^"]+)"\]/.exec(DOCKERFILE) ?? []
    const configMap = pod.volumes.find((volume: Parsed) => volume.configMap).configMap.name
    t.equal(mounts.find(mount => mount.name === 'config')?.mountPath, dirname(command))
    const map = all.find(one => one.kind === 'ConfigMap' && one.metadata.name === configMap)
    const secrets = mounts.find(mount => mount.name === 'secrets')?.mountPath ?? ''
    t.equal(pod.volumes.find((volume: Parsed) => volume.secret).secret.defaultMode, 0o440, 'not for every user')
    const read: string[] = []
    const readFile = (path: string): string => {
      if (path === command) return map.data['gateway.yaml']
      read.push(path)
      return `secret-of-${path}`
    }
    const { config, warnings } = loadConfig(command, { env: {}, kinds: await loadKinds(), readFile })
    t.strictSame(warnings, [])
    t.ok(read.length > 0 && read.every(path => path.startsWith(`${secrets}/`)), 'secrets are files of the volume')
    t.ok(config.ledger.path.startsWith(`${writable[0]?.mountPath}/`), 'the ledger lies on the writable volume')
    t.ok(config.drain_timeout / 1000 < pod.terminationGracePeriodSeconds, 'requests may end before the pod is killed')
    const ops = container.ports.find((port: Parsed) => port.name === 'ops')
    t.strictSame(config.ops, { host: '0.0.0.0', port: ops.containerPort })
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) t.equal(container[probe].httpGet.port, 'ops', probe)
    t.equal(container.livenessProbe.httpGet.path, '/livez')
    t.equal(container.readinessProbe.httpGet.path, '/readyz')
    const http = container.ports.find((port: Parsed) => port.name === 'http')
    t.strictSame(config.listen, http === undefined ? { host: '127.0.0.1', port: 8080 } : { host: '0.0.0.0', port: http.containerPort })
    const [monitor] = manifests('podmonitor.yaml')
    t.ok(
      monitor.spec.selector.matchExpressions.every(({ key }: { key: string }) => key in template.metadata.labels),
      'it is scraped',
    )
    t.equal(monitor.spec.podMetricsEndpoints[0].port, ops.name)
  })
}

t.test('a ServiceMonitor finds the gateway for all by its ops port, and by nothing else', async t => {
  const [service, monitor] = manifests('servicemonitor.yaml')
  const { template } = manifests('gateway.yaml').find(one => one.kind === 'Deployment').spec
  const [[label, value]] = Object.entries(service.spec.selector) as [[string, string]]
  t.equal(template.metadata.labels[label], value)
  t.strictSame(monitor.spec.selector.matchLabels, service.metadata.labels)
  const [port] = service.spec.ports
  t.equal(monitor.spec.endpoints[0].port, port.name)
  t.strictSame(
    template.spec.containers[0].ports.find(({ name }: Parsed) => name === port.targetPort),
    { name: 'ops', containerPort: port.port },
  )
})

t.test('the sidecar is one, and its app finds it', async t => {
  const all = manifests('sidecar.yaml')
  const set = all.find(one => one.kind === 'StatefulSet').spec
  const { spec } = set.template
  const service = all.find(one => one.kind === 'Service')
  t.match(service, { metadata: { name: set.serviceName }, spec: { clusterIP: 'None', selector: set.selector.matchLabels } })
  t.equal(spec.initContainers[0].restartPolicy, 'Always')
  t.match(spec.containers[0].env, [{ name: 'OPENAI_BASE_URL', value: 'http://127.0.0.1:8080/v1' }])
})

t.test('one gateway for all never has a second owner of its ledger', async t => {
  const all = manifests('gateway.yaml')
  const { spec } = all.find(one => one.kind === 'Deployment')
  t.equal(spec.replicas, 1)
  t.equal(spec.strategy.type, 'Recreate')
  t.strictSame(
    all.find(one => one.kind === 'Service').spec.ports,
    [{ name: 'http', port: 80, targetPort: 'http' }],
    'ops is not in the service',
  )
})

t.test('alerts ask for metrics and labels that there are, and each has a test', async t => {
  const registry = new Registry()
  define(registry)
  const known = new Set(registry.getMetricsAsArray().map(({ name }) => name))
  const text = readFileSync(`${DEPLOY}prometheus/alerts.yaml`, 'utf8')
  for (const [name] of text.matchAll(/model_gateway_\w+/g)) t.ok(known.has(name.replace(/_(bucket|sum|count)$/, '')), name)
  const { groups } = parse(text) as { groups: { rules: { alert: string }[] }[] }
  const tested = readFileSync(`${DEPLOY}prometheus/alerts.test.yaml`, 'utf8')
  for (const { alert } of groups.flatMap(({ rules }) => rules)) t.match(tested, `alertname: ${alert}\n`, alert)
})

const promtool = spawnSync('promtool', ['--version']).status === 0
t.test('promtool agrees with the alerts', { skip: promtool ? false : 'promtool is not installed' }, async t => {
  const cwd = `${DEPLOY}prometheus`
  for (const args of [
    ['check', 'rules', 'alerts.yaml'],
    ['test', 'rules', 'alerts.test.yaml'],
  ]) {
    const { status, stdout, stderr } = spawnSync('promtool', args, { cwd, encoding: 'utf8' })
    t.equal(status, 0, `promtool ${args.join(' ')}: ${stdout}${stderr}`)
  }
})

t.test('manifests are all looked at', async t => {
  t.strictSame(readdirSync(`${DEPLOY}kubernetes`).sort(), ['gateway.yaml', 'podmonitor.yaml', 'servicemonitor.yaml', 'sidecar.yaml'])
  t.ok(existsSync(`${DEPLOY}Dockerfile.dockerignore`))
})
