import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { commandOf, verbs } from '../../src/terminal/verbs.js'
import { run } from '../support/command.js'

/*
 * The shells themselves are asked what they would offer.
 */

/** What has been typed, and all that is offered for it; `gateway.yaml` and `notes.txt` lie in the folder. */
const TYPED: readonly (readonly [string, readonly string[]])[] = [
  ['model-gateway wal', ['wallet']],
  ['model-gateway wallet ', ['show', 'history', 'credit', 'debit']],
  ['model-gateway wallet credit acme --idem', ['--idempotency-key']],
  ['model-gateway usage --format ', ['table', 'csv', 'jsonl', 'json']],
  ['model-gateway usage --key a --format js', ['jsonl', 'json']],
  ['model-gateway check -c gat', ['gateway.yaml']],
  ['model-gateway -c gat', ['gateway.yaml']],
  ['model-gateway completion ', ['bash', 'zsh', 'fish']],
  ['model-gateway keys new --pla', ['--plan']],
]

function installed(shell: string): string | false {
  return spawnSync(shell, ['--version']).status === 0 ? false : `${shell} is not installed`
}

async function folderWith(t: Test, shell: string): Promise<string> {
  const folder = t.testdir({ 'gateway.yaml': '', 'notes.txt': '' })
  const { code, out, err } = await run('/', 'completion', shell)
  t.strictSame({ code, err }, { code: 0, err: '' })
  mkdirSync(join(folder, 'bin'))
  writeFileSync(join(folder, 'bin', 'model-gateway'), '#!/bin/sh\n', { mode: 0o755 })
  writeFileSync(join(folder, 'bin', 'script'), out)
  return folder
}

async function every(): Promise<(readonly [string, readonly string[]])[]> {
  const rows = verbs().map(
    async verb => [`model-gateway ${verb} --`, Object.keys((await commandOf(verb)).flags).map(name => `--${name}`)] as const,
  )
  return [['model-gateway ', verbs()], ...(await Promise.all(rows)), ...TYPED]
}

t.test('bash', { skip: installed('bash') }, async t => {
  const folder = await folderWith(t, 'bash')
  const ask = (line: string): string[] => {
    // As bash itself splits a line at COMP_WORDBREAKS, for lines without quotes.
    const words = line.split(/ +/).flatMap(word => word.split(/(=)/).filter(part => part !== ''))
    if (line.endsWith(' ')) words.push('')
    const code = `source bin/script; complete -p model-gateway >&2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _model_gateway; printf '%s\n' "\${COMPREPLY[@]}"`
    return execFileSync('bash', ['--norc', '-c', code, 'bash', ...words], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
      .trim()
      .split('\n')
  }
  for (const [line, offered] of await every()) t.strictSame(ask(line).sort(), [...offered].sort(), line)
  t.strictSame(ask('model-gateway usage --format=js').sort(), ['json', 'jsonl'])
  t.strictSame(ask('model-gateway --v'), ['--version'])
})

t.test('fish', { skip: installed('fish') }, async t => {
  const folder = await folderWith(t, 'fish')
  const env = { ...process.env, HOME: folder, PATH: `${join(folder, 'bin')}:${process.env.PATH}` }
  const ask = (line: string): string[] =>
    execFileSync('fish', ['--no-config', '-c', 'source bin/script; complete -C $argv[1]', line], { cwd: folder, encoding: 'utf8', env })
      .trim()
      .split('\n')
      .map(offered => offered.split('\t')[0] ?? '')
  for (const [line, offered] of await every()) t.strictSame(ask(line).sort(), [...offered].sort(), line)
})

/** Its completion works in a line editor alone: one is had in a pseudo-terminal of its own, and told to print what it would offer. */
const ZSH = String.raw`
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; setopt nobeep; unsetopt automenu autolist; autoload -U compinit; compinit -u -D; path=($PWD/bin $path); source bin/script'
zpty -w z 'compadd () { typeset -a hits; builtin compadd -O hits "$@"; (( $#hits )) && print -rl -- "<"$^hits">"; builtin compadd "$@" }'
zpty -w z 'bindkey "^I" complete-word; print re""ady'
zpty -r z seen '*ready*'
for line; do
  zpty -w -n z $line$'\t\C-u'
  zpty -w z 'print do""ne'
  zpty -r z seen '*done*'
  print -r -- $seen$'\0'
done
zpty -d z`

t.test('zsh', { skip: installed('zsh') }, async t => {
  const folder = await folderWith(t, 'zsh')
  const rows = await every()
  const shown = (lines: readonly string[]): string[][] =>
    execFileSync('zsh', ['-f', '-c', ZSH, 'zsh', ...lines], { cwd: folder, encoding: 'utf8', timeout: 60_000 })
      .split('\0')
      .slice(0, lines.length)
      .map(part => [...new Set([...part.matchAll(/<([^>\s]+)>/g)].map(match => match[1] as string))].sort())
  // Keys that are typed before a busy machine has got to reading them are not completed: what was not is typed again.
  const found = new Map<string, string[]>()
  for (let tries = 0; tries < 6; tries++) {
    const left = rows.filter(([line, offered]) => found.get(line)?.join() !== [...offered].sort().join()).map(([line]) => line)
    if (left.length === 0) break
    for (const [i, offered] of shown(left).entries()) found.set(left[i] as string, offered)
  }
  for (const [line, offered] of rows) t.strictSame(found.get(line), [...offered].sort(), line)
})
