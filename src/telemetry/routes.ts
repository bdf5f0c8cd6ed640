import type { UsageSource } from '../ledger/ledger.js'
import type { Usage } from '../metering/usage.js'
import type { Definitions } from './definitions.js'
import type { CounterCell, HistogramCell } from './families.js'
import { type KnownLabels, statusLabel } from './labels.js'
import type { Finished } from './metrics.js'

type Families = Definitions['families']

/** The cells of what a finished exchange is counted in, found by three look-ups of names that the config knows. */
export class Routes {
  readonly #families: Families
  readonly #known: KnownLabels
  readonly #routes = new Map<string, Map<string, Map<string, Route>>>()

  constructor(families: Families, known: KnownLabels) {
    this.#families = families
    this.#known = known
  }

  of(surface: string, model: string | null, provider: string | null): Route {
    const surfaceLabel = this.#known.surface(surface)
    const modelLabel = this.#known.model(model)
    const providerLabel = this.#known.provider(provider)
    const models = within(this.#routes, surfaceLabel, () => new Map<string, Map<string, Route>>())
    const providers = within(models, modelLabel, () => new Map<string, Route>())
    return within(providers, providerLabel, () => new Route(this.#families, surfaceLabel, modelLabel, providerLabel))
  }
}

function within<Value>(map: Map<string, Value>, name: string, make: () => Value): Value {
  let value = map.get(name)
  if (value === undefined) {
    value = make()
    map.set(name, value)
  }
  return value
}

interface TokenCells {
  readonly input: CounterCell
  readonly cached: CounterCell
  readonly output: CounterCell
  readonly reasoning: CounterCell
}

/** One surface, model and provider. Cells that an exchange does not come to are not made, so that their series do not show. */
class Route {
  readonly #statuses = new Map<number, CounterCell>()
  readonly #tokens = new Map<UsageSource, TokenCells>()
  readonly #duration: HistogramCell
  #overhead: HistogramCell | undefined
  #firstToken: HistogramCell | undefined
  #outputToken: HistogramCell | undefined
  #estimate: HistogramCell | undefined
  #spend: CounterCell | undefined

  constructor(
    private readonly families: Families,
    private readonly surface: string,
    private readonly model: string,
    private readonly provider: string,
  ) {
    this.#duration = families.duration.cell(surface, model, provider)
  }

  finished(exchange: Finished, costRial: number): void {
    this.#status(exchange.status).add(1)
    this.#duration.observe(exchange.durationMs / 1000)
    if (exchange.overheadMs !== null) {
      this.#overhead ??= this.families.overhead.cell(this.surface)
      this.#overhead.observe(exchange.overheadMs / 1000)
    }
    if (exchange.stream && exchange.ttftMs !== null) this.#streamed(exchange.ttftMs, exchange.durationMs, exchange.usage)
    if (exchange.usage !== null) this.#used(exchange.usage, exchange.estimatedInput)
    if (exchange.ending !== null) {
      this.#spend ??= this.families.spend.cell(this.model, this.provider)
      this.#spend.add(costRial)
    }
    if (exchange.overrunRial > 0n) this.families.overrun.cell(this.model).add(Number(exchange.overrunRial))
  }

  #status(status: number): CounterCell {
    let cell = this.#statuses.get(status)
    if (cell === undefined) {
      cell = this.families.requests.cell(this.surface, this.model, statusLabel(status))
      if (this.#statuses.size < 100) this.#statuses.set(status, cell)
    }
    return cell
  }

  #streamed(ttftMs: number, durationMs: number, usage: Usage | null): void {
    this.#firstToken ??= this.families.firstToken.cell(this.model, this.provider)
    this.#firstToken.observe(ttftMs / 1000)
    if (usage === null || usage.output < 2) return
    this.#outputToken ??= this.families.outputToken.cell(this.model, this.provider)
    this.#outputToken.observe((durationMs - ttftMs) / 1000 / (usage.output - 1))
  }

  #used(usage: Usage, estimatedInput: number | null): void {
    const cells = this.#tokenCells(usage.source)
    cells.input.add(usage.input)
    cells.cached.add(usage.cached)
    cells.output.add(usage.output)
    cells.reasoning.add(usage.reasoning)
    if (estimatedInput === null || usage.source !== 'provider' || usage.input === 0) return
    this.#estimate ??= this.families.estimate.cell(this.model)
    this.#estimate.observe(estimatedInput / usage.input)
  }

  #tokenCells(source: UsageSource): TokenCells {
    let cells = this.#tokens.get(source)
    if (cells === undefined) {
      const cell = (type: string) => this.families.tokens.cell(this.model, this.provider, type, source)
      cells = { input: cell('input'), cached: cell('cached_input'), output: cell('output'), reasoning: cell('reasoning') }
      this.#tokens.set(source, cells)
    }
    return cells
  }
}
