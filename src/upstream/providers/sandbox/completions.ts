import { plain } from './reply.js'
import { choices, prompts } from './request.js'
import type { Said, Spoken } from './spoken.js'
import { usage } from './usage.js'

/** A legacy completion: each prompt is answered `n` times. Never a stream. */
export function completions({ body, call, options }: Spoken): Said {
  const list = prompts(body.prompt)
  const n = choices(body)
  const found = list.flatMap(prompt => {
    const said = plain(options.reply ?? `You said: ${prompt.text}`, body, options)
    const text = (body.echo === true ? prompt.text : '') + said.text.join('')
    return Array.from({ length: n }, () => ({ text, tokens: said.tokens, finish_reason: said.finish }))
  })
  const input = list.reduce((sum, prompt) => sum + prompt.tokens, 0)
  const output = found.reduce((sum, choice) => sum + choice.tokens, 0)
  const used = usage(input, output, options)
  const completion = {
    id: `cmpl-${call.id}`,
    object: 'text_completion',
    created: call.created,
    model: body.model ?? call.model.upstream,
    choices: found.map(({ text, finish_reason }, index) => ({ index, text, logprobs: null, finish_reason })),
    ...(used === undefined ? {} : { usage: used }),
  }
  return { kind: 'json', body: completion, tokens: found.reduce((most, choice) => Math.max(most, choice.tokens), 0) }
}
