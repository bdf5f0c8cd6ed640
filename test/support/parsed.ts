/**
 * JSON or YAML as a test reads it: answers, lines of the log, bodies, manifests. Its shape is what the test is about, so that a wrong one has to fail an assertion that
 * shows what was found; a type would claim the shape before anybody has looked. All that is read so has this type, and nothing in `src/` has.
 */
// biome-ignore lint/suspicious/noExplicitAny: `unknown` would need a cast at each of a thousand looks, which claims the same and checks as little.
export type Parsed = any
