import { readdirSync, readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { PACKAGE } from '../paths.js'
import type { ModelDraft } from './draft.js'

/** What is certain of a well-known model; what is absent is not known. */
export type KnownModel = Partial<Pick<ModelDraft, 'max_output_tokens' | 'context' | 'cap' | 'parameters' | 'surfaces'>>

const FOLDER = new URL('config/models/', PACKAGE)

/** What is known of providers' models: `config/models/<name>.yaml`. Each file is read when it is first asked for. */
export class KnownModels {
  readonly #folder: URL
  readonly #files = new Map<string, ReadonlyMap<string, KnownModel>>()

  constructor(folder: URL = FOLDER) {
    this.#folder = folder
  }

  /** What files there are, by name. */
  names(): string[] {
    const files = readdirSync(this.#folder).filter(file => file.endsWith('.yaml'))
    return files.map(file => file.slice(0, -'.yaml'.length)).sort()
  }

  /** All models of one file, by the provider's own names; none where there is no such file. */
  all(name: string): ReadonlyMap<string, KnownModel> {
    let models = this.#files.get(name)
    if (models === undefined) {
      models = read(new URL(`${name}.yaml`, this.#folder))
      this.#files.set(name, models)
    }
    return models
  }

  /** What is known of one model, by its provider's kind (one that exists) and its own name there. Of most models that is nothing. */
  of(kind: string, upstream: string): KnownModel {
    return this.all(makerOf(kind)).get(upstream) ?? {}
  }
}

/** Whose models a kind reaches: gemini-compat those of gemini, by another wire. */
export function makerOf(kind: string): string {
  return kind.replace(/-compat$/, '')
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
