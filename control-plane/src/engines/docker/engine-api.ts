// Calls of the Engine API, each with the caller's signal and a time limit of its own, and with its errors translated.
import type Dockerode from 'dockerode'
import type { Duplex, Readable } from 'node:stream'
import { EngineError } from '../index.ts'
import { engineError } from './errors.ts'
import { within } from './within.ts'

interface EngineCall {
  /** What is being done, as the operator reads it: `create container NAME`. */
  doing: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Of segments that were encoded by `segment`. */
  path: string
  query?: Readonly<Record<string, string | number | boolean | object | undefined>>
  body?: object
  /** A tar archive, in place of a body. */
  archive?: Buffer
  /** Until the answer, or its beginning, is there. */
  seconds?: number
}

/** Every function throws `EngineError`, or the signal's own reason once that is aborted. */
export interface EngineApi {
  /** The answer's JSON. */
  request(call: EngineCall, signal: AbortSignal): Promise<unknown>
  /** The answer's body as it comes; the signal ends it. */
  open(call: EngineCall, signal: AbortSignal): Promise<Readable>
  /** The connection itself, to write to and to read from. */
  upgrade(call: EngineCall, signal: AbortSignal): Promise<Duplex>
}

/** The oldest API that has all that is used here, and the newest that this was written against. */
const oldest = [1, 41] as const
const newest = [1, 51] as const

const usualSeconds = 30

export function engineApi(docker: Dockerode): EngineApi {
  const modem = docker.modem as typeof docker.modem & { version: string | undefined }
  let agreed: Promise<string> | undefined

  /** The version both sides know; asked again after the Engine could not be reached: it may have become another. */
  async function agree(): Promise<string> {
    try {
      modem.version = undefined
      const call = { doing: 'ask for the version', method: 'GET', path: '/version' } as const
      const { ApiVersion } = (await dial(call, {}, AbortSignal.timeout(usualSeconds * 1000))) as Dockerode.DockerVersion
      return `v${commonVersion(ApiVersion)}`
    } catch (cause) {
      agreed = undefined
      throw cause
    }
  }

  function dial(
    { method, path, query, body, archive }: EngineCall,
    kind: object,
    signal: AbortSignal,
  ): Promise<unknown> {
    const options = {
      method,
      // dockerode adds the query where it finds a question mark.
      path: query === undefined ? path : `${path}?`,
      options: { _query: query ?? {}, _body: body ?? {} },
      ...(archive === undefined ? {} : { file: archive }),
      statusCodes: { 200: true, 201: true, 204: true, 304: true },
      abortSignal: signal,
      ...kind,
    }
    return new Promise((resolve, reject) =>
      modem.dial(options, (error, result) => (error === null ? resolve(result) : reject(error))),
    )
  }

  async function run(call: EngineCall, kind: object, signal: AbortSignal): Promise<unknown> {
    try {
      return await within((call.seconds ?? usualSeconds) * 1000, signal, async (limited) => {
        agreed ??= agree()
        modem.version = await agreed
        // What goes on after the answer's beginning is the caller's to end.
        return await dial(call, kind, limited)
      })
    } catch (cause) {
      signal.throwIfAborted()
      const error = engineError(call.doing, cause)
      if (error.code === 'ENGINE_UNREACHABLE') agreed = undefined
      throw error
    }
  }

  return {
    request: (call, signal) => run(call, {}, signal),
    open: async (call, signal) => (await run(call, { isStream: true }, signal)) as Readable,
    upgrade: async (call, signal) =>
      (await run(call, { isStream: true, hijack: true, openStdin: true }, signal)) as Duplex,
  }
}

/** A name as a part of a path. */
export function segment(name: string): string {
  return encodeURIComponent(name)
}

/** @throws EngineError `ENGINE_TOO_OLD` */
function commonVersion(version: string): string {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (compare([major, minor], oldest) < 0) {
    throw new EngineError(
      'ENGINE_TOO_OLD',
      `the Docker Engine speaks API ${version}; ${oldest.join('.')} or later is needed (Docker 20.10)`,
    )
  }
  return compare([major, minor], newest) < 0 ? version : newest.join('.')
}

function compare(a: readonly [number, number], b: readonly [number, number]): number {
  return a[0] - b[0] || a[1] - b[1]
}
