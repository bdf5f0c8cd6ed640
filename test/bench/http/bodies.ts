const SENTENCE = 'Summarise what the quarterly report says about the harbour, and name the three largest figures in it. '

/** Bodies of requests, as text. About a kilobyte. */
export const ORDINARY = JSON.stringify({
  model: 'up/bench',
  messages: [
    { role: 'system', content: 'You are a careful assistant. Answer briefly, in whole sentences, and say so when you do not know.' },
    { role: 'user', content: SENTENCE.repeat(7) },
  ],
  temperature: 0.2,
  max_tokens: 256,
})

export function streaming(chunks: number, everyMs: number): string {
  return JSON.stringify({
    model: 'up/bench',
    messages: [{ role: 'user', content: SENTENCE.repeat(8) }],
    max_tokens: 256,
    stream: true,
    user: `chunks=${chunks} every=${everyMs}`,
  })
}

/** One message of a megabyte. */
export const LONG = JSON.stringify({
  model: 'up/bench',
  messages: [{ role: 'user', content: SENTENCE.repeat(Math.ceil(1_048_576 / SENTENCE.length)) }],
  max_tokens: 256,
})

/** A long conversation with many tools. */
export const AGENT = JSON.stringify({
  model: 'up/bench',
  messages: Array.from({ length: 200 }, (_, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content: `${i}. ${SENTENCE.repeat(2)}` })),
  tools: Array.from({ length: 40 }, (_, i) => ({
    type: 'function',
    function: {
      name: `look_up_${i}`,
      description: SENTENCE,
      parameters: {
        type: 'object',
        properties: {
          query: { type: 'string', description: 'What to look for, in plain words.' },
          limit: { type: 'integer', minimum: 1, maximum: 50 },
          order: { type: 'string', enum: ['newest', 'oldest', 'best'] },
        },
        required: ['query'],
      },
    },
  })),
  max_tokens: 256,
})
