// Modules ready for executors, by tenant and hash: read from the tenant's database once, checked, with their memory made an import.
import type { Module } from '../executor/executor.ts'
import { importMemory } from './cap-memory.ts'
import { checkModule } from './check-module.ts'

const maxBytes = 64 * 1024 * 1024

/** @throws RuntimeError INVALID_WASM, WASM_TOO_LARGE */
export function prepareModule(wasm: Uint8Array, hash: string): Module {
  const shape = checkModule(wasm)
  return { key: hash, bytes: importMemory(wasm, shape), memory: shape.memory, reachesOut: shape.reachesOut }
}

/**
 * The hash alone must not find a module: a tenant writes its `wasm_hash` as it likes, and would run another tenant's module by
 * its hash. A tenant's first use of a hash reads the tenant's own bytes and compares them with it (FUNC-I2).
 */
export class ModuleCache {
  /** By tenant and hash, the least recently used first. */
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
   * @param hash of `wasm`, which the caller has compared
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

  /** Drops the modules of a tenant that has changed or is gone. */
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
