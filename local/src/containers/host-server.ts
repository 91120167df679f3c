// Serves the calls of the host of processes on a Unix socket, which only the installation's services can reach.
import { once } from 'node:events'
import { chmod, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Logger } from 'pino'
import { hostExecHeader, hostFrame, hostPath, hostStreams } from '@tenantry/contract'
import { Type, type Static, type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { EngineError } from '../../../control-plane/src/engines/index.ts'
import { setOwner, type Identity } from '../process/unprivileged.ts'
import {
  ContainerForm,
  LabelsForm,
  LimitChangesForm,
  NetworkForm,
  OwnershipForm,
  VolumeForm,
} from './container-record.ts'
import type { ProcessHost } from './process-host.ts'

const Name = Type.String({ maxLength: 200 })
const Files = Type.Tuple([Name, Name, Name, Type.Record(Type.String(), Type.String()), LabelsForm])
const LogForm = Type.Object(
  { follow: Type.Boolean(), tail: Type.Integer({ minimum: 0 }), since: Type.Optional(Type.String()) },
  { additionalProperties: false },
)
const ExecForm = Type.Object({ container: Name, command: Type.Array(Type.String(), { minItems: 1 }) })

/** Interval of empty lines on a stream, by which its reader knows that the host lives. */
const pingMilliseconds = 15_000

/** One call: the form of its arguments, and what it does. */
interface Call {
  form: TSchema
  run: (values: never, signal: AbortSignal) => Promise<unknown> | AsyncIterable<unknown>
}

function call<S extends TSchema>(
  form: S,
  run: (values: Static<S>, signal: AbortSignal) => Promise<unknown> | AsyncIterable<unknown>,
): Call {
  return { form, run }
}

function callsOf(host: ProcessHost): Readonly<Record<string, Call>> {
  return {
    info: call(Type.Tuple([]), (_, signal) => host.info(signal)),
    observe: call(Type.Tuple([OwnershipForm]), ([owned], signal) => host.observe(owned, signal)),
    image: call(Type.Tuple([Name]), ([reference], signal) => host.image(reference, signal)),
    createNetwork: call(Type.Tuple([NetworkForm]), ([spec], signal) => host.createNetwork(spec, signal)),
    createVolume: call(Type.Tuple([VolumeForm]), ([spec], signal) => host.createVolume(spec, signal)),
    createContainer: call(Type.Tuple([ContainerForm]), ([spec], signal) =>
      host.createContainer({ ...spec, published: [] }, signal),
    ),
    startContainer: call(Type.Tuple([Name]), ([name], signal) => host.startContainer(name, signal)),
    unpauseContainer: call(Type.Tuple([Name]), ([name], signal) => host.unpauseContainer(name, signal)),
    stopContainer: call(Type.Tuple([Name, Type.Integer({ minimum: 0, maximum: 3_600 })]), ([name, seconds], signal) =>
      host.stopContainer(name, seconds, signal),
    ),
    updateResources: call(Type.Tuple([Name, LimitChangesForm]), ([name, changes], signal) =>
      host.updateResources(name, changes, signal),
    ),
    connect: call(
      Type.Tuple([Name, Name, Type.Array(Name), Type.Union([Name, Type.Null()])]),
      ([network, name, aliases, address], signal) => host.connect(network, name, aliases, address ?? undefined, signal),
    ),
    disconnect: call(Type.Tuple([Name, Name]), ([network, name], signal) => host.disconnect(network, name, signal)),
    writeFiles: call(Files, (values, signal) => host.writeFiles(...values, signal)),
    addFiles: call(Files, (values, signal) => host.addFiles(...values, signal)),
    removeContainer: call(Type.Tuple([Name, OwnershipForm]), ([name, owner], signal) =>
      host.removeContainer(name, owner, signal),
    ),
    removeNetwork: call(Type.Tuple([Name, OwnershipForm]), ([name, owner], signal) =>
      host.removeNetwork(name, owner, signal),
    ),
    removeVolume: call(Type.Tuple([Name, OwnershipForm]), ([name, owner], signal) =>
      host.removeVolume(name, owner, signal),
    ),
    removeUnlabelledVolume: call(Type.Tuple([Name]), ([name], signal) => host.removeUnlabelledVolume(name, signal)),
    stats: call(Type.Tuple([Name]), ([name], signal) => host.stats(name, signal)),
    volumeBytes: call(Type.Tuple([OwnershipForm]), ([owned], signal) => host.volumeBytes(owned, signal)),
    logs: call(Type.Tuple([Name, LogForm]), ([name, options], signal) => host.logs(name, options, signal)),
    events: call(Type.Tuple([OwnershipForm]), ([owned], signal) => host.events(owned, signal)),
  }
}

/** Serves the host, and logs unexpected errors. @returns a function that ends the service and its connections */
export async function serveHost(
  host: ProcessHost,
  socket: string,
  identity: Identity | undefined,
  log: Pick<Logger, 'error'>,
): Promise<() => Promise<void>> {
  const calls = new Map(Object.entries(callsOf(host)).map(([name, one]) => [hostPath(name), one]))
  const server = createServer({ requestTimeout: 0 }, (request, response) => {
    const gone = new AbortController()
    response.on('error', () => undefined).once('close', () => gone.abort())
    const work =
      request.url === hostPath('exec')
        ? runProgram(host, request, response, gone.signal)
        : runCall(calls.get(request.url ?? ''), request, response, gone.signal)
    work.catch((error: unknown) => {
      if (!(error instanceof EngineError) && !gone.signal.aborted)
        log.error({ err: error, call: request.url }, 'The host of processes could not do a call.')
      sendError(response, error)
    })
  })
  await rm(socket, { force: true })
  server.listen(socket)
  await once(server, 'listening')
  await chmod(socket, 0o600)
  await setOwner(socket, identity)
  return async () => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
}

async function runCall(
  found: Call | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  if (found === undefined) throw new EngineError('ENGINE_FAILED', 'The host of processes does not know this call.')
  const values: unknown = JSON.parse(await text(request))
  if (!Value.Check(found.form, values)) {
    const [first] = Value.Errors(found.form, values)
    throw new EngineError('ENGINE_FAILED', `Invalid call: ${first?.instancePath ?? ''} ${first?.message ?? 'invalid'}.`)
  }
  // The form of the values was checked.
  const result = found.run(values as never, signal)
  if (!(Symbol.asyncIterator in result)) {
    response.end(JSON.stringify({ result: await result }))
    return
  }
  response.flushHeaders()
  const pings = setInterval(() => response.write('\n'), pingMilliseconds)
  try {
    for await (const value of result) {
      if (!response.write(`${JSON.stringify(value)}\n`)) await once(response, 'drain', { signal })
    }
  } finally {
    clearInterval(pings)
  }
  response.end()
}

async function runProgram(
  host: ProcessHost,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const header = String(request.headers[hostExecHeader] ?? '')
  const values: unknown = JSON.parse(Buffer.from(header, 'base64url').toString())
  if (!Value.Check(ExecForm, values)) throw new EngineError('ENGINE_FAILED', 'Invalid call: a program has no command.')
  const { stdout, stderr, ended } = await host.start(values.container, values.command, { input: request, signal })
  response.flushHeaders()
  const copy = async (stream: number, source: AsyncIterable<Uint8Array>) => {
    for await (const bytes of source) {
      if (!response.write(hostFrame(stream, bytes))) await once(response, 'drain', { signal })
    }
  }
  await Promise.all([copy(hostStreams.stdout, stdout), copy(hostStreams.stderr, stderr)])
  response.end(hostFrame(hostStreams.exit, Buffer.from(String(await ended))))
}

function sendError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const code = error instanceof EngineError ? error.code : isFull(error) ? 'DISK_FULL' : 'ENGINE_FAILED'
  const message =
    error instanceof EngineError
      ? error.message
      : code === 'DISK_FULL'
        ? 'The disk of the installation is full.'
        : 'The host of processes could not do a call. Its log has the reason.'
  response.writeHead(422).end(JSON.stringify({ code, message }))
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOSPC'
}
