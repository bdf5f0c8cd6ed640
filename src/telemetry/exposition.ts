export type Format = 'text' | 'openmetrics'

/** The header field `content-type` of each format. */
export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

/** What a scraper would rather have, by its `Accept` (RFC 9110, 12.5.1). Text, unless OpenMetrics is asked for by name and not as second best. */
export function formatFor(accept: string | undefined): Format {
  let text = 0
  let openmetrics = 0
  for (const part of (accept ?? '').split(',')) {
    const [range = '', ...parameters] = part.split(';').map(piece => piece.trim().toLowerCase())
    const q = quality(parameters)
    if (range === 'application/openmetrics-text') {
      if (understood(parameters)) openmetrics = Math.max(openmetrics, q)
    } else if (range === 'text/plain') {
      text = Math.max(text, q)
    }
  }
  return openmetrics > 0 && openmetrics >= text ? 'openmetrics' : 'text'
}

function quality(parameters: readonly string[]): number {
  const given = parameters.find(parameter => parameter.startsWith('q='))
  if (given === undefined) return 1
  const q = Number(given.slice(2))
  return q >= 0 && q <= 1 ? q : 0
}

function understood(parameters: readonly string[]): boolean {
  const version = parameters.find(parameter => parameter.startsWith('version='))
  return version === undefined || /^version="?(1\.0\.0|0\.0\.1)"?$/.test(version)
}

/**
 * OpenMetrics made from Prometheus text as prom-client prints it. prom-client's own OpenMetrics mode is not used: it takes `_total` off the
 * names of a registry's counters for good (15.1), so that every later text scrape would show other names.
 */
export function openMetrics(text: string): string {
  const families = text
    .replace(/^# HELP (\S+)_total (.*)\n# TYPE \1_total counter$/gm, '# HELP $1 $2\n# TYPE $1 counter')
    .replace(/\n{2,}/g, '\n')
    .trim()
  return `${families}\n# EOF\n`
}
