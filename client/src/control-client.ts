// Creates the client: openapi-fetch with the generated types, a time limit for each request, and errors that are thrown.
import createFetchClient, { type Client } from 'openapi-fetch'
import { ConnectionError, readApiError } from './api-error.ts'
import type { paths } from './generated/openapi.ts'

/** The longest `Prefer: wait` is 60 s. */
const defaultTimeoutMs = 75_000

/** Options of a client. */
export interface ControlClientOptions {
  /** Address of the control plane, such as `http://127.0.0.1:4400`. In a browser, an empty text is the page's own origin. */
  readonly url: string
  /** A platform key. Without one, the requests carry what `headers` has, or the cookies of the browser. */
  readonly key?: string
  /** Headers of all requests. */
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds until a request fails; 75,000 by default, and `Infinity` for none, such as for a log that is followed. */
  readonly timeoutMs?: number
  /** Sends the requests; the global `fetch` by default. */
  readonly fetch?: (request: Request) => Promise<Response>
}

/** Typed calls of the operators' API by method and path, such as `client.GET('/v1/tenants')`. */
export type ControlClient = Client<paths>

/**
 * Creates a client of a control plane. Its calls throw ApiError for a response that reports an error, and ConnectionError
 * if no response arrives in time, so that `data` of a call is always its response.
 */
export function createControlClient(options: ControlClientOptions): ControlClient {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs
  const send = options.fetch ?? ((request: Request) => fetch(request))
  const client = createFetchClient<paths>({
    baseUrl: options.url,
    headers: { ...(options.key === undefined ? {} : { authorization: `Bearer ${options.key}` }), ...options.headers },
    fetch: (request) => {
      if (timeoutMs === Infinity) return send(request)
      return send(new Request(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]) }))
    },
  })
  client.use({
    async onResponse({ request, response }) {
      if (!response.ok) throw await readApiError(response, describe(request))
    },
    onError({ request, error }) {
      if (request.signal.aborted) return undefined
      return new ConnectionError(`${describe(request)} failed: ${reasonOf(error)}.`, { cause: error })
    },
  })
  return client
}

/**
 * Returns the JSON of a call that succeeded. Its type leaves out texts, such as the CSV that some responses may be.
 * @throws Error if the body is missing or is a text
 */
export function bodyOf<Body>(result: { data?: Body; response: Response }): Exclude<NonNullable<Body>, string> {
  const { data } = result
  if (data === undefined || data === null || typeof data === 'string')
    throw new Error(`The response of ${result.response.url} has no JSON body.`)
  return data as Exclude<NonNullable<Body>, string>
}

function describe(request: Request): string {
  return `${request.method} ${request.url}`
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return 'no response arrived in time'
  const { cause } = error
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message
  return error.message
}
