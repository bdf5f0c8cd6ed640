import type { Findings } from './findings.js'
import type { Path } from './problems.js'
import { conform } from './schema.js'

/** The kind's own settings at a path, held against the schema that the kind has for them. */
export function readOptions(
  findings: Findings,
  path: Path,
  kind: string,
  schema: Parameters<typeof conform>[0] | undefined,
): Readonly<Record<string, unknown>> {
  const given = findings.source.raw(path) ?? {}
  if (typeof given !== 'object') return {}
  if (schema === undefined) {
    if (Object.keys(given).length > 0) findings.wrong(path, `the kind ${JSON.stringify(kind)} has no such settings`)
    return {}
  }
  const { value, problems } = conform(schema, given, path)
  findings.problems.push(...problems)
  return (value ?? {}) as Readonly<Record<string, unknown>>
}
