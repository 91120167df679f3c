// A cache of modules for executors, by tenant and hash: read from the tenant's database, checked, and with an imported
// memory. Each tenant has a share.
import type { Module } from '../executor/executor.ts'
import { importMemory } from './cap-memory.ts'
import { checkModule } from './check-module.ts'

interface ModuleCacheLimits {
  /** Maximum bytes of all modules. A single module may exceed it. */
  bytes: number
  /** Maximum bytes of one tenant's modules. A single module may exceed it. */
  tenantBytes: number
}

const megabyte = 1024 * 1024
const defaultModuleCacheLimits: ModuleCacheLimits = { bytes: 64 * megabyte, tenantBytes: 16 * megabyte }

/** Checks a module and makes it import its memory. @throws RuntimeError INVALID_WASM, WASM_TOO_LARGE */
export function prepareModule(wasm: Uint8Array, hash: string): Module {
  const shape = checkModule(wasm)
  return { key: hash, bytes: importMemory(wasm, shape), memory: shape.memory, reachesOut: shape.reachesOut }
}

interface CachedModules {
  /** Modules by hash, least recently used first. */
  modules: Map<string, Module>
  bytes: number
}

/**
 * Modules by tenant and hash. The key includes the tenant, because a tenant can change its `wasm_hash` and could otherwise
 * run another tenant's module. Before a module is added, its bytes are compared with the hash (FUNC-I2). A tenant's modules
 * make room for its own. When the whole cache is full, the tenant with the most bytes makes room, so that no tenant evicts
 * the modules of one that uses less.
 */
export class ModuleCache {
  readonly #limits: ModuleCacheLimits
  readonly #tenants = new Map<string, CachedModules>()
  #bytes = 0

  constructor(limits: ModuleCacheLimits = defaultModuleCacheLimits) {
    this.#limits = limits
  }

  get(tenantId: string, hash: string): Module | undefined {
    const modules = this.#tenants.get(tenantId)?.modules
    const known = modules?.get(hash)
    if (modules === undefined || known === undefined) return undefined
    modules.delete(hash)
    modules.set(hash, known)
    return known
  }

  /**
   * Adds a module.
   * @param hash the hash of `wasm`, which the caller has verified
   * @throws RuntimeError INVALID_WASM, WASM_TOO_LARGE
   */
  add(tenantId: string, wasm: Uint8Array, hash: string): Module {
    const known = this.get(tenantId, hash)
    if (known !== undefined) return known
    const module = prepareModule(wasm, hash)
    let own = this.#tenants.get(tenantId)
    if (own === undefined) this.#tenants.set(tenantId, (own = { modules: new Map<string, Module>(), bytes: 0 }))
    own.modules.set(hash, module)
    own.bytes += module.bytes.length
    this.#bytes += module.bytes.length
    while (own.bytes > this.#limits.tenantBytes && own.modules.size > 1) this.#dropOldest(tenantId, own)
    while (this.#bytes > this.#limits.bytes) {
      const [largestId, largest] = this.#largest(tenantId, own)
      if (largest === own && own.modules.size === 1) break
      this.#dropOldest(largestId, largest)
    }
    return module
  }

  /** Drops the modules of a tenant that was changed or deleted. */
  evict(tenantId: string): void {
    const cached = this.#tenants.get(tenantId)
    if (cached === undefined) return
    this.#bytes -= cached.bytes
    this.#tenants.delete(tenantId)
  }

  /** Returns the tenant with the most bytes; of several, the given one. */
  #largest(tenantId: string, own: CachedModules): [string, CachedModules] {
    let found: [string, CachedModules] = [tenantId, own]
    for (const entry of this.#tenants) if (entry[1].bytes > found[1].bytes) found = entry
    return found
  }

  #dropOldest(tenantId: string, cached: CachedModules): void {
    const [oldest] = cached.modules
    if (oldest === undefined) return
    const [hash, { bytes }] = oldest
    cached.modules.delete(hash)
    cached.bytes -= bytes.length
    this.#bytes -= bytes.length
    if (cached.modules.size === 0) this.#tenants.delete(tenantId)
  }
}
