// Runs a WASI command for a request, in a new instance, with as little code as possible: only the functions of WASI that
// the benchmark's command imports. Deno and workerd run this file, so it uses nothing of Node.
import { functionEnvironment } from '../function-environment.ts'

const success = 0
/** The name by which WebAssembly modules import WASI preview 1. */
const wasi = 'wasi_snapshot_preview1'

/** Thrown to leave a command that calls `proc_exit`. */
class Exit extends Error {
  readonly code: number

  constructor(code: number) {
    super(`The command exited with code ${code}.`)
    this.code = code
  }
}

const encoder = new TextEncoder()
const variables = functionEnvironment.map((variable) => encoder.encode(`${variable}\0`))
const variableBytes = variables.reduce((sum, { length }) => sum + length, 0)

/**
 * Runs the command in a new instance.
 * @returns what it writes to standard output
 * @throws Error if it traps, or exits with another code than 0
 */
export function runCommand(module: WebAssembly.Module, input: Uint8Array): Uint8Array<ArrayBuffer> {
  const output: Uint8Array[] = []
  let read = 0
  const instance = new WebAssembly.Instance(module, {
    [wasi]: {
      environ_sizes_get(count: number, bytes: number) {
        const view = new DataView(memory.buffer)
        view.setUint32(count, variables.length, true)
        view.setUint32(bytes, variableBytes, true)
        return success
      },
      environ_get(pointers: number, buffer: number) {
        const [view, bytes] = [new DataView(memory.buffer), new Uint8Array(memory.buffer)]
        let at = buffer
        for (const [index, variable] of variables.entries()) {
          view.setUint32(pointers + index * 4, at, true)
          bytes.set(variable, at)
          at += variable.length
        }
        return success
      },
      fd_read(_fd: number, vectors: number, count: number, total: number) {
        let sum = 0
        for (const target of buffersAt(memory, vectors, count)) {
          const chunk = input.subarray(read, read + target.length)
          target.set(chunk)
          read += chunk.length
          sum += chunk.length
        }
        new DataView(memory.buffer).setUint32(total, sum, true)
        return success
      },
      fd_write(fd: number, vectors: number, count: number, total: number) {
        let sum = 0
        for (const source of buffersAt(memory, vectors, count)) {
          if (fd === 1) output.push(source.slice())
          sum += source.length
        }
        new DataView(memory.buffer).setUint32(total, sum, true)
        return success
      },
      proc_exit(code: number) {
        throw new Exit(code)
      },
    },
  })
  const memory = instance.exports['memory'] as WebAssembly.Memory
  try {
    ;(instance.exports['_start'] as () => void)()
  } catch (error) {
    if (!(error instanceof Exit) || error.code !== 0) throw error
  }
  return joined(output)
}

/** Responds to a request with what the command writes when it reads the request's body. */
export async function respond(module: WebAssembly.Module, request: Request): Promise<Response> {
  const output = runCommand(module, new Uint8Array(await request.arrayBuffer()))
  return new Response(output, { headers: { 'content-type': 'application/json; charset=utf-8' } })
}

/** Returns the buffers of a list of addresses and lengths. */
function buffersAt(memory: WebAssembly.Memory, vectors: number, count: number): Uint8Array[] {
  const view = new DataView(memory.buffer)
  return Array.from({ length: count }, (_, index) => {
    const at = vectors + index * 8
    return new Uint8Array(memory.buffer, view.getUint32(at, true), view.getUint32(at + 4, true))
  })
}

function joined(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const chunk of chunks) {
    all.set(chunk, at)
    at += chunk.length
  }
  return all
}
