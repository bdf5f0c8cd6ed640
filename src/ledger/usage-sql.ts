/** What is counted of records. */
export const COUNTS = {
  requests: 'count(*)',
  partial: "sum(state = 'partial')",
  failed: "sum(state IN ('voided', 'recovered'))",
  estimated: "sum(usage_source = 'estimate')",
} as const

/** What is added up of them. */
export const AMOUNTS = ['input_tokens', 'cached_input_tokens', 'output_tokens', 'reasoning_tokens', 'cost_rial', 'overrun_rial'] as const

/** All figures of a sum of records. */
export const FIGURES = [...(Object.keys(COUNTS) as (keyof typeof COUNTS)[]), ...AMOUNTS] as const

/** A record's moment falls into one of these, which begin at whole multiples of it. Days and months of every zone have begun at one since 1972. */
export const SLOT = 15 * 60_000

/** Sums of a range of records by some of their columns, and `slot`. Its parameters are `from`, `below`, `since`, `until`, `key`, `account` and `model`. */
export function usageSql(columns: readonly string[]): string {
  const shown = columns.map(name => (name === 'slot' ? `at / ${SLOT} AS slot` : name))
  const sums = [...Object.entries(COUNTS).map(([name, sum]) => `${sum} AS ${name}`), ...AMOUNTS.map(name => `sum(${name}) AS ${name}`)]
  return `SELECT ${[...shown, ...sums].join(', ')} FROM records
    WHERE id >= @from AND id < @below AND at >= @since AND at < @until
    AND (@key IS NULL OR key = @key) AND (@account IS NULL OR account = @account) AND (@model IS NULL OR model = @model)
    ${columns.length === 0 ? 'HAVING count(*) > 0' : `GROUP BY ${columns.join(', ')}`}`
}
