import { parentPort, workerData } from 'node:worker_threads'
import { COUNT_MAX } from '../metering/meter.js'
import type { CountWork, FromTokenizer, ToTokenizer } from './messages.js'

/* The other end of `tokenizer.ts`: imports the module that `workerData` names, and asks it. */

type Count = (request: { readonly surface: string; readonly model: string; readonly body: unknown }) => unknown

const port = parentPort
if (port === null) throw new Error('this module is the entry of a thread')

const count = await loaded()
if (count !== null) {
  port.on('message', async ({ id, ...work }: ToTokenizer) => tell(await answer(id, count, work)))
  tell({ kind: 'ready' })
}

function tell(message: FromTokenizer): void {
  port?.postMessage(message)
}

async function loaded(): Promise<Count | null> {
  try {
    const { default: found } = (await import(workerData as string)) as { readonly default?: unknown }
    if (typeof found === 'function') return found as Count
    tell({ kind: 'none', reason: 'it has no function as its default export' })
  } catch (error) {
    tell({ kind: 'none', reason: String((error as Error | null)?.message ?? error) })
  }
  return null
}

async function answer(id: number, counts: Count, { surface, model, bytes }: CountWork): Promise<FromTokenizer> {
  try {
    const body: unknown = JSON.parse(Buffer.concat(bytes).toString('utf8'))
    const tokens = await counts({ surface, model, body })
    if (typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 1 && tokens <= COUNT_MAX) return { kind: 'counted', id, tokens }
    return {
      kind: 'failed',
      id,
      reason: `it gave ${typeof tokens === 'number' ? tokens : `a ${typeof tokens}`}, which is no number of tokens`,
    }
  } catch (error) {
    return { kind: 'failed', id, reason: `it threw ${error instanceof Error ? error.constructor.name : `a ${typeof error}`}` }
  }
}
