import type { SseEvent } from '../../src/upstream/providers/provider.js'

/** Reads a byte stream of server-sent events in whatever pieces it comes: the standard's rules, written for being right and not for being fast. */
export function sseEvents(pieces: Iterable<Uint8Array>): SseEvent[] {
  const decoder = new TextDecoder('utf-8')
  let text = ''
  for (const piece of pieces) text += decoder.decode(piece, { stream: true })
  text += decoder.decode()
  const events: SseEvent[] = []
  let event = ''
  let data: string[] = []
  for (const line of text.split(/\r\n|\n|\r/)) {
    if (line === '') {
      if (data.length > 0) events.push({ ...(event === '' ? {} : { event }), data: data.join('\n') })
      event = ''
      data = []
      continue
    }
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (field === 'data') data.push(value)
    else if (field === 'event') event = value
  }
  return events
}

/** The bytes one by one. */
export function* singly(bytes: Uint8Array): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at++) yield bytes.subarray(at, at + 1)
}

/** The bytes in two pieces, for every place where they can be cut. */
export function* inTwo(bytes: Uint8Array): Iterable<readonly [Uint8Array, Uint8Array]> {
  for (let at = 0; at <= bytes.length; at++) yield [bytes.subarray(0, at), bytes.subarray(at)]
}
