import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'

const here = import.meta.dirname
const named = process.argv.slice(2)
const files = (named.length > 0 ? named : readdirSync(here).filter(name => name.endsWith('.test.mjs'))).map(name => join(here, name))

const counts = { passed: 0, failed: 0 }
// One at a time: a browser takes all that the machine has, and times are measured.
const stream = run({ files, concurrency: 1, timeout: 180_000 })
stream.on('test:pass', () => counts.passed++)
stream.on('test:fail', () => counts.failed++)
stream
  .compose(new spec())
  .on('end', () => {
    console.log(`${counts.passed} passed, ${counts.failed} failed`)
    process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0
  })
  .pipe(process.stdout, { end: false })
