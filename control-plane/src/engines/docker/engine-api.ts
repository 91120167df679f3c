// Calls of the Engine API, each with the caller's signal, a time limit and translated errors.
import type Dockerode from 'dockerode'
import type { Duplex, Readable } from 'node:stream'
import { EngineError } from '../index.ts'
import { engineError } from './errors.ts'
import { withTimeout } from './with-timeout.ts'

interface EngineCall {
  /** Action as the operator reads it, for example `create container NAME`. */
  doing: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Path whose segments were encoded by `segment`. */
  path: string
  query?: Readonly<Record<string, string | number | boolean | object | undefined>>
  body?: object
  /** Tar archive that is sent instead of a body. */
  archive?: Buffer
  /** Time limit in seconds until the response, or its beginning, arrives. */
  seconds?: number
}

/** Oldest API version with all calls in use, and the newest version that these calls were written against. */
const oldestVersion = [1, 41] as const
const newestVersion = [1, 51] as const

const defaultSeconds = 30

/** Calls of the Engine API. Every function throws `EngineError`, or the signal's own reason once that is aborted. */
export type EngineApi = ReturnType<typeof engineApi>

export function engineApi(docker: Dockerode) {
  const modem = docker.modem as typeof docker.modem & { version: string | undefined }
  let version: Promise<string> | undefined

  /**
   * Negotiates the version that both sides support. It is negotiated again after the Engine was unreachable, which may
   * be another one then.
   */
  async function negotiate(): Promise<string> {
    try {
      modem.version = undefined
      const call = { doing: 'read the version', method: 'GET', path: '/version' } as const
      const { ApiVersion } = (await dial(
        call,
        {},
        AbortSignal.timeout(defaultSeconds * 1000),
      )) as Dockerode.DockerVersion
      return `v${commonVersion(ApiVersion)}`
    } catch (cause) {
      version = undefined
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
      // dockerode adds the query at a question mark.
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
      return await withTimeout((call.seconds ?? defaultSeconds) * 1000, signal, async (limited) => {
        version ??= negotiate()
        modem.version = await version
        // The caller ends a response that streams after its beginning.
        return await dial(call, kind, limited)
      })
    } catch (cause) {
      signal.throwIfAborted()
      const error = engineError(call.doing, cause)
      if (error.code === 'ENGINE_UNREACHABLE') version = undefined
      throw error
    }
  }

  return {
    /** Returns the JSON of the response. */
    request: (call: EngineCall, signal: AbortSignal): Promise<unknown> => run(call, {}, signal),
    /** Returns the body of the response as a stream. The signal ends it. */
    open: async (call: EngineCall, signal: AbortSignal): Promise<Readable> =>
      (await run(call, { isStream: true }, signal)) as Readable,
    /** Returns the connection itself, for both directions. */
    upgrade: async (call: EngineCall, signal: AbortSignal): Promise<Duplex> =>
      (await run(call, { isStream: true, hijack: true, openStdin: true }, signal)) as Duplex,
  }
}

/** Encodes a name as a segment of a path. */
export function segment(name: string): string {
  return encodeURIComponent(name)
}

/** Returns the newest version that both sides support. @throws EngineError `ENGINE_TOO_OLD` */
function commonVersion(version: string): string {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (compare([major, minor], oldestVersion) < 0) {
    throw new EngineError(
      'ENGINE_TOO_OLD',
      `The Docker Engine supports API ${version}. Required: ${oldestVersion.join('.')} (Docker 20.10) or later.`,
    )
  }
  return compare([major, minor], newestVersion) < 0 ? version : newestVersion.join('.')
}

function compare(a: readonly [number, number], b: readonly [number, number]): number {
  return a[0] - b[0] || a[1] - b[1]
}
