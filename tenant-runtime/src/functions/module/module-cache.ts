// Modules ready for executors, by hash: read from the tenant's database once, checked, with their memory made an import.
import type { Module } from '../executor/executor.ts'
import { importMemory } from './cap-memory.ts'
import { checkModule } from './check-module.ts'

const maxBytes = 64 * 1024 * 1024

/** @throws RuntimeError INVALID_WASM, WASM_TOO_LARGE */
export function prepareModule(wasm: Uint8Array, hash: string): Module {
  const shape = checkModule(wasm)
  return { key: hash, bytes: importMemory(wasm, shape), memory: shape.memory, reachesOut: shape.reachesOut }
}

export class ModuleCache {
  /** The longest unused first. A hash names its bytes, whoever's they are. */
  readonly #modules = new Map<string, Module>()
  #bytes = 0

  get(hash: string): Module | undefined {
    const known = this.#modules.get(hash)
    if (known === undefined) return undefined
    this.#modules.delete(hash)
    this.#modules.set(hash, known)
    return known
  }

  /** @throws RuntimeError INVALID_WASM, WASM_TOO_LARGE */
  add(wasm: Uint8Array, hash: string): Module {
    const known = this.get(hash)
    if (known !== undefined) return known
    const module = prepareModule(wasm, hash)
    this.#modules.set(hash, module)
    this.#bytes += module.bytes.length
    for (const [key, { bytes }] of this.#modules) {
      if (this.#bytes <= maxBytes || key === hash) break
      this.#modules.delete(key)
      this.#bytes -= bytes.length
    }
    return module
  }
}
