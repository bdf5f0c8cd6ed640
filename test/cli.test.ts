import t from 'tap'
import { commandOf, verbs } from '../src/terminal/verbs.js'
import { run } from './support/command.js'

t.test('a verb or an option with a slip of the pen is told what may have been meant, everywhere', async t => {
  t.match(await run('/', 'chekc'), { code: 2, out: '', err: /there is no verb "chekc" \(did you mean "check"\?\)/ })
  t.match(await run('/', '--confg', 'x'), {
    code: 2,
    err: /^model-gateway serve: there is no option --confg \(did you mean "--config"\?\)/,
  })
  for (const verb of verbs()) {
    const { flags, words = [] } = await commandOf(verb)
    for (const flag of Object.keys(flags).filter(name => name !== 'help')) {
      const { code, out, err } = await run('/', verb, ...words.slice(0, 1), `--${flag}z`)
      t.match({ code, out }, { code: 2, out: '' }, verb)
      t.ok(err.includes(`there is no option --${flag}z (did you mean "--${flag}"?)`), err)
    }
    for (const word of words) {
      const { code, err } = await run('/', verb, `${word}z`)
      t.equal(code, 2)
      t.ok(err.includes(`there is no "${word}z" here (did you mean "${word}"?)`), err)
    }
  }
})

t.test('the help lists every verb', async t => {
  const { out } = await run('/', '--help')
  t.strictSame(
    [...out.matchAll(/^ {2}([a-z]+) +\S/gm)].map(([, verb]) => verb),
    verbs(),
  )
})

t.test('the help of a verb explains each of its options, and fits a terminal', async t => {
  for (const verb of verbs()) {
    const { flags, words = [], usage } = await commandOf(verb)
    const { code, out } = await run('/', verb, '--help')
    t.strictSame({ code, out }, { code: 0, out: `${usage.trim()}\n` })
    for (const [name, { short, about }] of Object.entries(flags)) {
      t.ok(
        out.split('\n').some(line => line.includes(`${short === undefined ? '  ' : `-${short},`} --${name}`) && line.endsWith(about)),
        `${verb} --${name}`,
      )
    }
    for (const word of words) t.ok(out.includes(word), `${verb} ${word}`)
    for (const line of out.split('\n')) t.ok([...line].length <= 140, line)
    t.strictSame(await run('/', 'help', verb), { code, out, err: '' })
  }
})
