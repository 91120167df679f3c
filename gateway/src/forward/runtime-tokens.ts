// Chooses the token that a runtime receives. A tenant's own runtime never receives the installation's.
import { sentToken, tenantToken, type InternalToken, type Route } from '@tenantry/contract'

export class RuntimeTokens {
  readonly #internalToken: InternalToken
  /** Tokens of dedicated routes, with the token that they are derived from. A changed route is another object. */
  readonly #derived = new WeakMap<Route, { from: string; token: string }>()

  constructor(internalToken: InternalToken) {
    this.#internalToken = internalToken
  }

  of(route: Route): string {
    const from = sentToken(this.#internalToken)
    if (!route.dedicated) return from
    let derived = this.#derived.get(route)
    if (derived?.from !== from) {
      derived = { from, token: tenantToken(from, route.tenant_id) }
      this.#derived.set(route, derived)
    }
    return derived.token
  }
}
