// Compiles an AssemblyScript function to a WASI command, in a separate process, because the compiler defines global names.
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const project = join(import.meta.dirname, '..', '..')
const compiler = join(project, 'node_modules', 'assemblyscript', 'bin', 'asc.js')
/** The path is relative, because the compiler searches the configuration's library below its base directory. */
const wasi = './node_modules/@assemblyscript/wasi-shim/asconfig.json'

/** Compiles the function `name`: a file of this folder, without `.as.ts`. */
export async function compileFunction(name: string): Promise<Uint8Array<ArrayBuffer>> {
  return compileFile(join(import.meta.dirname, `${name}.as.ts`))
}

/** Compiles a text, which may import "./tenantry.as", for tests. */
export async function compileSource(source: string): Promise<Uint8Array<ArrayBuffer>> {
  const scratch = await mkdtemp(join(tmpdir(), 'tenantry-asc-'))
  try {
    const file = join(scratch, 'function.as.ts')
    await writeFile(file, source)
    await copyFile(join(import.meta.dirname, 'tenantry.as.ts'), join(scratch, 'tenantry.as.ts'))
    return await compileFile(file)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

async function compileFile(file: string): Promise<Uint8Array<ArrayBuffer>> {
  const scratch = await mkdtemp(join(tmpdir(), 'tenantry-wasm-'))
  try {
    const out = join(scratch, 'function.wasm')
    await run(process.execPath, [compiler, relative(project, file), '--config', wasi, '--outFile', relative(project, out), '-O', '--noAssert', '--runtime', 'incremental'], { cwd: project, timeout: 60_000 })
    return new Uint8Array(await readFile(out))
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}
