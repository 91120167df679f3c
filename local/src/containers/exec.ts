// Runs a further program in the environment of a running one, as `docker exec` does.
import type { ChildProcess } from 'node:child_process'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { EngineError, type ExecOptions, type ExecResult } from '../../../control-plane/src/engines/index.ts'
import { signalProcess } from '../process/process-group.ts'
import { exitOf, type ContainerProcess } from './container-process.ts'
import { programCommand } from './programs.ts'

const defaultOutputBytes = 16 * 1024 * 1024
const maxErrorCharacters = 64 * 1024

/** A program whose output is read. */
interface Program {
  child: ChildProcess
  stdout: Readable
  stderr: Readable
  /** Resolves to the exit code, after the output has ended. */
  ended: Promise<number>
}

/** Starts a program, which is killed when the signal aborts. @throws EngineError if it cannot be started */
export async function startInside(
  container: ContainerProcess,
  command: readonly string[],
  { input = '', signal }: ExecOptions,
): Promise<Program> {
  signal.throwIfAborted()
  const child = await container.spawnInside(programCommand(command))
  const { pid, stdin, stdout, stderr } = child
  if (pid === undefined || stdin === null || stdout === null || stderr === null)
    throw new EngineError('ENGINE_FAILED', `The program ${command[0] ?? ''} could not be started.`)
  const kill = () => signalProcess(-pid, 'SIGKILL')
  signal.addEventListener('abort', kill, { once: true })
  if (signal.aborted) kill()
  // A program that ends before it has read its input reports why by its exit code.
  pipeline(Readable.from(typeof input === 'string' ? [Buffer.from(input)] : input, { objectMode: false }), stdin).catch(
    () => undefined,
  )
  const ended = exitOf(child).then(() => {
    signal.removeEventListener('abort', kill)
    return child.exitCode ?? 137
  })
  return { child, stdout, stderr, ended }
}

/** Runs a program and collects its output. @throws EngineError for more output than allowed; the signal's reason */
export async function execInside(
  container: ContainerProcess,
  command: readonly string[],
  options: ExecOptions,
): Promise<ExecResult> {
  const { maxOutputBytes = defaultOutputBytes, signal } = options
  const tooMuch = new AbortController()
  const { stdout, stderr, ended } = await startInside(container, command, {
    ...options,
    signal: AbortSignal.any([signal, tooMuch.signal]),
  })
  const output: Buffer[] = []
  let bytes = 0
  stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxOutputBytes) tooMuch.abort()
    else output.push(chunk)
  })
  let errors = ''
  stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-maxErrorCharacters)))
  const closed = Promise.all([closeOf(stdout), closeOf(stderr)])
  const code = await ended
  await closed
  signal.throwIfAborted()
  if (tooMuch.signal.aborted)
    throw new EngineError('ENGINE_FAILED', `The output of a program exceeds ${maxOutputBytes} bytes.`)
  return { code, stdout: Buffer.concat(output).toString(), stderr: errors }
}

/** Yields the standard output of a program as it arrives. @throws EngineError if the exit code is not 0 */
export async function* streamInside(
  container: ContainerProcess,
  command: readonly string[],
  options: ExecOptions,
): AsyncGenerator<Uint8Array, undefined> {
  const { stdout, stderr, ended } = await startInside(container, command, options)
  let errors = ''
  stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-2_000)))
  yield* stdout as AsyncIterable<Uint8Array>
  const code = await ended
  options.signal.throwIfAborted()
  if (code !== 0) throw new EngineError('ENGINE_FAILED', `A program ended with exit code ${code}: ${errors.trim()}`)
}

function closeOf(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) resolve()
    else stream.once('close', () => resolve())
  })
}
