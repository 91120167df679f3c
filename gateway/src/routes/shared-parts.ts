// Equal parts of the routes of many tenants, for example the limits of their plan, of which memory has one each.
import type { Route } from '@tenantry/contract'

/** Maximum number of parts. Beyond it, the parts of new routes are compared with later ones only. */
const maxParts = 1_000

export class SharedParts {
  readonly #known = new Map<string, unknown>()

  /** Replaces parts of a route by equal ones of earlier routes. */
  share(route: Route): void {
    if (route.limits !== undefined) route.limits = this.#of(route.limits)
    if (route.postgres !== undefined) route.postgres = this.#of(route.postgres)
    if (route.home_database !== undefined) route.home_database = this.#of(route.home_database)
    route.runtimes = this.#of(route.runtimes)
    route.phase = this.#of(route.phase)
  }

  #of<Part>(part: Part): Part {
    const text = JSON.stringify(part)
    // The text is that of a part of the same type.
    const known = this.#known.get(text) as Part | undefined
    if (known !== undefined) return known
    if (this.#known.size >= maxParts) this.#known.clear()
    this.#known.set(text, part)
    return part
  }
}
