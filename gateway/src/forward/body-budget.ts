// The budget of bytes that the gateway buffers of all request bodies. A tenant or a client address may hold as much as is still
// free, so that any number of slow runtimes leaves room for others.

/** A tenant or a client address whose bodies are buffered. */
export interface BodyHolder {
  /** The number of bytes that are buffered. */
  bodyBytes: number
}

/** The milliseconds after which bodies that wait for room try again. */
const retryMilliseconds = 10

interface TenantBodies extends BodyHolder {
  readonly tenantId: string
  bodies: number
}

export class BodyBudget {
  readonly #max: number
  /** The number of bytes that are buffered. */
  held = 0
  readonly #tenants = new Map<string, TenantBodies>()
  readonly #waiting = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #waits = 0
  /** The number of bodies that were too slow. */
  slow = 0

  /** @param max the maximum number of bytes */
  constructor(max: number) {
    this.#max = max
  }

  /** The number of bytes that are not used. */
  get free(): number {
    return this.#max - this.held
  }

  /** The number of times that a body was not read because its tenant or client held its share. */
  get waits(): number {
    return this.#waits
  }

  /** Opens a body's share. The caller calls `close` when it ends. */
  open(tenantId: string, client: BodyHolder): BodyShare {
    let tenant = this.#tenants.get(tenantId)
    if (tenant === undefined) {
      tenant = { tenantId, bodyBytes: 0, bodies: 0 }
      this.#tenants.set(tenantId, tenant)
    }
    tenant.bodies++
    return new BodyShare(this, tenant, client)
  }

  /** Removes a body that has ended. */
  ended(tenant: TenantBodies): void {
    if (--tenant.bodies === 0) this.#tenants.delete(tenant.tenantId)
  }

  /** Calls the function once, soon. */
  wait(retry: () => void): void {
    this.#waits++
    this.#waiting.add(retry)
    this.#timer ??= setInterval(() => this.#retryAll(), retryMilliseconds)
  }

  #retryAll(): void {
    const all = [...this.#waiting]
    this.#waiting.clear()
    for (const retry of all) retry()
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** One body's part of the budget. */
export class BodyShare {
  readonly #budget: BodyBudget
  readonly #tenant: TenantBodies
  readonly #client: BodyHolder
  #bytes = 0
  #isOpen = true

  constructor(budget: BodyBudget, tenant: TenantBodies, client: BodyHolder) {
    this.#budget = budget
    this.#tenant = tenant
    this.#client = client
  }

  /** Sets the number of bytes that the body holds. */
  hold(bytes: number): void {
    const more = bytes - this.#bytes
    if (more === 0) return
    this.#bytes = bytes
    this.#budget.held += more
    this.#tenant.bodyBytes += more
    this.#client.bodyBytes += more
  }

  /** Whether more may be read. */
  get hasRoom(): boolean {
    const { free } = this.#budget
    return this.#tenant.bodyBytes < free && this.#client.bodyBytes < free
  }

  /** Releases all of it, once. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.hold(0)
    this.#budget.ended(this.#tenant)
  }
}
