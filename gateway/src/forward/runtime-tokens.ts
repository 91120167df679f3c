// Chooses the token that a runtime receives. A tenant's own runtime never receives the installation's.
import { tenantToken, type Route } from '@tenantry/contract'

export class RuntimeTokens {
  readonly #internalToken: string
  /** Tokens of dedicated routes. A changed route is another object. */
  readonly #derived = new WeakMap<Route, string>()

  constructor(internalToken: string) {
    this.#internalToken = internalToken
  }

  of(route: Route): string {
    if (!route.dedicated) return this.#internalToken
    let token = this.#derived.get(route)
    if (token === undefined) {
      token = tenantToken(this.#internalToken, route.tenant_id)
      this.#derived.set(route, token)
    }
    return token
  }
}
