import type { Surface } from '../../../endpoints/endpoint.js'
import { isObject } from '../../../json.js'
import type { Call } from '../provider.js'
import { chat } from './chat.js'
import { completions } from './completions.js'
import { embeddings } from './embeddings.js'
import { moderations } from './moderations.js'
import type { SandboxOptions } from './options.js'
import { rerank } from './rerank.js'
import type { Refused, Said, Spoken, Streamed } from './spoken.js'

/*
 * The sandbox's own wire. What it says to a request is made up where the request is translated, which for a large one is another thread:
 * what it is sent is its cue, one line of JSON, and behind it the answer, where that is one text.
 */

const SURFACES: { readonly [S in Surface]: (spoken: Spoken) => Said } = { chat, completions, rerank, moderations, embeddings }

export type Cue = { readonly kind: 'json'; readonly tokens: number; readonly text: Buffer } | Streamed | Refused

/** What the sandbox is sent. Never throws. */
export function cueOf(call: Call): string {
  const said = saidTo(call)
  if (said.kind !== 'json') return `${JSON.stringify(said)}\n`
  return `${JSON.stringify({ kind: 'json', tokens: said.tokens })}\n${JSON.stringify(said.body)}`
}

/** The same, read again. What is no cue is answered as a server would answer a request that it can not read. */
export function readCue(sent: string | Uint8Array): Cue {
  const bytes = typeof sent === 'string' ? Buffer.from(sent) : Buffer.from(sent.buffer, sent.byteOffset, sent.byteLength)
  const end = bytes.indexOf(10)
  try {
    const cue: unknown = JSON.parse(bytes.toString('utf8', 0, end))
    if (isObject(cue))
      return cue.kind === 'json'
        ? { kind: 'json', tokens: Number(cue.tokens), text: bytes.subarray(end + 1) }
        : (cue as unknown as Streamed | Refused)
  } catch {
    // Said below.
  }
  return { kind: 'refusal', failure: { status: 400, message: 'The sandbox could not read its request.' } }
}

function saidTo(call: Call): Said {
  try {
    return SURFACES[call.surface]({ body: call.body, call, options: call.model.options as SandboxOptions })
  } catch (error) {
    return { kind: 'refusal', failure: { status: 500, message: `The sandbox could not answer: ${(error as Error).message}` } }
  }
}
