import { fileURLToPath } from 'node:url'

/** The root of the repository, seen from the compiled tests. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** The program, compiled. */
export const BIN = `${ROOT}dist/src/bin.js`
export const FIXTURES = `${ROOT}test/fixtures/`
