// The client addresses that hold anything at this gateway.
import { addressKey } from './address-key.ts'
import { ClientAddress, type RejectionLimit } from './client-address.ts'

/** The number of new addresses after which those are removed whose rejections no longer matter. */
const addressesPerSweep = 1_000

export class ClientAddresses {
  readonly #isProxy: (address: string) => boolean
  readonly #limit: RejectionLimit
  readonly #addresses = new Map<string, ClientAddress>()
  #untilSweep = addressesPerSweep

  /**
   * Creates the collection.
   * @param isProxy whether an address is a proxy of the operator, in front of other clients
   * @param limit the limit of each address' rejected requests
   */
  constructor(isProxy: (address: string) => boolean, limit: RejectionLimit) {
    this.#isProxy = isProxy
    this.#limit = limit
  }

  /** Returns what an address holds. The caller calls `release` when it holds nothing more of it. */
  of(address: string): ClientAddress {
    const key = addressKey(address)
    let held = this.#addresses.get(key)
    if (held === undefined) {
      if (--this.#untilSweep === 0) this.#sweep()
      held = new ClientAddress(key, this.#isProxy(address), this.#limit)
      this.#addresses.set(key, held)
    }
    return held
  }

  /** Removes an address of which nothing has to be remembered. */
  release(address: ClientAddress): void {
    if (address.isClear && this.#addresses.get(address.key) === address) this.#addresses.delete(address.key)
  }

  #sweep(): void {
    this.#untilSweep = addressesPerSweep
    for (const address of this.#addresses.values()) this.release(address)
  }

  all(): Iterable<ClientAddress> {
    return this.#addresses.values()
  }
}
