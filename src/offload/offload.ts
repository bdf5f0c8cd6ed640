import { MessageChannel } from 'node:worker_threads'
import type { Place } from '../config/catalog.js'
import type { Key } from '../config/config.js'
import type { Body, Endpoint } from '../endpoints/endpoint.js'
import { parseBody } from '../http/body.js'
import type { JsonObject } from '../json.js'
import type { Pieces } from '../pieces.js'
import type { Runtime } from '../runtime.js'
import { forwardedBody, type Question, type Target } from '../understand.js'
import type { Call, HeaderFields } from '../upstream/providers/provider.js'
import type { WholeAnswer } from '../upstream/whole.js'
import { Lane } from './lane.js'
import type { ToldAnswer, ToldQuestion } from './messages.js'
import { unpacked } from './thrown.js'

/** A second one starts when the first is busy: a body that takes a second does not hold up the next one. */
const LANES = 2

/** A whole answer of a provider, and what it answers. */
export interface Answering {
  readonly bytes: Pieces
  readonly headers: HeaderFields
  readonly question: Question
  readonly target: Target
  readonly ids: Pick<Call, 'id' | 'created'>
}

/** The threads on which large bodies are understood, and large answers translated. */
export class Offload {
  readonly #lanes: readonly Lane[]
  /** What is sent through a closed port has no owner any more. */
  readonly #nowhere = new MessageChannel().port1

  constructor(lanes = LANES) {
    this.#lanes = Array.from({ length: lanes }, () => new Lane())
    this.#nowhere.close()
  }

  /**
   * Nobody will look at these bytes again: the memory that they came in is free at once. Left to the collection of garbage, of which V8 begins
   * one for each few MiB, they cost a request of a MiB more than all else that is done for it here.
   */
  free(bytes: Pieces): void {
    this.#nowhere.postMessage(null, bytes.owned)
  }

  /** As `understand` does with the parsed bytes: the same question, the same errors. Meanwhile there is nothing in `bytes`. */
  async ask(bytes: Pieces, endpoint: Endpoint, runtime: Runtime, key: Key, call: Answering['ids']): Promise<Question> {
    // An answer that is shaped for its question is read on a thread; a module that counts has one of its own.
    const shared = endpoint.shape !== undefined || runtime.tokenizers.any
    const told = await this.#lane().question(bytes, { shared, surface: endpoint.surface, key, call }, runtime.config)
    return questionOf(told, bytes, endpoint, runtime)
  }

  /** As `wholeAnswer` does: the same answer, the same errors. */
  async answer({ bytes, headers, question, target, ids }: Answering, endpoint: Endpoint, runtime: Runtime): Promise<WholeAnswer> {
    const { model, bytes: asked } = question
    const work = {
      bytes: bytes.list,
      headers,
      surface: endpoint.surface,
      model: model.id,
      place: runtime.catalog.targets(model).findIndex(({ rank, name }) => rank === target.rank && name === target.name),
      call: ids,
      asked: asked === undefined ? { body: target.body } : { bytes: asked.list },
    }
    return answerOf(await this.#lane().answer(work, runtime.config, bytes.length + (asked?.length ?? 0)))
  }

  /** Ends the threads. What they have not answered yet is rejected. */
  async close(): Promise<void> {
    await Promise.all(this.#lanes.map(lane => lane.close()))
  }

  /** The one with the least to do; the first of several. */
  #lane(): Lane {
    return this.#lanes.reduce((least, lane) => (lane.bytes < least.bytes ? lane : least))
  }
}

function questionOf(told: ToldQuestion, bytes: Pieces, endpoint: Endpoint, runtime: Runtime): Question {
  const model = runtime.catalog.find(told.model)
  if (model === undefined) throw new Error(`model ${told.model} is not in this config`)
  const places = runtime.catalog.targets(model)
  let parsed: Body | undefined
  return {
    ...told,
    model,
    bytes,
    targets: told.targets.map(({ place: position, refused, ...target }) => {
      const place = places[position] as Place
      return {
        ...place,
        ...target,
        ...(refused === undefined ? {} : { refused: unpacked(refused) }),
        // For who needs it all the same: it costs a second parse, here.
        get body() {
          parsed ??= parseBody(bytes.joined()) as Body
          return forwardedBody(parsed, endpoint, place.model, told.stream)
        },
      }
    }),
  }
}

function answerOf({ text, metered, counted }: ToldAnswer): WholeAnswer {
  let parsed: JsonObject | undefined
  return {
    metered,
    counted,
    text,
    // For policies that observe answers.
    get json() {
      parsed ??= JSON.parse(Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString()) as JsonObject
      return parsed
    },
  }
}
