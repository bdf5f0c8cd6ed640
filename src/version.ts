import { readFileSync } from 'node:fs'
import { PACKAGE } from './paths.js'

/** Of the package. */
export const VERSION: string = (JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as { readonly version: string }).version
