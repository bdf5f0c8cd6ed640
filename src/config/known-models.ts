import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { ModelDraft } from './draft.js'

/** What is certain of a well-known model; what is absent is not known. */
export type KnownModel = Partial<Pick<ModelDraft, 'max_output_tokens' | 'context' | 'cap' | 'parameters' | 'surfaces'>>

const FOLDER = new URL('../../../config/models/', import.meta.url)

/**
 * Finds what is known of a provider's model, by the kind of the provider (one that exists) and its own name for the model:
 * `config/models/<kind>.yaml`. Each file is read when its kind is first asked for. Most kinds have none, and of most models nothing is known.
 */
export function knownModels(folder: URL = FOLDER): (kind: string, upstream: string) => KnownModel {
  const files = new Map<string, ReadonlyMap<string, KnownModel>>()
  return (kind, upstream) => {
    // The same models by another wire: gemini-compat is gemini.
    const name = kind.replace(/-compat$/, '')
    let models = files.get(name)
    if (models === undefined) {
      models = read(new URL(`${name}.yaml`, folder))
      files.set(name, models)
    }
    return models.get(upstream) ?? {}
  }
}

function read(file: URL): ReadonlyMap<string, KnownModel> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map()
    throw error
  }
  return new Map(Object.entries(parse(text) as Record<string, KnownModel>))
}
