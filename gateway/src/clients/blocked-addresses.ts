// The client addresses that the operator has blocked: the control plane's watch, and a copy on disk.
import { BlockedAddress, WatchedTable, type InternalToken } from '@tenantry/contract'
import { NetworkSet } from './network-set.ts'

interface BlockedAddressesOptions {
  /** The absolute URL of the watch of blocked addresses. */
  url: string
  internalToken: InternalToken
  /** The file of the last known addresses, for a start without a control plane. */
  file: string
  fetch: typeof globalThis.fetch
  /** Whether an address is never blocked, because others' requests come from it. */
  isExempt: (address: string) => boolean
  /** Returns milliseconds since 1970. */
  now: () => number
  /** Called soon after addresses were blocked, once for many of them, so that their connections are closed. */
  onBlocked: () => void
  onError: (error: Error) => void
}

/** The milliseconds for which further changes are awaited before connections are closed. */
const settleMilliseconds = 100

export class BlockedAddresses {
  readonly #options: BlockedAddressesOptions
  readonly #table: WatchedTable<BlockedAddress, 'address'>
  readonly #networks = new NetworkSet()
  #timer: NodeJS.Timeout | undefined
  /** The number of connections that were closed, and of requests that were rejected, because of their address. */
  rejected = 0

  constructor(options: BlockedAddressesOptions) {
    this.#options = options
    this.#table = new WatchedTable<BlockedAddress, 'address'>({
      ...options,
      schema: BlockedAddress,
      key: 'address',
      onChange: (address, entry) => this.#changed(address, entry),
    })
  }

  /** Reads the addresses of an earlier run. */
  load(): Promise<void> {
    return this.#table.load()
  }

  /** Watches the control plane until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#table.run(signal)
    clearTimeout(this.#timer)
  }

  /** Whether an address is blocked now. */
  has(address: string): boolean {
    if (this.#table.size === 0) return false
    return this.#networks.has(address, this.#options.now()) && !this.#options.isExempt(address)
  }

  /** Whether an address is blocked now, so that the caller rejects its connection or request. */
  rejects(address: string): boolean {
    const isBlocked = this.has(address)
    if (isBlocked) this.rejected++
    return isBlocked
  }

  /** The number of blocked addresses and networks. */
  get size(): number {
    let size = 0
    for (const { expires_at: end } of this.#table.values()) if (endOf(end) > this.#options.now()) size++
    return size
  }

  #changed(address: string, entry: BlockedAddress | undefined): void {
    if (entry === undefined) {
      this.#networks.remove(address)
      return
    }
    this.#networks.put(address, endOf(entry.expires_at))
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#options.onBlocked()
    }, settleMilliseconds)
  }
}

/** Returns the end of an entry in milliseconds since 1970. */
function endOf(expiresAt: string | null): number {
  return expiresAt === null ? Infinity : Date.parse(expiresAt)
}
