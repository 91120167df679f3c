// Compilers of functions, for tests and examples: the machine's or, if they are missing, Debian's packages.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { exists, installPackages } from './debian-packages.ts'

const run = promisify(execFile)

/** Debian's packages of a C compiler for WASI: compiler, linker, C library, and the compiler's own runtime library. */
const cPackages = {
  clang: '/usr/bin/clang',
  lld: '/usr/bin/wasm-ld',
  'wasi-libc': '/usr/lib/wasm32-wasi/libc.a',
  'libclang-rt-dev-wasm32': '/usr/share/doc/libclang-rt-dev-wasm32',
}

/** Returns the path of clang, which finds the other packages. @throws Error if a package cannot be installed */
export async function ensureWasiClang(): Promise<string> {
  const found = await Promise.all(Object.values(cPackages).map(exists))
  if (found.includes(false)) await installPackages(...Object.keys(cPackages))
  return cPackages.clang
}

export interface RustCompiler {
  program: string
  /** Name of the target WASI preview 1, which earlier versions call `wasm32-wasi`. */
  target: string
}

const debianRust: RustCompiler = { program: '/usr/bin/rustc', target: 'wasm32-wasi' }

/** Returns a compiler with the target. @throws Error if none can be installed */
export async function ensureWasiRust(): Promise<RustCompiler> {
  const own: RustCompiler = { program: 'rustc', target: 'wasm32-wasip1' }
  if (await hasTarget(own)) return own
  if (!(await hasTarget(debianRust))) await installPackages('rustc', 'libstd-rust-dev-wasm32', 'lld')
  if (!(await hasTarget(debianRust))) throw new Error(`rustc was installed but has no target ${debianRust.target}.`)
  return debianRust
}

async function hasTarget({ program, target }: RustCompiler): Promise<boolean> {
  try {
    const { stdout } = await run(program, ['--print', 'target-libdir', '--target', target])
    return await exists(stdout.trim())
  } catch {
    return false
  }
}
