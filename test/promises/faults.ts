import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Act } from '../support/bad-server.js'

/*
 * What a provider can do wrong, and what must come of it: the status, the code (`-`: none), how the hold ended. `whole` for an answer that is
 * no stream, `stream` for one; the code of a stream that had begun is that of its error event. `all`: asked of the other surfaces too.
 */
export interface Fault {
  readonly name: string
  readonly act: Act
  readonly whole?: string
  readonly stream?: string
  readonly all?: string
  /** It brings much: what it takes of memory is measured of it alone, however long it takes. */
  readonly large?: true
  /** A whole answer comes, and more behind it, so that its connection is of no use any more. */
  readonly spoils?: true
}

const CRLF = '\r\n'
const JSON_TYPE = 'content-type: application/json'
const SSE_TYPE = 'content-type: text/event-stream'
const USAGE = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }
const CHOICE = { index: 0, message: { role: 'assistant', content: 'Hello there' }, logprobs: null, finish_reason: 'stop' }
const COMPLETION = { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm', choices: [CHOICE], usage: USAGE }

const http = (status: number | string, fields: readonly string[], body = ''): string =>
  [`HTTP/1.1 ${status} X`, ...fields, '', body].join(CRLF)
const sized = (body: string, ...fields: string[]): string[] => [...fields, `content-length: ${Buffer.byteLength(body)}`]
const answer = (body: unknown, status: number | string = 200, ...fields: string[]): string => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return http(status, sized(text, JSON_TYPE, ...fields), text)
}
const piece = (text: string): string => `${Buffer.byteLength(text).toString(16)}${CRLF}${text}${CRLF}`
const LAST = `0${CRLF}${CRLF}`
const events = http(200, [SSE_TYPE, 'transfer-encoding: chunked'])
const chunk = (fields: object): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', ...fields })}\n\n`
const delta = (given: object, finish_reason: string | null = null, id = 'chatcmpl-1'): string =>
  chunk({ id, choices: [{ index: 0, delta: given, finish_reason }] })
const ROLE = delta({ role: 'assistant', content: '' })
const WORD = delta({ content: 'Hello ' })
const STOP = delta({}, 'stop')
const TELL = chunk({ choices: [], usage: USAGE })
const DONE = 'data: [DONE]\n\n'
const streamed = (...texts: string[]): string => events + texts.map(piece).join('')

/** Says it, and leaves the connection open. */
const says =
  (...texts: (string | Buffer)[]): Act =>
  ({ socket }) =>
    void socket.write(Buffer.concat(texts.map(text => Buffer.from(text))))
const thenCloses =
  (...texts: string[]): Act =>
  ({ socket }) =>
    void socket.end(texts.join(''))
const thenResets =
  (...texts: string[]): Act =>
  ({ socket }) =>
    void socket.write(texts.join(''), () => setTimeout(() => socket.resetAndDestroy(), 30))
/** The one to a whole request, the other to a stream. */
const either =
  (whole: Act, stream: Act): Act =>
  call =>
    call.body.stream === true ? stream(call) : whole(call)
const good = either(says(answer(COMPLETION)), says(streamed(ROLE, WORD, STOP, TELL, DONE), LAST))
const usage = (given: unknown): Act =>
  either(says(answer({ ...COMPLETION, usage: given })), says(streamed(ROLE, WORD, STOP, chunk({ choices: [], usage: given }), DONE), LAST))
const refuses = (status: number, body: unknown = { error: { message: 'No.' } }, ...fields: string[]): Act =>
  says(answer(body, status, ...fields))

/** Text again and again, until so many bytes are out or nobody listens. */
function floods(head: string, text: string, bytes: number): Act {
  return ({ socket }) => {
    socket.write(head)
    let left = bytes
    const more = (): void => {
      while (left > 0 && !socket.destroyed) {
        left -= text.length
        if (!socket.write(text)) {
          socket.once('drain', more)
          return
        }
      }
      if (left <= 0) socket.end()
    }
    more()
  }
}

/** Pieces with a pause in between. */
function drips(head: string, pieces: readonly string[], pauseMs: number): Act {
  return ({ socket }) => {
    socket.write(head)
    let next = 0
    const timer = setInterval(() => {
      if (next < pieces.length && !socket.destroyed) socket.write(pieces[next++] as string)
      else clearInterval(timer)
    }, pauseMs)
  }
}

const repeated = (text: string, times: number): string[] => Array.from({ length: times }, () => text)
const headers = (bytes: number): string[] =>
  repeated(`x-pad: ${'a'.repeat(1000)}`, Math.ceil(bytes / 1009)).map((line, i) => line.replace('pad', `pad-${i}`))

/** 64 MB in 64 KB. */
const zipped = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '))
const bomb = [http(200, [JSON_TYPE, 'content-encoding: gzip', `content-length: ${zipped.length}`]), zipped]

const DOWN = '502 upstream_error voided'
const NO_ANSWER = '502 upstream_invalid_response voided'
const SLOW = '504 upstream_timeout voided'
const FINE = '200 - settled'
const CUT = '200 upstream_error partial'
const both = (what: string) => ({ whole: what, stream: what })

export const faults = (decoy: string): readonly Fault[] => [
  { name: 'nothing wrong', act: good, ...both(FINE) },
  // The connection
  { name: 'reset after the request', act: ({ socket }) => socket.resetAndDestroy(), ...both(DOWN), all: DOWN },
  { name: 'closed after the request', act: ({ socket }) => socket.end(), ...both(DOWN), all: DOWN },
  { name: 'silent after the request', act: () => {}, ...both(SLOW), all: SLOW },
  { name: 'half a status line, closed', act: thenCloses('HTTP/1.1 20'), ...both(DOWN) },
  { name: 'half a head, silent', act: says('HTTP/1.1 200 OK\r\ncontent-t'), ...both(SLOW) },
  { name: 'half a head, reset', act: thenResets('HTTP/1.1 200 OK\r\ncontent-t'), ...both(DOWN) },
  { name: 'the head, reset', act: thenResets(http(200, [JSON_TYPE, 'content-length: 100'])), ...both(DOWN), all: DOWN },
  { name: 'half a body, closed', act: thenCloses(http(200, [JSON_TYPE, 'content-length: 500'], '{"id":')), ...both(DOWN) },
  { name: 'half a body without a length, closed', act: thenCloses(http(200, [JSON_TYPE], '{"id":')), ...both(DOWN), all: DOWN },
  { name: 'half a body, reset', act: thenResets(http(200, [JSON_TYPE, 'content-length: 500'], '{"id":')), ...both(DOWN) },
  { name: 'half a body, silent', act: says(http(200, [JSON_TYPE, 'content-length: 500'], '{"id":')), ...both(SLOW) },
  {
    name: 'chunked, no last chunk, closed',
    act: thenCloses(http(200, [JSON_TYPE, 'transfer-encoding: chunked'], piece(JSON.stringify(COMPLETION)))),
    ...both(DOWN),
  },
  { name: 'no length, ended by closing', act: thenCloses(http(200, [JSON_TYPE], JSON.stringify(COMPLETION))), ...both(FINE) },
  // HTTP
  { name: 'bytes that are no HTTP', act: thenCloses('SSH-2.0-OpenSSH_9.6\r\n'), ...both(DOWN) },
  {
    name: 'a chunk size that is no number',
    act: says(http(200, [JSON_TYPE, 'transfer-encoding: chunked'], 'zz\r\n{}\r\n')),
    ...both(DOWN),
  },
  { name: 'two lengths', act: says(http(200, [JSON_TYPE, 'content-length: 5', 'content-length: 6'], '{"a":1}')), ...both(DOWN) },
  { name: 'a header name with a space', act: says(http(200, [JSON_TYPE, 'x y: 1', 'content-length: 2'], '{}')), ...both(DOWN) },
  { name: 'status 999', act: refuses(999), ...both(DOWN) },
  {
    name: '60 KB of headers',
    act: says(http(200, [...headers(58_000), ...sized(JSON.stringify(COMPLETION), JSON_TYPE)], JSON.stringify(COMPLETION))),
    ...both(FINE),
  },
  { name: '200 KB of headers', act: says(http(200, [...headers(200_000), ...sized('{}', JSON_TYPE)], '{}')), ...both(DOWN) },
  // A client that did not ask for 100 may pass it over; undici takes it for a broken answer.
  {
    name: '100 before the answer',
    act: either(says(http(100, []), answer(COMPLETION)), says(http(100, []), streamed(ROLE, STOP, TELL, DONE), LAST)),
    ...both(DOWN),
  },
  {
    name: '103 before the answer',
    act: either(says(http(103, ['link: </x>']), answer(COMPLETION)), says(http(103, []), streamed(ROLE, STOP, TELL, DONE), LAST)),
    ...both(FINE),
  },
  { name: '101, another protocol', act: says(http(101, ['upgrade: h2c', 'connection: upgrade'])), ...both(DOWN) },
  ...[301, 302, 307, 308].map(status => ({
    name: `${status} to somewhere else`,
    act: refuses(status, '', `location: ${decoy}`),
    ...both(DOWN),
    all: DOWN,
  })),
  {
    name: 'garbage behind the end',
    act: either(says(answer(COMPLETION), 'garbage\r\n\r\n'), says(streamed(ROLE, STOP, TELL, DONE), LAST, 'garbage')),
    ...both(FINE),
    spoils: true,
  },
  // What it answers
  {
    name: 'a length shorter than its JSON',
    act: says(http(200, [JSON_TYPE, 'content-length: 40'], JSON.stringify(COMPLETION))),
    ...both(NO_ANSWER),
    spoils: true,
  },
  {
    name: 'HTML under 200',
    act: says(http(200, sized('<html>Hi</html>', 'content-type: text/html'), '<html>Hi</html>')),
    ...both(NO_ANSWER),
    all: NO_ANSWER,
  },
  {
    name: 'JSON called plain text',
    act: says(http(200, sized(JSON.stringify(COMPLETION), 'content-type: text/plain'), JSON.stringify(COMPLETION))),
    whole: FINE,
    stream: NO_ANSWER,
  },
  { name: 'JSON without a type', act: says(http(200, sized(JSON.stringify(COMPLETION)), JSON.stringify(COMPLETION))), whole: FINE },
  { name: 'JSON to a stream request', act: says(answer(COMPLETION)), stream: FINE },
  { name: 'a stream to a whole request', act: says(streamed(ROLE, STOP, TELL, DONE), LAST), whole: NO_ANSWER },
  { name: 'an error under 200', act: says(answer({ error: { message: 'Overloaded', code: 'x' } })), ...both(NO_ANSWER), all: NO_ANSWER },
  { name: 'no choices', act: says(answer({ ...COMPLETION, choices: [] })), ...both(NO_ANSWER) },
  { name: 'choices that are null', act: says(answer({ ...COMPLETION, choices: null })), ...both(NO_ANSWER) },
  { name: 'an empty object', act: says(answer({})), ...both(NO_ANSWER), all: NO_ANSWER },
  { name: 'an empty body', act: says(answer('')), ...both(NO_ANSWER), all: NO_ANSWER },
  { name: 'null', act: says(answer('null')), ...both(NO_ANSWER), all: NO_ANSWER },
  { name: 'an array', act: says(answer('[]')), ...both(NO_ANSWER), all: NO_ANSWER },
  { name: '204', act: says(http(204, [])), ...both(NO_ANSWER) },
  { name: 'gzip that is a bomb, though refused', act: says(...bomb), ...both(NO_ANSWER) },
  { name: 'gzip though refused', act: says(answer('\x1f\x8b', 200, 'content-encoding: gzip')), ...both(NO_ANSWER), all: NO_ANSWER },
  {
    name: 'an encoding that is none',
    act: either(says(answer(COMPLETION, 200, 'content-encoding: identity')), says(streamed(ROLE, STOP, TELL, DONE), LAST)),
    ...both(FINE),
  },
  {
    name: 'brackets 100,000 deep',
    act: says(
      answer(`{"x":${'['.repeat(100_000)}${']'.repeat(100_000)},"id":"x","choices":[{"message":{"role":"assistant","content":"a"}}]}`),
    ),
    ...both(NO_ANSWER),
  },
  {
    name: 'a body of 256 MB',
    large: true,
    act: floods(http(200, [JSON_TYPE, 'content-length: 268435456']), ' '.repeat(65_536), 268_435_456),
    ...both(NO_ANSWER),
  },
  {
    name: 'a body without end',
    large: true,
    act: floods(http(200, [JSON_TYPE]), ' '.repeat(65_536), 1e12),
    whole: `${NO_ANSWER} or ${SLOW}`,
  },
  { name: 'a line without end', large: true, act: floods(`${http(200, [SSE_TYPE])}data: `, 'a'.repeat(65_536), 1e12), stream: NO_ANSWER },
  {
    name: 'a line without end, after a word',
    large: true,
    act: floods(`${http(200, [SSE_TYPE])}${ROLE}${WORD}data: `, 'a'.repeat(65_536), 1e12),
    stream: CUT,
  },
  // What it says of itself
  { name: 'usage below zero', act: usage({ prompt_tokens: -5, completion_tokens: -1, total_tokens: -6 }), ...both(FINE) },
  { name: 'usage in fractions', act: usage({ prompt_tokens: 1.5, completion_tokens: 0.5, total_tokens: 2 }), ...both(FINE) },
  { name: 'usage in words', act: usage({ prompt_tokens: 'many', completion_tokens: 'few' }), ...both(FINE) },
  { name: 'usage beyond all numbers', act: usage({ prompt_tokens: 1e300, completion_tokens: 1e300 }), ...both(FINE) },
  { name: 'usage that does not add up', act: usage({ prompt_tokens: 9, completion_tokens: 2, total_tokens: 3 }), ...both(FINE) },
  { name: 'usage that is an array', act: usage([1, 2]), ...both(FINE) },
  { name: 'no usage', act: usage(null), ...both(FINE) },
  // Streams
  {
    name: 'another id in each chunk',
    act: says(streamed(delta({ role: 'assistant' }, null, 'a'), delta({ content: 'x' }, null, 'b'), delta({}, 'stop', 'a'), DONE), LAST),
    stream: FINE,
  },
  { name: 'the same chunk twice', act: says(streamed(ROLE, WORD, WORD, STOP, STOP, DONE), LAST), stream: FINE },
  { name: 'no [DONE]', act: says(streamed(ROLE, WORD, STOP, TELL), LAST), stream: FINE },
  { name: 'no [DONE], reset', act: thenResets(streamed(ROLE, WORD, STOP, TELL)), stream: FINE },
  { name: 'no [DONE], silent', act: says(streamed(ROLE, WORD, STOP, TELL)), stream: FINE },
  { name: '[DONE], and the connection stays open', act: says(streamed(ROLE, WORD, STOP, TELL, DONE)), stream: FINE },
  { name: 'another completion behind [DONE]', act: says(streamed(ROLE, STOP, DONE, ROLE, WORD), LAST), stream: FINE },
  { name: 'no finish_reason', act: says(streamed(ROLE, WORD, DONE), LAST), stream: CUT },
  { name: 'no finish_reason, no [DONE]', act: says(streamed(ROLE, WORD), LAST), stream: CUT },
  { name: 'nothing but [DONE]', act: says(streamed(DONE), LAST), stream: NO_ANSWER },
  { name: 'a stream of nothing', act: says(streamed(), LAST), stream: NO_ANSWER },
  { name: 'closed in the middle', act: thenCloses(streamed(ROLE, WORD)), stream: CUT },
  { name: 'reset in the middle', act: thenResets(streamed(ROLE, WORD)), stream: CUT },
  { name: 'closed within an event', act: thenCloses(streamed(ROLE, WORD.slice(0, 40))), stream: CUT },
  { name: 'silent in the middle', act: says(streamed(ROLE, WORD)), stream: '200 upstream_timeout partial' },
  { name: 'silent before the first event', act: says(events), stream: SLOW },
  { name: 'no JSON in the first event', act: says(streamed('data: {"id\n\n')), stream: NO_ANSWER },
  { name: 'no JSON in a later event', act: says(streamed(ROLE, WORD, 'data: {"id\n\n')), stream: CUT },
  { name: 'an error in the first event', act: says(streamed('data: {"error":{"message":"Overloaded"}}\n\n')), stream: NO_ANSWER },
  { name: 'an error in a later event', act: says(streamed(ROLE, WORD, 'data: {"error":{"message":"Overloaded"}}\n\n')), stream: CUT },
  { name: 'the error of a proxy as an event', act: says(streamed('event: error\ndata: {"code":503}\n\n')), stream: DOWN },
  {
    name: 'CRLF, a mark at the beginning, comments',
    act: says(streamed(`\ufeff: hi\r\n\r\n${ROLE}`.replaceAll('\n\n', '\r\n\r\n'), STOP, DONE), LAST),
    stream: FINE,
  },
  { name: 'comments without end, and never an event', act: drips(events, repeated(piece(': ping\n\n'), 60), 100), stream: SLOW },
  {
    name: 'slow, but it keeps talking, for longer than timeout.total',
    act: drips(events, [...[ROLE, ...repeated(WORD, 60), STOP, DONE].map(piece), LAST], 100),
    stream: FINE,
  },
  {
    name: 'a whole answer byte by byte, for longer than timeout.total',
    act: drips(http(200, [JSON_TYPE, 'content-length: 500']), repeated(' ', 60), 100),
    whole: SLOW,
  },
  { name: 'a whole answer in small pieces', act: drips('', answer(COMPLETION).match(/.{1,7}/gs) ?? [], 5), whole: FINE },
  // Refusals
  { name: '400', act: refuses(400), ...both('400 upstream_rejected voided'), all: '400 upstream_rejected voided' },
  {
    name: '400 with a code',
    act: refuses(400, { error: { message: 'Too long.', code: 'context_length_exceeded' } }),
    ...both('400 context_length_exceeded voided'),
  },
  { name: '400 with nothing', act: refuses(400, ''), ...both('400 upstream_rejected voided') },
  { name: '401', act: refuses(401), ...both('502 upstream_auth_failed voided'), all: '502 upstream_auth_failed voided' },
  { name: '402', act: refuses(402), ...both('502 upstream_auth_failed voided') },
  { name: '403', act: refuses(403), ...both('502 upstream_auth_failed voided') },
  { name: '404', act: refuses(404), ...both(DOWN) },
  { name: '408', act: refuses(408), ...both(DOWN) },
  { name: '409', act: refuses(409), ...both(DOWN) },
  { name: '413', act: refuses(413), ...both('413 upstream_rejected voided') },
  { name: '422', act: refuses(422, { detail: [{ loc: ['body'], msg: 'bad' }] }), ...both('400 upstream_rejected voided') },
  {
    name: '429',
    act: refuses(429, {}, 'retry-after: 7'),
    ...both('429 upstream_rate_limited voided'),
    all: '429 upstream_rate_limited voided',
  },
  {
    name: '429 about our credit',
    act: refuses(429, { error: { code: 'insufficient_quota' } }),
    ...both('502 upstream_auth_failed voided'),
  },
  ...[500, 501, 502, 503, 504, 529].map(status => ({ name: `${status}`, act: refuses(status), ...both(DOWN), all: DOWN })),
  {
    name: '502 with the page of a proxy',
    act: says(http(502, sized('<html>Bad</html>', 'content-type: text/html'), '<html>Bad</html>')),
    ...both(DOWN),
  },
  { name: '500 with a body of 64 MB', large: true, act: floods(http(500, [JSON_TYPE]), ' '.repeat(65_536), 67_108_864), ...both(DOWN) },
  { name: '500, and silence in its body', act: says(http(500, [JSON_TYPE, 'content-length: 500'], '{"error":')), ...both(DOWN) },
  { name: '500, and reset in its body', act: thenResets(http(500, [JSON_TYPE, 'content-length: 500'], '{"error":')), ...both(DOWN) },
]

/** Faults of the connection itself: what is done with each. */
export const connections: readonly {
  readonly name: string
  readonly scheme: 'http' | 'https'
  readonly each: (socket: Socket) => void
  readonly what: string
}[] = [
  { name: 'reset at once', scheme: 'http', each: socket => socket.resetAndDestroy(), what: `${DOWN} or 502 upstream_unavailable voided` },
  { name: 'closed at once', scheme: 'http', each: socket => socket.end(), what: `${DOWN} or 502 upstream_unavailable voided` },
  { name: 'never read', scheme: 'http', each: socket => socket.pause(), what: SLOW },
  { name: 'TLS, silent', scheme: 'https', each: socket => socket.pause(), what: '502 upstream_unavailable voided' },
  { name: 'TLS, closed at once', scheme: 'https', each: socket => socket.end(), what: '502 upstream_unavailable voided' },
  {
    name: 'TLS, reset in the handshake',
    scheme: 'https',
    each: socket => socket.once('data', () => socket.resetAndDestroy()),
    what: '502 upstream_unavailable voided',
  },
  {
    name: 'TLS, answered in the clear',
    scheme: 'https',
    each: socket => socket.once('data', () => socket.end(answer(COMPLETION))),
    what: '502 upstream_unavailable voided',
  },
  {
    name: 'TLS, half a hello',
    scheme: 'https',
    each: socket => socket.once('data', () => socket.write(Buffer.from([0x16, 3, 3, 0, 80, 2, 0]))),
    what: '502 upstream_unavailable voided',
  },
]
