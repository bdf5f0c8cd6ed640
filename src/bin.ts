#!/usr/bin/env node
// The native module below dies of its own on an old Node; this says it first, and says what to do. Nothing may be imported statically here.
const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && (minor < 18 || (minor === 18 && patch < 1)))) {
  process.stderr.write(`model-gateway needs Node.js 20.18.1 or newer; this is ${process.versions.node}.\n`)
  process.stderr.write('Install Node.js 24 (https://nodejs.org), or choose it with your version manager: nvm install 24.\n')
  process.exit(2)
}
const nodeModule = (await import('node:module')) as { enableCompileCache?: () => void }
nodeModule.enableCompileCache?.()
const { main } = await import('./cli.js')
// `usage | head`: the reader has seen enough, which is no failure. The gateway itself writes its log in another way.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})
process.exitCode = await main(process.argv.slice(2), {
  stdout: text => void process.stdout.write(text),
  stderr: text => void process.stderr.write(text),
  env: process.env,
  cwd: process.cwd(),
})

export {}
