// The host of processes of `npm start`, over its Unix socket. It implements the same calls as a Docker Engine.
import { request, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { text } from 'node:stream/consumers'
import { hostExecHeader, hostPath, hostStreams, readHostFrames } from '@tenantry/contract'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import {
  type ContainerHost,
  type ContainerStats,
  type ExecOptions,
  type ExecResult,
  type HostEvent,
  type HostImage,
  type HostInfo,
  type LogLine,
  type ObservedHost,
  EngineError,
  type EngineErrorCode,
} from '../index.ts'

/** Time limit of a call: the longest stops a Postgres, which may need its whole time to stop. */
const callMilliseconds = 90_000
/** Interval of the host's empty lines on a silent stream is 15 s. */
const silentMilliseconds = 60_000
const defaultOutputBytes = 16 * 1024 * 1024
const maxErrorBytes = 64 * 1024

const Rejection = Type.Object({ code: Type.String(), message: Type.String() })

/** Returns the host behind a socket. Nothing is sent yet. */
export function processHost(socket: string): ContainerHost {
  const send = (call: string, headers: Record<string, string>, body: AsyncIterable<Uint8Array>, signal: AbortSignal) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request({ socketPath: socket, method: 'POST', path: hostPath(call), headers, signal, agent: false })
      sent.once('response', resolve)
      sent.once('error', reject)
      // A response may come before the end of the body; the program has then ended.
      pipeline(Readable.from(body, { objectMode: false }), sent).catch(reject)
    })

  /** Sends a call, and returns a response with status 200. */
  const respond = async (
    call: string,
    headers: Record<string, string>,
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<IncomingMessage> => {
    const response = await send(call, headers, body, signal).catch((cause: unknown) => {
      signal.throwIfAborted()
      throw new EngineError('ENGINE_UNREACHABLE', 'The host of processes cannot be reached.', { cause })
    })
    if (response.statusCode === 200) return response
    const rejection: unknown = JSON.parse(await text(response))
    if (!Value.Check(Rejection, rejection))
      throw new EngineError('ENGINE_FAILED', 'The host of processes rejected a call.')
    // The host has the codes of this version.
    throw new EngineError(rejection.code as EngineErrorCode, rejection.message)
  }

  async function* json(values: unknown): AsyncGenerator<Uint8Array, undefined> {
    yield Buffer.from(JSON.stringify(values))
  }

  const call = async <T>(name: string, values: readonly unknown[], signal: AbortSignal): Promise<T> => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(callMilliseconds)])
    try {
      const response = await respond(name, {}, json(values), limited)
      return (JSON.parse(await text(response)) as { result: T }).result
    } catch (cause) {
      signal.throwIfAborted()
      if (cause instanceof EngineError) throw cause
      throw new EngineError('ENGINE_UNREACHABLE', 'The host of processes did not respond in time.', { cause })
    }
  }

  /** Yields the lines of a stream that the host keeps open. */
  async function* lines<T>(
    name: string,
    values: readonly unknown[],
    signal: AbortSignal,
  ): AsyncGenerator<T, undefined> {
    const response = await respond(name, {}, json(values), signal)
    response.socket.setTimeout(silentMilliseconds, () =>
      response.destroy(new Error('The host of processes is silent.')),
    )
    let pending = ''
    try {
      for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
        pending += chunk
        const complete = pending.split('\n')
        pending = complete.pop() ?? ''
        for (const line of complete) if (line !== '') yield JSON.parse(line) as T
      }
    } catch (cause) {
      signal.throwIfAborted()
      throw new EngineError('ENGINE_UNREACHABLE', 'The host of processes ended the connection.', { cause })
    }
  }

  /** Runs a program, and yields the frames of its output. */
  async function* frames(container: string, command: readonly string[], { input = '', signal }: ExecOptions) {
    const header = Buffer.from(JSON.stringify({ container, command })).toString('base64url')
    async function* bytes() {
      if (typeof input === 'string') yield Buffer.from(input)
      else yield* input
    }
    const response = await respond('exec', { [hostExecHeader]: header }, bytes(), signal)
    try {
      yield* readHostFrames(response)
    } catch (cause) {
      signal.throwIfAborted()
      throw new EngineError('ENGINE_UNREACHABLE', 'The host of processes ended the connection.', { cause })
    } finally {
      response.destroy()
    }
  }

  const exec = async (container: string, command: readonly string[], options: ExecOptions): Promise<ExecResult> => {
    const { maxOutputBytes = defaultOutputBytes } = options
    const output = { [hostStreams.stdout]: [] as Buffer[], [hostStreams.stderr]: [] as Buffer[] }
    let [outputBytes, errorBytes] = [0, 0]
    for await (const { stream, bytes } of frames(container, command, options)) {
      if (stream === hostStreams.exit)
        return {
          code: Number(bytes.toString()),
          stdout: Buffer.concat(output[hostStreams.stdout]).toString(),
          stderr: Buffer.concat(output[hostStreams.stderr]).toString(),
        }
      if (stream === hostStreams.stdout && (outputBytes += bytes.length) > maxOutputBytes)
        throw new EngineError('ENGINE_FAILED', `The output of a program exceeds ${maxOutputBytes} bytes.`)
      if (stream === hostStreams.stderr && (errorBytes += bytes.length) > maxErrorBytes) continue
      if (stream === hostStreams.stdout || stream === hostStreams.stderr) output[stream].push(bytes)
    }
    throw new EngineError('ENGINE_FAILED', 'The host of processes did not report the end of a program.')
  }

  return {
    info: (signal) => call<HostInfo>('info', [], signal),
    observe: (owned, signal) => call<ObservedHost>('observe', [owned], signal),
    image: (reference, signal) => call<HostImage | undefined>('image', [reference], signal),
    createNetwork: (spec, signal) => call('createNetwork', [spec], signal),
    createVolume: (spec, signal) => call('createVolume', [spec], signal),
    createContainer: (spec, signal) => call('createContainer', [spec], signal),
    startContainer: (name, signal) => call('startContainer', [name], signal),
    unpauseContainer: (name, signal) => call('unpauseContainer', [name], signal),
    stopContainer: (name, seconds, signal) => call('stopContainer', [name, seconds], signal),
    updateResources: (name, changes, signal) => call('updateResources', [name, changes], signal),
    connect: (network, container, aliases, address, signal) =>
      call('connect', [network, container, aliases, address ?? null], signal),
    disconnect: (network, container, signal) => call('disconnect', [network, container], signal),
    writeFiles: (volume, image, user, files, labels, signal) =>
      call('writeFiles', [volume, image, user, files, labels], signal),
    addFiles: (volume, image, user, files, labels, signal) =>
      call('addFiles', [volume, image, user, files, labels], signal),
    removeContainer: (name, owner, signal) => call('removeContainer', [name, owner], signal),
    removeNetwork: (name, owner, signal) => call('removeNetwork', [name, owner], signal),
    removeVolume: (name, owner, signal) => call('removeVolume', [name, owner], signal),
    removeUnlabelledVolume: (name, signal) => call('removeUnlabelledVolume', [name], signal),
    exec,
    async *execStream(container, command, options) {
      let errors = ''
      for await (const { stream, bytes } of frames(container, command, options)) {
        if (stream === hostStreams.stdout) yield bytes
        else if (stream === hostStreams.stderr) errors = (errors + bytes.toString()).slice(-2_000)
        else if (bytes.toString() === '0') return
        else
          throw new EngineError('ENGINE_FAILED', `A program ended with exit code ${bytes.toString()}: ${errors.trim()}`)
      }
      throw new EngineError('ENGINE_FAILED', 'The host of processes did not report the end of a program.')
    },
    logs: (container, options, signal) => lines<LogLine>('logs', [container, options], signal),
    stats: (container, signal) => call<ContainerStats>('stats', [container], signal),
    volumeBytes: (owned, signal) => call<Record<string, number>>('volumeBytes', [owned], signal),
    events: (owned, signal) => lines<HostEvent>('events', [owned], signal),
  }
}
