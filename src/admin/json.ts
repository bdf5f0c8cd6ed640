/** What the page is told, as JSON: whole numbers beyond what a double holds are decimal text, and so are all amounts that are bigint here. */
export function asJson(value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) => (typeof field === 'bigint' ? String(field) : field))
}
