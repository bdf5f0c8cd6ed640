import type { Group } from './rates-fit.js'

const ABC = 'abcdefghijklmnopqrstuvwxyz'

/** Texts that no one writes: they must not cost more than is estimated either, or they would be a way around a ceiling. The same each time. */
export function gibberish(): Group[] {
  let seed = 991
  const below = (limit: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((seed / 2 ** 31) * limit)
  }
  const any = (from: string) => from[below(from.length)] as string
  const between = (first: number, count: number) => () => String.fromCodePoint(first + below(count))
  const times = (count: number, make: () => string, joint = '') => Array.from({ length: count }, make).join(joint)
  const group = (name: string, count: number, make: () => string): Group => ({
    name: `gibberish-${name}`,
    weight: 0.3,
    texts: Array.from({ length: count }, make),
  })

  const characters: readonly (readonly [name: string, make: () => string])[] = [
    ['presentation-forms', between(0xfb50, 0x200)],
    ['private', between(0xe000, 0x1000)],
    ['kana', between(0x3041, 0xb0)],
    ['symbols', between(0x2190, 0x700)],
    ['full-width', between(0xff01, 0x5e)],
    ['controls', between(0, 32)],
    ['persian-digits', between(0x6f0, 10)],
    ['rare-cyrillic', between(0x460, 0xc0)],
    ['zero-width', () => any(ABC) + any('\u200b\u200c\u200d\ufeff')],
    ['signs', () => any('!@#$%^&*()[]{};:\'",.<>/?\\|`~')],
    ['blanks', () => any('\n\t  ')],
    ['emoji', between(0x1f300, 0x700)],
    ['mathematical', between(0x1d400, 0x3ff)],
  ]
  const scripts: readonly (readonly [name: string, first: number, count: number])[] = [
    ['greek', 0x3b1, 24],
    ['cyrillic', 0x430, 32],
    ['hebrew', 0x5d0, 26],
    ['arabic', 0x628, 34],
    ['devanagari', 0x904, 0x50],
    ['thai', 0xe01, 0x39],
    ['hangul', 0xac00, 11_172],
  ]
  const runs = [...' \n!\'=-*#."?/_\t%|(~'].flatMap(sign => [4, 6, 9, 14, 20, 40, 70, 130, 300].map(count => `x${sign.repeat(count)}y`))
  const words = (letter: () => string) => () => times(12 + below(8), () => times(3 + below(12), letter), ' ')
  return [
    ...characters.map(([name, make]) => group(name, 12, () => times(20 + below(150), make))),
    ...scripts.map(([name, first, count]) => group(name, 8, () => times(60 + below(100), between(first, count)))),
    { name: 'gibberish-runs', weight: 0.3, texts: runs },
    group(
      'words',
      60,
      words(() => any(ABC)),
    ),
    group('words-latin1', 30, words(between(0xdf, 32))),
    group('words-extended', 30, words(between(0x100, 0x140))),
  ]
}
