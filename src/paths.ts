/*
 * Where files lie that are found by their names, and not imported. This alone may say it: it lies in `src/` by itself, compiled as in the bundle, where
 * other code is in whatever file it came to share.
 */

/** The code: `src/`. */
export const SRC = new URL('./', import.meta.url)
/** The policies that come along. */
export const POLICIES = new URL('../policies/', SRC)
/** The package: `package.json`, `config/`, and what nobody compiles. */
export const PACKAGE = new URL('../../', SRC)
