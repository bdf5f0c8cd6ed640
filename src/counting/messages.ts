import type { Surface } from '../endpoints/endpoint.js'

/** A request whose input is to be counted. */
export interface CountWork {
  readonly surface: Surface
  /** The provider's own name for the model. */
  readonly model: string
  /** The client's body: JSON. */
  readonly bytes: readonly Uint8Array[]
}

export type ToTokenizer = CountWork & { readonly id: number }

/** `ready` once, or why there is nothing that counts; then what each request came to. What failed is told by its class alone: a message could quote a prompt. */
export type FromTokenizer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'none'; readonly reason: string }
  | { readonly kind: 'counted'; readonly id: number; readonly tokens: number }
  | { readonly kind: 'failed'; readonly id: number; readonly reason: string }
