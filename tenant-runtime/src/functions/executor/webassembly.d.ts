// The part of WebAssembly's JavaScript interface that the executor uses. TypeScript declares it only for browsers.
declare namespace WebAssembly {
  interface Module {
    readonly __module: never
  }
  const Module: new (bytes: Uint8Array) => Module
  class Memory {
    constructor(limits: { initial: number; maximum: number })
    readonly buffer: ArrayBuffer
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, unknown>>)
    readonly exports: Record<string, unknown>
  }
}
