/** A mutant that no test can kill, since it does the same as what it stands for. */
export interface Equivalent {
  readonly file: string
  readonly original: string
  readonly replacement: string
  readonly why: string
}

export const EQUIVALENT: readonly Equivalent[] = [
  { file: 'policies/rate.ts', original: 'left > 0n', replacement: 'left >= 0n', why: '0 is 0 on both sides' },
  {
    file: 'src/settlement.ts',
    original: 'end.cost > held',
    replacement: 'end.cost >= held',
    why: 'what is left over when both are the same is 0, too',
  },
  {
    file: 'src/sizing.ts',
    original: 'rial > estimateRial',
    replacement: 'rial >= estimateRial',
    why: 'the same figure takes the place of itself',
  },
  { file: 'src/refusal.ts', original: 'status === undefined', replacement: 'false', why: 'an option that is undefined is as good as none' },
  {
    file: 'src/refusal.ts',
    original: 'retryAfter === undefined',
    replacement: 'false',
    why: 'an option that is undefined is as good as none',
  },
  { file: 'src/ledger/wallets.ts', original: 'amount < 0n', replacement: 'amount <= 0n', why: '0 is its own opposite' },
  { file: 'src/ledger/records.ts', original: "name !== 'posted'", replacement: 'true', why: 'a column more is read, and not looked at' },
  {
    file: 'src/ledger/records.ts',
    original: 'hold.id > this.#last',
    replacement: 'hold.id >= this.#last',
    why: 'the same id takes the place of itself',
  },
  {
    file: 'src/ledger/records.ts',
    original: 'id <= this.#last',
    replacement: 'true',
    why: 'saves a look into the index, which would find nothing',
  },
  {
    file: 'src/ledger/sqlite.ts',
    original: 'ended.length < limit',
    replacement: 'ended.length <= limit',
    why: 'more is read than is asked for, and cut off again',
  },
  {
    file: 'src/ledger/sqlite.ts',
    original: 'ended.length < limit',
    replacement: 'true',
    why: 'more is read than is asked for, and cut off again',
  },
  {
    file: 'src/ledger/sqlite.ts',
    original: "query.state !== 'held'",
    replacement: 'true',
    why: 'ended records are read of which none is in the state asked for',
  },
  {
    file: 'src/config/prices.ts',
    original: 'power < 0',
    replacement: 'power <= 0',
    why: 'ten to the power of 0 is 1, above and below the line',
  },
  {
    file: 'src/ledger/batch.ts',
    original: 'batch.length > OPERATIONS_MAX',
    replacement: 'batch.length >= OPERATIONS_MAX',
    why: 'of exactly as many as there may be, none is left over',
  },
  {
    file: 'src/ledger/sqlite.ts',
    original: 'this.#batches.failure === null',
    replacement: 'true',
    why: 'the file is looked at once more, and the first reason stays the one that is told',
  },
  { file: 'src/ledger/sqlite.ts', original: 'from !== undefined', replacement: 'true', why: 'others get a turn at the end, too' },
  { file: 'src/ledger/sqlite.ts', original: 'a.id < b.id', replacement: 'a.id <= b.id', why: 'no two have one id' },
  {
    file: 'src/ledger/sqlite.ts',
    original: 'all.length > limit',
    replacement: 'all.length >= limit',
    why: 'of exactly as many as were asked for, nothing is cut off',
  },
  {
    file: 'src/ledger/sqlite.ts',
    original: 'all.length > limit',
    replacement: 'true',
    why: 'of fewer than were asked for, nothing is cut off',
  },
  {
    file: 'src/ledger/sqlite.ts',
    original: 'account === null',
    replacement: 'false',
    why: 'an account that is none has no credits in the file',
  },
  {
    file: 'src/ledger/sqlite.ts',
    original: 'cell.pending >= 0n',
    replacement: 'true',
    why: 'says what can not be; it would stop a fault of the code itself',
  },
  {
    file: 'src/ledger/sqlite.ts',
    original: 'cell.holds >= 0',
    replacement: 'true',
    why: 'says what can not be; it would stop a fault of the code itself',
  },
  {
    file: 'src/ledger/sqlite.ts',
    original: 'amounts[i] !== 0n',
    replacement: 'true',
    why: 'a counter on which nothing was posted is written as it is',
  },
  { file: 'src/ledger/sqlite.ts', original: 'kept.length > 0', replacement: 'true', why: 'of nothing, nothing is written' },
  { file: 'src/ledger/sqlite.ts', original: 'kept.length > 0', replacement: 'kept.length >= 0', why: 'of nothing, nothing is written' },
  {
    file: 'src/ledger/verify.ts',
    original: 'id <= this.#passed',
    replacement: 'id < this.#passed',
    why: 'the last that was passed has ended already, and ends once',
  },
  {
    file: 'src/ledger/verify.ts',
    original: 'this.#sums.size > this.#settleAt',
    replacement: 'this.#sums.size >= this.#settleAt',
    why: 'looks through them one sum earlier',
  },
  {
    file: 'src/ledger/verify.ts',
    original: 'this.#sums.size > this.#settleAt',
    replacement: 'true',
    why: 'looks through them more often, and finds the same',
  },
  {
    file: 'src/ledger/verify.ts',
    original: 'rows.length < CHUNK',
    replacement: 'false',
    why: 'looks for one chunk more, and finds it empty',
  },
  {
    file: 'src/ledger/verify.ts',
    original: '++looked',
    replacement: '--looked',
    why: 'a count from 0 down meets the same multiples',
  },
  {
    file: 'src/ledger/verify.ts',
    original: 'sum === posted',
    replacement: 'false',
    why: 'what is the same is no difference, however often it is compared',
  },
  {
    file: 'src/ledger/verify.ts',
    original: 'cell === posted',
    replacement: 'false',
    why: 'what is the same is no difference, however often it is compared',
  },
  {
    file: 'src/ledger/verify.ts',
    original: 'id <= this.#max',
    replacement: 'true',
    why: 'what has no place has never been put there',
  },
  {
    file: 'src/ledger/verify.ts',
    original: 'id <= this.#max',
    replacement: 'id < this.#max',
    why: 'the last one has no place, and its sum is kept',
  },
  {
    file: 'src/ledger/usage.ts',
    original: 'from !== undefined',
    replacement: 'true',
    why: 'others get a turn at the end, too',
  },
  {
    file: 'src/ledger/usage.ts',
    original: 'one < other',
    replacement: 'one <= other',
    why: 'they differ',
  },
  {
    file: 'src/ledger/usage.ts',
    original: 'label === undefined',
    replacement: 'true',
    why: 'a name that is known is found anew, and is the same',
  },
  {
    file: 'src/ledger/windows.ts',
    original: 'end - 1',
    replacement: 'end + 1',
    why: 'the clocks do not change twice within two milliseconds',
  },
  {
    file: 'src/ledger/windows.ts',
    original: 'firstShown(place, step(first, 1) * DAY) <= at',
    replacement: 'firstShown(place, step(first, 1) * DAY) < at',
    why: 'at the very moment in which a day begins, the wall clock shows that day',
  },
  {
    file: 'src/ledger/windows.ts',
    original: 'from < wall + 16 * HOUR',
    replacement: 'from <= (wall + 16 * HOUR)',
    why: 'it has been shown by then',
  },
]
