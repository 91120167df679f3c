// Requests to a tenant's own URL with its secret key.
import { ConnectionError, readApiError } from '@tenantry/client'
import { checkedKey } from '../connection/connection.ts'
import { usageError } from '../terminal/exit-codes.ts'

const defaultTimeoutMs = 60_000

/** Options of a request. */
export interface TenantRequest {
  readonly method?: string
  /** A value that is sent as JSON. */
  readonly json?: unknown
  /** A body that is sent unchanged. */
  readonly body?: string | Blob | FormData
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds until the request fails; `Infinity` for a stream that is followed. */
  readonly timeoutMs?: number
  /** Whether the response is a result whatever its status is. Redirects are then not errors; they are never followed. */
  readonly isResult?: (response: Response) => boolean
}

/** A client of one tenant. */
export class TenantClient {
  /** Address of the tenant. */
  readonly url: string
  readonly #key: string
  readonly #signal: AbortSignal

  constructor(url: string, key: string, signal: AbortSignal) {
    this.url = url
    this.#key = checkedKey(key)
    this.#signal = signal
  }

  /** Sends a request and returns its response. @throws ApiError if it reports an error, ConnectionError without one */
  async send(path: string, options: TenantRequest = {}): Promise<Response> {
    checkSegments(path)
    const timeoutMs = options.timeoutMs ?? defaultTimeoutMs
    const timeout = timeoutMs === Infinity ? [] : [AbortSignal.timeout(timeoutMs)]
    const method = options.method ?? 'GET'
    const body = options.json === undefined ? options.body : JSON.stringify(options.json)
    let response: Response
    try {
      response = await fetch(this.url + path, {
        method,
        headers: {
          authorization: `Bearer ${this.#key}`,
          ...(options.json === undefined ? {} : { 'content-type': 'application/json' }),
          ...options.headers,
        },
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.any([this.#signal, ...timeout]),
        redirect: options.isResult === undefined ? 'error' : 'manual',
      })
    } catch (error) {
      if (this.#signal.aborted) throw error
      throw new ConnectionError(`${method} ${this.url}${path} failed: ${reasonOf(error)}.`, { cause: error })
    }
    if (!response.ok && options.isResult?.(response) !== true)
      throw await readApiError(response, `${method} ${this.url}${path}`)
    return response
  }

  /** Sends a request and returns the JSON of its response. The caller checks the form of what it uses. */
  async json(path: string, options: TenantRequest = {}): Promise<unknown> {
    return (await this.send(path, options)).json()
  }
}

/** Rejects names such as `..`, with which the address would lead to another route. @throws CommandError */
function checkSegments(path: string): void {
  const [route = ''] = path.split('?')
  const wrong = route.split('/').find((segment) => segment === '.' || segment === '..')
  if (wrong !== undefined) throw usageError(`Invalid name "${wrong}". No part of a path may be "." or "..".`)
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return 'no response arrived in time'
  return error.cause instanceof Error && 'code' in error.cause ? String(error.cause.code) : error.message
}
