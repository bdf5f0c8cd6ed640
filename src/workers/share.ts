import type { Config } from '../config/config.js'

/** A worker's part of a config: what is bounded for the gateway as a whole is shared out, at least one to each. */
export function share(config: Config, workers: number): Config {
  const part = (whole: number): number => Math.max(1, Math.floor(whole / workers))
  const providers = new Map(
    [...config.providers].map(([name, settings]) => [
      name,
      { ...settings, max_connections: part(settings.max_connections), queue: settings.queue === 0 ? 0 : part(settings.queue) },
    ]),
  )
  return { ...config, providers, limits: { ...config.limits, connections: part(config.limits.connections) } }
}
