import { readdirSync, readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'

/*
 * Every manifest as the API server would take it with strict field validation: by the compiled schemas of its kind, and with no field that
 * they do not know. The schemas themselves leave unknown fields alone, so each object is handed to them behind a proxy that notes what is
 * asked for: what they never asked for, they do not know.
 */

const FOLDER = new URL('../../config/deploy/kubernetes/', import.meta.url)
const CORE = ['kubernetes-models', 'IoK8sApi']
const OPERATOR = ['@kubernetes-models/prometheus-operator', 'ComGithubPrometheusOperatorPrometheusOperatorPkgApis']
const SCHEMAS = {
  'v1 ConfigMap': [...CORE, 'CoreV1ConfigMap'],
  'v1 PersistentVolumeClaim': [...CORE, 'CoreV1PersistentVolumeClaim'],
  'v1 Service': [...CORE, 'CoreV1Service'],
  'apps/v1 Deployment': [...CORE, 'AppsV1Deployment'],
  'apps/v1 StatefulSet': [...CORE, 'AppsV1StatefulSet'],
  'monitoring.coreos.com/v1 PodMonitor': [...OPERATOR, 'MonitoringV1PodMonitor'],
  'monitoring.coreos.com/v1 ServiceMonitor': [...OPERATOR, 'MonitoringV1ServiceMonitor'],
}

async function faults(manifest) {
  const schema = SCHEMAS[`${manifest.apiVersion} ${manifest.kind}`]
  if (schema === undefined) return [`there is no schema here for ${manifest.apiVersion} ${manifest.kind}`]
  const [from, prefix, name] = schema
  // One of the packages exports its schemas under no name.
  const { validate } = await import(new URL(`node_modules/${from}/_schemas/${prefix}${name}.js`, import.meta.url))
  const { value, unread } = noted(manifest)
  const valid = validate(value)
  const wrong = valid ? [] : validate.errors.map(({ instancePath, message }) => `${instancePath || '/'} ${message}`)
  return [...wrong, ...unread().map(path => `${path} is no field that there is`)]
}

/** The same value, and afterwards the paths of those of its fields that nobody has looked at. */
function noted(root) {
  const seen = new Map()
  const wrap = (value, path) => {
    if (typeof value !== 'object' || value === null) return value
    const fields = new Set()
    seen.set(path, { value, fields })
    return new Proxy(value, {
      get(target, name) {
        if (typeof name === 'string') fields.add(name)
        const found = target[name]
        return Object.hasOwn(target, name) ? wrap(found, `${path}/${name}`) : found
      },
    })
  }
  const unread = () =>
    [...seen].flatMap(([path, { value, fields }]) =>
      Array.isArray(value) ? [] : Object.keys(value).flatMap(name => (fields.has(name) ? [] : [`${path}/${name}`])),
    )
  return { value: wrap(root, ''), unread }
}

/** A copy with another value at a path. */
function changed(manifest, path, value) {
  const copy = structuredClone(manifest)
  const at = path.slice(0, -1).reduce((below, step) => below[step], copy)
  at[path.at(-1)] = value
  return copy
}

let manifests = 0
let wrong = 0
const say = text => process.stdout.write(`${text}\n`)
const all = []
for (const file of readdirSync(FOLDER).sort()) {
  for (const document of parseAllDocuments(readFileSync(new URL(file, FOLDER), 'utf8'), { version: '1.1' })) {
    const manifest = document.toJS()
    all.push(manifest)
    const found = await faults(manifest)
    manifests++
    wrong += found.length
    for (const fault of found) say(`${file}: ${manifest.kind} ${manifest.metadata?.name}: ${fault}`)
  }
}

// The check can say no: each of these is a slip that a person makes.
const of = kind => all.find(manifest => manifest.kind === kind)
const pod = ['spec', 'template', 'spec']
const slips = [
  [of('Deployment'), ['spec', 'replicas'], 'one'],
  [of('Deployment'), ['spec', 'replica'], 1],
  [of('Deployment'), [...pod, 'containers', 0, 'readinessProbes'], {}],
  [of('Deployment'), [...pod, 'containers', 0, 'securityContext', 'readonlyRootFilesystem'], true],
  [of('StatefulSet'), [...pod, 'initContainers', 0, 'ports', 0, 'containerPort'], '9090'],
  [of('StatefulSet'), [...pod, 'initContainers', 0, 'volumeMounts', 0, 'mountPath'], undefined],
  [of('Service'), ['spec', 'ports', 0, 'port'], null],
  [of('PodMonitor'), ['spec', 'podMetricsEndpoints', 0, 'every'], '15s'],
  [of('ServiceMonitor'), ['spec', 'endpoints', 0, 'interval'], 15],
]
let caught = 0
for (const [manifest, path, value] of slips) {
  if ((await faults(changed(manifest, path, value))).length > 0) caught++
  else say(`a slip is not noticed: ${manifest.kind} ${path.join('.')}: ${JSON.stringify(value)}`)
}
wrong += slips.length - caught
say(`${manifests} manifests, ${wrong} faults; ${caught} of ${slips.length} slips noticed`)
process.exitCode = wrong === 0 && manifests > 0 ? 0 : 1
