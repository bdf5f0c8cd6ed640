import type { Config } from '../config/config.js'
import type { Post } from './post.js'

/** Another config for all workers, by a number of its own. */
export interface Change {
  readonly change: number
  readonly config: Config
}

/**
 * Has the workers make ready for a change. One that begins meanwhile, with what ran before, is waited for, and has to as well: when it resolves, none is there that is
 * not ready. Rejects with what keeps one of them from it; none has changed then.
 */
export async function prepareAll(posts: readonly Post[], change: Change, patienceMs: number): Promise<void> {
  const behind = () => posts.filter(({ state, ready }) => state === 'starting' || (state === 'up' && ready !== change.change))
  for (let asked = behind(); asked.length > 0; asked = behind()) {
    const answers = await Promise.all(asked.map(post => (post.state === 'up' ? prepared(post, change, patienceMs) : begun(post))))
    const problems = new Set(answers.filter(problem => problem !== null))
    if (problems.size === 0) continue
    for (const { process } of posts) process?.tell({ kind: 'abandon' })
    throw new Error([...problems].join('\n'))
  }
}

/** Has those that are ready for a change run it. Resolves with those that do not. One that is gone is none of them: the next begins with what runs. */
export async function switchAll(posts: readonly Post[], change: number, patienceMs: number): Promise<Post[]> {
  const asked = posts.filter(({ state, ready }) => state === 'up' && ready === change)
  const answers = await Promise.all(asked.map(post => post.asked({ kind: 'switch', change }, 'switched', patienceMs)))
  return asked.filter((_, i) => {
    const answer = answers[i]
    return answer === 'late' || answer?.done === false
  })
}

/** It is up, or has ended. What it could not do is told to whoever has started it. */
function begun(post: Post): Promise<null> {
  return post.begun().then(
    () => null,
    () => null,
  )
}

/** Why its worker is not ready; `null` where it is, or is gone. */
async function prepared(post: Post, change: Change, patienceMs: number): Promise<string | null> {
  const answer = await post.asked({ kind: 'prepare', ...change }, 'prepared', patienceMs)
  if (answer === 'late') return `worker ${post.number} has not made ready within ${patienceMs / 1000} s`
  if (answer === null) return null
  if (answer.problem === null) post.ready = change.change
  return answer.problem
}
