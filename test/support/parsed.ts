/**
 * JSON or YAML as a test reads it: answers, lines of the log, bodies, manifests. It is what JSON.parse is declared to give: the shape is what a test is about, and
 * a wrong one has to fail an assertion that shows what was found. Nothing in `src/` has this type.
 */
export type Parsed = ReturnType<typeof JSON.parse>
