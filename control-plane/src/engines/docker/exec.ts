// Runs a command in a container: pipes standard input, separates standard output and standard error, and reads the exit code.
import type Dockerode from 'dockerode'
import { setTimeout as delay } from 'node:timers/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type ExecOptions, type ExecResult, EngineError } from '../index.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { consumeStream } from './consume-stream.ts'
import { demultiplex, type Chunk } from './frames.ts'

/**
 * Maximum time in which a command neither reads nor writes. After it the call ends; the command still runs, because the
 * Engine cannot end it.
 */
const silentSeconds = 900

const defaultMaxOutputBytes = 16 * 1024 * 1024
/** Bytes that are retained of the end of standard error. */
const maxErrorBytes = 64 * 1024

/**
 * Runs a command and collects its output. @throws EngineError `ENGINE_FAILED` for more output than `maxOutputBytes` (16
 * MiB)
 */
export async function exec(
  api: EngineApi,
  container: string,
  command: readonly string[],
  options: ExecOptions,
): Promise<ExecResult> {
  const output: Uint8Array[] = []
  const limit = options.maxOutputBytes ?? defaultMaxOutputBytes
  const stderr = new Tail(maxErrorBytes)
  let length = 0
  const run = start(api, container, command, options)
  for await (const { stream, bytes } of run.chunks) {
    if (stream === 'stderr') stderr.add(bytes)
    else {
      length += bytes.length
      if (length > limit)
        throw new EngineError('ENGINE_FAILED', `Cannot ${run.doing}: the output exceeds ${limit} bytes.`)
      output.push(bytes)
    }
  }
  return { code: await run.code(), stdout: Buffer.concat(output).toString(), stderr: stderr.text() }
}

/** Yields standard output; throws at its end if the exit code is not 0. */
export async function* execStream(
  api: EngineApi,
  container: string,
  command: readonly string[],
  options: ExecOptions,
): AsyncGenerator<Uint8Array, undefined> {
  const stderr = new Tail(maxErrorBytes)
  const run = start(api, container, command, options)
  for await (const { stream, bytes } of run.chunks) {
    if (stream === 'stdout') yield bytes
    else stderr.add(bytes)
  }
  const code = await run.code()
  if (code !== 0)
    throw new EngineError(
      'ENGINE_FAILED',
      `Cannot ${run.doing}: exit code ${code}: ${stderr.text().trim().slice(-2000)}`,
    )
}

interface Run {
  doing: string
  chunks: AsyncIterable<Chunk>
  /** Returns the exit code, once all chunks are read. */
  code(): Promise<number>
}

function start(api: EngineApi, container: string, command: readonly string[], { input, signal }: ExecOptions): Run {
  const doing = `run ${command[0] ?? ''} in ${container}`
  let id = ''
  async function* chunks(): AsyncGenerator<Chunk, undefined> {
    id = await create(api, doing, container, command, input !== undefined, signal)
    const socket = await api.upgrade(
      { doing, method: 'POST', path: `/exec/${id}/start`, body: { Detach: false, Tty: false } },
      signal,
    )
    const response = consumeStream(doing, socket, signal, { silentSeconds })
    const source = input === undefined ? undefined : observeInput(input, response.noteActivity)
    // A command that ends without reading its input closes the connection. Its exit code reports whether that is a failure.
    if (source !== undefined)
      void pipeline(Readable.from(source.chunks, { objectMode: false }), socket).catch(() => undefined)
    try {
      yield* demultiplex(response)
    } catch (cause) {
      throw source?.failure() ?? cause
    }
  }
  return { doing, chunks: chunks(), code: () => exitCode(api, doing, id, signal) }
}

async function create(
  api: EngineApi,
  doing: string,
  container: string,
  command: readonly string[],
  withInput: boolean,
  signal: AbortSignal,
): Promise<string> {
  const body = { AttachStdin: withInput, AttachStdout: true, AttachStderr: true, Tty: false, Cmd: command }
  const { Id } = (await api.request(
    { doing, method: 'POST', path: `/containers/${segment(container)}/exec`, body },
    signal,
  )) as { Id: string }
  return Id
}

interface Source {
  chunks: AsyncIterable<Uint8Array>
  /** Returns the error of the input itself, if it has failed. */
  failure(): Error | undefined
}

function observeInput(input: string | AsyncIterable<Uint8Array>, noteActivity: () => void): Source {
  let failure: Error | undefined
  async function* chunks(): AsyncGenerator<Uint8Array, undefined> {
    try {
      for await (const chunk of typeof input === 'string' ? [Buffer.from(input)] : input) {
        noteActivity()
        yield chunk
      }
    } catch (cause) {
      failure = cause instanceof Error ? cause : new Error('The input failed.', { cause })
      throw failure
    }
  }
  return { chunks: chunks(), failure: () => failure }
}

/** Polls for the exit code: the connection may end a moment before the Engine records the end of the process. */
async function exitCode(api: EngineApi, doing: string, id: string, signal: AbortSignal): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const { Running, ExitCode } = (await api.request(
      { doing, method: 'GET', path: `/exec/${id}/json` },
      signal,
    )) as Dockerode.ExecInspectInfo
    if (!Running && ExitCode !== null) return ExitCode
    await delay(20, undefined, { signal })
  }
  throw new EngineError('ENGINE_UNREACHABLE', `Cannot ${doing}: the connection ended before the command did.`)
}

/** Retains the end of a text, up to a number of bytes. */
class Tail {
  readonly #limit: number
  #bytes = Buffer.alloc(0)

  constructor(limit: number) {
    this.#limit = limit
  }

  add(bytes: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]).subarray(-this.#limit)
  }

  text(): string {
    return this.#bytes.toString()
  }
}
