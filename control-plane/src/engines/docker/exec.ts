// Running a command in a container: standard input piped in and closed, output told apart, and the exit code.
import type Dockerode from 'dockerode'
import { setTimeout as delay } from 'node:timers/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type ExecOptions, type ExecResult, EngineError } from '../index.ts'
import { segment, type EngineApi } from './engine-api.ts'
import { consumeStream } from './consume-stream.ts'
import { demultiplex, type Chunk } from './frames.ts'

/** A command that neither reads nor writes for so long is given up; it goes on inside, the Engine cannot end it. */
const silentSeconds = 900

const defaultOutputBytes = 16 * 1024 * 1024
/** Of standard error, its end is kept. */
const errorBytes = 64 * 1024

/** @throws EngineError `ENGINE_FAILED` when there is more output than `maxOutputBytes` (16 MiB) */
export async function exec(
  api: EngineApi,
  container: string,
  command: readonly string[],
  options: ExecOptions,
): Promise<ExecResult> {
  const output: Uint8Array[] = []
  const limit = options.maxOutputBytes ?? defaultOutputBytes
  const stderr = new Tail(errorBytes)
  let length = 0
  const run = start(api, container, command, options)
  for await (const { stream, bytes } of run.chunks) {
    if (stream === 'stderr') stderr.add(bytes)
    else {
      length += bytes.length
      if (length > limit) throw new EngineError('ENGINE_FAILED', `${run.doing} gave more than ${limit} bytes`)
      output.push(bytes)
    }
  }
  return { code: await run.code(), stdout: Buffer.concat(output).toString(), stderr: stderr.text() }
}

/** Standard output; throws at its end when the exit code is not 0. */
export async function* execStream(
  api: EngineApi,
  container: string,
  command: readonly string[],
  options: ExecOptions,
): AsyncGenerator<Uint8Array, undefined> {
  const stderr = new Tail(errorBytes)
  const run = start(api, container, command, options)
  for await (const { stream, bytes } of run.chunks) {
    if (stream === 'stdout') yield bytes
    else stderr.add(bytes)
  }
  const code = await run.code()
  if (code !== 0)
    throw new EngineError('ENGINE_FAILED', `${run.doing} ended with ${code}: ${stderr.text().trim().slice(-2000)}`)
}

interface Run {
  doing: string
  chunks: AsyncIterable<Chunk>
  /** Once the pieces have come to their end. */
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
    const source = input === undefined ? undefined : watched(input, response.moved)
    // A command that ends without reading its input closes the connection; its exit code says what that means.
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
  /** Why the input itself broke, if it did. */
  failure(): Error | undefined
}

function watched(input: string | AsyncIterable<Uint8Array>, moved: () => void): Source {
  let failure: Error | undefined
  async function* chunks(): AsyncGenerator<Uint8Array, undefined> {
    try {
      for await (const chunk of typeof input === 'string' ? [Buffer.from(input)] : input) {
        moved()
        yield chunk
      }
    } catch (cause) {
      failure = cause instanceof Error ? cause : new Error('the input broke off', { cause })
      throw failure
    }
  }
  return { chunks: chunks(), failure: () => failure }
}

/** The connection may end a moment before the Engine has noted the end of the process. */
async function exitCode(api: EngineApi, doing: string, id: string, signal: AbortSignal): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const { Running, ExitCode } = (await api.request(
      { doing, method: 'GET', path: `/exec/${id}/json` },
      signal,
    )) as Dockerode.ExecInspectInfo
    if (!Running && ExitCode !== null) return ExitCode
    await delay(20, undefined, { signal })
  }
  throw new EngineError('ENGINE_UNREACHABLE', `cannot ${doing}: the connection ended before the command did`)
}

/** The end of a text, within a number of bytes. */
class Tail {
  readonly #limit: number
  #stored = Buffer.alloc(0)

  constructor(limit: number) {
    this.#limit = limit
  }

  add(bytes: Uint8Array): void {
    this.#stored = Buffer.concat([this.#stored, bytes]).subarray(-this.#limit)
  }

  text(): string {
    return this.#stored.toString()
  }
}
