// A cache of modules for executors, by tenant and hash: read from the tenant's database, checked, and with an imported memory.
import type { Module } from '../executor/executor.ts'
import { importMemory } from './cap-memory.ts'
import { checkModule } from './check-module.ts'

const maxBytes = 64 * 1024 * 1024

/** Checks a module and makes it import its memory. @throws RuntimeError INVALID_WASM, WASM_TOO_LARGE */
export function prepareModule(wasm: Uint8Array, hash: string): Module {
  const shape = checkModule(wasm)
  return { key: hash, bytes: importMemory(wasm, shape), memory: shape.memory, reachesOut: shape.reachesOut }
}

/**
 * Modules by tenant and hash. The key includes the tenant, because a tenant can change its `wasm_hash` and could otherwise
 * run another tenant's module. Before a module is added, its bytes are compared with the hash (FUNC-I2).
 */
export class ModuleCache {
  /** Modules by tenant and hash, least recently used first. */
  readonly #modules = new Map<string, Module>()
  #bytes = 0

  get(tenantId: string, hash: string): Module | undefined {
    const key = keyOf(tenantId, hash)
    const known = this.#modules.get(key)
    if (known === undefined) return undefined
    this.#modules.delete(key)
    this.#modules.set(key, known)
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
    const added = keyOf(tenantId, hash)
    this.#modules.set(added, module)
    this.#bytes += module.bytes.length
    for (const [key, module] of this.#modules) {
      if (this.#bytes <= maxBytes || key === added) break
      this.#drop(key, module)
    }
    return module
  }

  /** Drops the modules of a tenant that was changed or deleted. */
  evict(tenantId: string): void {
    for (const [key, module] of this.#modules) if (key.startsWith(keyOf(tenantId, ''))) this.#drop(key, module)
  }

  #drop(key: string, { bytes }: Module): void {
    this.#modules.delete(key)
    this.#bytes -= bytes.length
  }
}

function keyOf(tenantId: string, hash: string): string {
  return `${tenantId}/${hash}`
}
