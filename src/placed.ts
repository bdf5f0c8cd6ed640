const PLACE = /^(.*):(\d+):(\d+)$/

/** A place in a file, as text: `gateway.yaml:12:5`. Without numbers, the file's beginning. */
export function placed(at: string): { readonly file: string; readonly line: number; readonly col: number } {
  const [, file = at, line = '1', col = '1'] = PLACE.exec(at) ?? []
  return { file, line: Number(line), col: Number(col) }
}
