import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Fill } from './document.js'
import { didYouMean } from './suggest.js'

/** Reads a file as text; throws as `readFileSync` does. */
export type ReadFile = (path: string) => string

export interface Variables {
  readonly fill: Fill
  /** Absolute paths of all files that were read, or should have been. */
  readonly files: ReadonlySet<string>
  /** What an operator should know: a file that everybody can read. */
  readonly warnings: readonly string[]
}

/**
 * Fills `${VAR}`, `${VAR:-default}` (the default where VAR is absent or empty) and `${file:path}` (relative to `folder`; one line break at
 * its end is dropped) into text; `$${` stands for `${`. What is filled in is not searched for variables again.
 */
export function variables(env: Readonly<Record<string, string | undefined>>, folder: string, readFile: ReadFile = readText): Variables {
  const wanted = new Set<string>()
  const files = new Map<string, string>()
  const warnings: string[] = []

  const file = (path: string): string => {
    const absolute = resolve(folder, path)
    const known = files.get(absolute)
    if (known !== undefined) return known
    wanted.add(absolute)
    const text = readFile(absolute).replace(/\r?\n$/, '')
    files.set(absolute, text)
    const open = openToAll(absolute)
    if (open !== null) warnings.push(open)
    return text
  }

  const variable = (expression: string): string => {
    if (expression.startsWith('file:')) {
      const path = expression.slice('file:'.length)
      if (path === '') throw new Unfilled(`\`\${file:}\` names no file`)
      try {
        return file(path)
      } catch (error) {
        throw new Unfilled(`cannot read ${resolve(folder, path)}: ${reason(error)}`)
      }
    }
    const [, name, fallback] = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(expression) ?? []
    if (name === undefined)
      throw new Unfilled(`\`\${${expression}}\` is none of \${VAR}, \${VAR:-default} and \${file:path}; $\${ is a literal \${`)
    const value = env[name]
    if (fallback !== undefined) return value === undefined || value === '' ? fallback : value
    if (value === undefined) throw new Unfilled(`the environment has no variable ${name}${didYouMean(name, Object.keys(env))}`)
    return value
  }

  const fill: Fill = text => {
    try {
      return {
        text: text.replace(/\$\$\{|\$\{([^}]*)(\}?)/g, (whole, expression: string | undefined, end: string) => {
          if (expression === undefined) return '${'
          if (end === '') throw new Unfilled(`\`${whole}\` has no closing }; $\${ is a literal \${`)
          return variable(expression)
        }),
      }
    } catch (error) {
      if (error instanceof Unfilled) return { problem: error.message }
      throw error
    }
  }
  return { fill, files: wanted, warnings }
}

/** A warning where every user of this machine can read a file that holds a secret. */
export function openToAll(path: string): string | null {
  return (modeOf(path) & 0o004) === 0 ? null : `${path} holds a secret and every user of this machine can read it: chmod o-r ${path}`
}

/** Why a file can not be read, in words that fit behind its name. */
export function reason(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null)?.code
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'this user may not read it'
  if (code === 'EISDIR') return 'it is a folder'
  return error instanceof Error ? error.message : String(error)
}

/** UTF-8; throws where the bytes are none, rather than reading a secret that was never written. A byte order mark is dropped. */
export function readText(path: string): string {
  return textOf(readBytes(path))
}

/** The same of what can be read once only, too: a pipe, or standard input. It may wait for who writes there. */
export function readStream(path: string): string {
  return textOf(readFileSync(path))
}

/** What a regular file holds. Throws for any other: a pipe would hold up all requests until somebody writes to it, /dev/zero for ever. */
export function readBytes(path: string): Buffer {
  const file = statSync(path)
  if (!file.isFile() && !file.isDirectory()) throw new Error('it is no regular file, which could be read again at any time')
  if (file.size > BYTES_MAX) throw new Error('it is larger than 64 MiB')
  return readFileSync(path)
}

const BYTES_MAX = 64 * 1024 * 1024

/** Bytes as text, by the rules of `readText`. */
export function textOf(bytes: Buffer): string {
  // The first TextDecoder of a process costs 5 ms.
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8')
  return bytes.toString('utf8').replace(/^\ufeff/, '')
}

class Unfilled extends Error {}

/** 0 where there is none: files of a test, or a system without modes. */
function modeOf(path: string): number {
  if (process.platform === 'win32') return 0
  return statSync(path, { throwIfNoEntry: false })?.mode ?? 0
}
