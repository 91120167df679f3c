// Compilers of functions, for tests and examples: the machine's, or Debian's packages where they are missing.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { exists, installPackages } from './debian-packages.ts'

const run = promisify(execFile)

/** What a C compiler for WASI consists of on Debian: compiler, linker, C library, the compiler's own routines. */
const cPackages = {
  clang: '/usr/bin/clang',
  lld: '/usr/bin/wasm-ld',
  'wasi-libc': '/usr/lib/wasm32-wasi/libc.a',
  'libclang-rt-dev-wasm32': '/usr/share/doc/libclang-rt-dev-wasm32',
}

/** @returns the path of clang, which finds the rest. @throws Error when something is missing and can't be installed */
export async function ensureWasiClang(): Promise<string> {
  const found = await Promise.all(Object.values(cPackages).map(exists))
  if (found.includes(false)) await installPackages(...Object.keys(cPackages))
  return cPackages.clang
}

export interface RustCompiler {
  program: string
  /** Its name of WASI preview 1, which was `wasm32-wasi` once. */
  target: string
}

const debianRust: RustCompiler = { program: '/usr/bin/rustc', target: 'wasm32-wasi' }

/** @throws Error when there is none that has the target and none can be installed */
export async function ensureWasiRust(): Promise<RustCompiler> {
  const own: RustCompiler = { program: 'rustc', target: 'wasm32-wasip1' }
  if (await hasTarget(own)) return own
  if (!(await hasTarget(debianRust))) await installPackages('rustc', 'libstd-rust-dev-wasm32', 'lld')
  if (!(await hasTarget(debianRust))) throw new Error(`rustc was installed, and has no ${debianRust.target}`)
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
