/*
 * What runs is a bundle: lib/, of what tsc has made in dist/. By itself, a start would read 209 files of the gateway, a third of a millisecond each; so it reads
 * thirty. What is found by its name, and not imported (src/paths.ts), stays a file of its own: verbs, kinds of providers, policies, threads. What these
 * share lies in src/, where paths.ts is right from every file. Of the packages yaml is in it, from the modules that it has for bundlers: its 71 files took
 * longer than all of ours. The others are not: they are installed, and brought up to date, by themselves. `npm run build` runs it; paths are the package's.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'

const FILES = [
  ...['src/bin', 'src/index', 'src/counting/thread', 'src/offload/thread', 'src/workers/process'],
  ...['src/commands', 'src/upstream/providers', 'policies'].flatMap(sources),
]

// Not of dist/, where a source that is gone is still there.
function sources(folder) {
  const files = readdirSync(folder).filter(file => file.endsWith('.ts'))
  return files.map(file => `${folder}/${file.slice(0, -'.ts'.length)}`)
}

const { exports } = JSON.parse(readFileSync('node_modules/yaml/package.json', 'utf8'))
const YAML = resolve('node_modules/yaml', exports['.'].default)

export default {
  input: Object.fromEntries(FILES.map(file => [file, `dist/${file}.js`])),
  external: id => /^[^./]/.test(id) && id !== 'yaml',
  // There is nothing that nobody uses; to find that out is a third of the time.
  treeshake: false,
  output: {
    dir: 'lib',
    // Each has code of many rooms: no name of one would be true.
    chunkFileNames: ({ name }) => (name === 'yaml' ? 'src/yaml.js' : 'src/part.js'),
    manualChunks: id => (id.includes('/node_modules/yaml/') ? 'yaml' : undefined),
    banner: ({ name }) => (name === 'yaml' ? `/*\n${readFileSync('node_modules/yaml/LICENSE', 'utf8')}*/` : ''),
    // A verb reads some code that it does not need, and fewer files: 10 ms of a start.
    experimentalMinChunkSize: 20_000,
    generatedCode: 'es2015',
    minifyInternalExports: false,
  },
  plugins: [
    { name: 'yaml', resolveId: id => (id === 'yaml' ? YAML : null) },
    { name: 'nothing-old', renderStart: () => rmSync('lib', { recursive: true, force: true }) },
  ],
}
