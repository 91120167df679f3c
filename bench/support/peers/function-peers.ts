// Deno and workerd, each as one process that runs a command in a new instance for every request.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { freePort } from '#test/support/postgres.ts'
import { startProgram, type Program } from '../child.ts'
import type { PeerPrograms } from './packages.ts'

export interface FunctionPeer extends Program {
  port: number
}

/**
 * Starts workerd and Deno. They may not be ready yet.
 * @param directory an existing directory, for their files
 */
export async function startFunctionPeers(
  directory: string,
  programs: PeerPrograms,
  command: Uint8Array,
): Promise<Record<'workerd' | 'deno', FunctionPeer>> {
  const files = join(directory, 'functions')
  await mkdir(files)
  await writeFile(join(files, 'command.wasm'), command)
  await bundle(files, ['command-host', 'deno-function'])
  await writeFile(join(files, 'workerd-function.mjs'), workerdProgram)
  const [workerdPort, denoPort] = [await freePort(), await freePort()]
  await writeFile(join(files, 'workerd.capnp'), workerdConfiguration(workerdPort))
  const workerd = startProgram(programs.workerd, ['serve', join(files, 'workerd.capnp')])
  const deno = startProgram(
    programs.deno,
    [
      'run',
      // It needs none of the project's packages.
      '--no-config',
      '--cached-only',
      '--allow-net=127.0.0.1',
      '--allow-read',
      join(files, 'deno-function.mjs'),
      join(files, 'command.wasm'),
      String(denoPort),
    ],
    { DENO_DIR: join(files, 'deno'), DENO_NO_UPDATE_CHECK: '1' },
  )
  return { workerd: { port: workerdPort, ...workerd }, deno: { port: denoPort, ...deno } }
}

/** Writes programs of this folder as one file each, without types, which workerd does not know. */
async function bundle(directory: string, names: string[]): Promise<void> {
  await build({
    entryPoints: names.map((name) => join(import.meta.dirname, `${name}.ts`)),
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    target: 'es2024',
    logLevel: 'error',
  })
}

/** The program of workerd, which passes compiled modules of its configuration to it. */
const workerdProgram = `import command from 'command.wasm'
import { respond } from 'command-host.mjs'
export default { fetch: (request) => respond(command, request) }
`

function workerdConfiguration(port: number): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "function", worker = .function)],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "function")]
);
const function :Workerd.Worker = (
  modules = [
    (name = "function", esModule = embed "workerd-function.mjs"),
    (name = "command-host.mjs", esModule = embed "command-host.mjs"),
    (name = "command.wasm", wasm = embed "command.wasm")
  ],
  compatibilityDate = "2026-11-01"
);
`
}
