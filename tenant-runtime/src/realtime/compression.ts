// The compression of messages (permessage-deflate, RFC 7692) with bounds of memory: small windows, nothing that is kept from one
// message to the next, and a limited number of connections.
import type { PerMessageDeflateOptions } from 'ws'

/** Bits of the windows in which repeated text is found: 4 KiB in both directions. */
const windowBits = 12
/** Bytes of a buffer that zlib fills. */
const chunkSize = 8 * 1024
/** The number of connections of the process with compression. Each has about 70 KiB of zlib's memory. */
const maxConnections = 1_000
/** The number of connections of one tenant with compression. */
const maxConnectionsOfTenant = 250

export const compressionOptions: PerMessageDeflateOptions = {
  serverNoContextTakeover: true,
  clientNoContextTakeover: true,
  serverMaxWindowBits: windowBits,
  clientMaxWindowBits: windowBits,
  // Shorter messages would hardly become shorter.
  threshold: 1_024,
  // Messages are compressed and decompressed by Node's threads, of which files need some, too.
  concurrencyLimit: 2,
  zlibDeflateOptions: { level: 4, memLevel: 5, chunkSize },
  zlibInflateOptions: { chunkSize },
}

/** The connections with compression. Further ones are served without it. */
export class CompressedConnections {
  readonly #byTenant = new Map<string, number>()
  #count = 0

  /** Whether one more connection of the tenant may have compression. If so, `release` must follow. */
  take(tenantId: string): boolean {
    const own = this.#byTenant.get(tenantId) ?? 0
    if (this.#count >= maxConnections || own >= maxConnectionsOfTenant) return false
    this.#count++
    this.#byTenant.set(tenantId, own + 1)
    return true
  }

  release(tenantId: string): void {
    const own = this.#byTenant.get(tenantId) ?? 0
    this.#count--
    if (own > 1) this.#byTenant.set(tenantId, own - 1)
    else this.#byTenant.delete(tenantId)
  }
}
