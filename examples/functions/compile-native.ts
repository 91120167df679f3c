// Compiles functions in C and Rust to WASI commands, and installs missing compilers.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ensureWasiClang, ensureWasiRust } from '../../scripts/wasm-toolchains.ts'

const run = promisify(execFile)
const compileMilliseconds = 120_000

/** Compiles a file in C. @param options further arguments of clang, such as `-I` for headers @throws Error with the compiler's output */
export async function compileC(file: string, options: readonly string[] = []): Promise<Uint8Array<ArrayBuffer>> {
  const clang = await ensureWasiClang()
  return compiled((out) => [clang, '--target=wasm32-wasi', '-O2', '-Wall', '-Werror', '-Wl,--strip-all', ...options, '-o', out, file])
}

/** Compiles a text in C, for tests. */
export async function compileCSource(source: string, options: readonly string[] = []): Promise<Uint8Array<ArrayBuffer>> {
  return inScratch(async (scratch) => {
    const file = join(scratch, 'function.c')
    await writeFile(file, source)
    return compileC(file, options)
  })
}

/** Compiles one file in Rust, without crates. @throws Error with the compiler's output */
export async function compileRust(file: string): Promise<Uint8Array<ArrayBuffer>> {
  const { program, target } = await ensureWasiRust()
  return compiled((out) => [program, '--edition=2021', `--target=${target}`, '-Copt-level=2', '-Cpanic=abort', '-Cstrip=symbols', '-Clink-arg=--strip-all', '-o', out, file])
}

/** Compiles a text in Rust, for tests. */
export async function compileRustSource(source: string): Promise<Uint8Array<ArrayBuffer>> {
  return inScratch(async (scratch) => {
    const file = join(scratch, 'function.rs')
    await writeFile(file, source)
    return compileRust(file)
  })
}

async function compiled(commandLine: (out: string) => [program: string, ...args: string[]]): Promise<Uint8Array<ArrayBuffer>> {
  return inScratch(async (scratch) => {
    const out = join(scratch, 'function.wasm')
    const [program, ...args] = commandLine(out)
    await run(program, args, { timeout: compileMilliseconds })
    return new Uint8Array(await readFile(out))
  })
}

async function inScratch<T>(work: (scratch: string) => Promise<T>): Promise<T> {
  const scratch = await mkdtemp(join(tmpdir(), 'tenantry-wasm-'))
  try {
    return await work(scratch)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}
