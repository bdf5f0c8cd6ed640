/*
 * The provider that answers by itself: no account, no network, no model. It is for the first run, for tests, and for trying one's own code
 * against trouble that real providers only make at night. `kind: sandbox` in gateway.yaml:
 *
 *     providers:
 *       sandbox: {kind: sandbox}
 *     models:
 *       sandbox/echo:    {price: {input: 20000, output: 60000}}
 *       sandbox/slow:    {price: free, options: {first_byte: 800, pace: 40}}
 *       sandbox/flaky:   {price: free, options: {fail: {status: 503, times: 2}}}
 *       sandbox/breaks:  {price: free, options: {fail: {status: 500, after_events: 5}}}
 *
 * Same request, same answer, save ids and times. What it does with each surface:
 *
 * - chat says «You said: » and the last user message, in pieces of a word each, which are also its tokens. It honours `n`, `stop`, both
 *   spellings of the cap, `stream_options.include_usage` and `response_format` (a minimal object of the schema). A function is called when
 *   `tool_choice` demands it, or when the last user message names it, with minimal arguments made from its schema; the result that comes
 *   back is repeated.
 * - completions do the same with the prompt, and honour `echo`.
 * - embeddings give a unit vector made from a hash of the text: 8 dimensions, or as many as asked for (at most 4096).
 * - rerank scores a document by the share of the query's words that stand in it.
 * - moderations flag plain words: «violence», «kill», «hate», «suicide» and so on.
 *
 * A model's `options` (all off by default; times in milliseconds):
 *
 *     reply: text               say this instead
 *     tokens: 200               exactly so many pieces, the text repeated or cut
 *     first_byte: 800           silence before the answer
 *     pace: 40                  silence between two pieces (an answer that is no stream comes after all of them)
 *     usage: omit               report none; or figures to report instead: {input: 10, output: 5, cached: 4, reasoning: 2, total: 15}
 *     ignore_stream: true       answer a stream request with JSON
 *     fail: {status: 429, code: …, message: …, retry_after: 7, times: 2, after_events: 5}
 *                               the first `times` requests (default: all) fail with that status; with `after_events` a stream begins,
 *                               and an error comes inside it after so many events
 *     cut: 5                    the answer ends after so many events, without a finish
 *     reset: 5                  the connection breaks after so many events; 0: before any answer
 *     hang: true                never answer
 *     refuse: true              no connection, as if no server listened
 *
 * Where several are set, the first of refuse, hang, fail, reset, cut counts. The provider's `timeout` (first_byte, idle, total) holds as
 * it does for a server.
 */
import type { ProviderSettings } from '../../config/config.js'
import type { Provider, Transport, Wire } from './provider.js'
import { answer } from './sandbox/answer.js'
import { cueOf } from './sandbox/cue.js'
import { modelOptions, type SandboxOptions } from './sandbox/options.js'
import { Playback } from './sandbox/playback.js'

export default {
  kind: 'sandbox',
  baseUrl: 'sandbox:',
  wires: {
    chat: at('/chat/completions'),
    completions: at('/completions'),
    rerank: at('/rerank'),
    moderations: at('/moderations'),
    embeddings: at('/embeddings'),
  },
  authorize: () => ({}),
  modelOptions,
  transport,
} satisfies Provider

function at(path: string): Wire & Required<Pick<Wire, 'text'>> {
  return { path: () => path, text: cueOf }
}

/** `close` lets the answers that are under way come to their end, refuses new ones, and resolves when none is left. */
function transport(settings: ProviderSettings): Transport {
  const playing = new Set<Playback>()
  /** How often each model has failed on purpose. */
  const failures = new Map<string, number>()
  let closed: (() => void) | undefined

  function fails(model: string, options: SandboxOptions): boolean {
    if (options.fail === undefined) return false
    const before = failures.get(model) ?? 0
    if (before >= (options.fail.times ?? Number.POSITIVE_INFINITY)) return false
    failures.set(model, before + 1)
    return true
  }

  return {
    send(request, receiver) {
      const { id, options } = request.call.model
      const playback = new Playback(
        answer(request, closed === undefined ? options : { refuse: true }, () => fails(id, options)),
        receiver,
        settings.timeout,
        () => {
          playing.delete(playback)
          if (playing.size === 0) closed?.()
        },
      )
      playing.add(playback)
      return playback
    },
    close() {
      return new Promise(resolve => {
        const before = closed
        closed = () => {
          before?.()
          resolve()
        }
        if (playing.size === 0) closed()
      })
    },
  }
}
