// An optional log of sampled requests. It contains no header, no query string and no body, and so no key.
import type { IncomingMessage, ServerResponse } from 'node:http'

/** One logged request. */
export interface AccessLogEntry {
  /** The tenant's ID; null for a request without a tenant. */
  tenant: string | null
  method: string
  path: string
  status: number
  /** The bytes that were sent on the connection for it. */
  bytes: number
  milliseconds: number
  client: string
}

export interface AccessLogOptions {
  /** The share of the requests that is logged, from 0 to 1. */
  share: number
  /** Returns a random number from 0 to below 1. */
  random: () => number
}

interface LoggedRequest {
  request: IncomingMessage
  response: ServerResponse
  isUpgrade: boolean
  tenant: string | null
  /** The path at the tenant, with the query string. */
  path: string
  client: string
}

const maxPathLength = 1_000

export class AccessLog {
  readonly #options: AccessLogOptions
  readonly #elapsed: () => number
  readonly #write: (entry: AccessLogEntry) => void

  /**
   * Creates the log.
   * @param elapsed milliseconds, monotonic
   */
  constructor(options: AccessLogOptions, elapsed: () => number, write: (entry: AccessLogEntry) => void) {
    this.#options = options
    this.#elapsed = elapsed
    this.#write = write
  }

  /** Logs a request when it is over, if it is one of the sample. */
  note({ request, response, isUpgrade, tenant, path, client }: LoggedRequest): void {
    if (this.#options.random() >= this.#options.share) return
    const begin = this.#elapsed()
    const { socket } = request
    const bytesBefore = socket.bytesWritten
    const end = path.indexOf('?')
    // A connection that has switched protocols has no response.
    const over = isUpgrade ? socket : response
    over.once('close', () =>
      this.#write({
        tenant,
        method: request.method ?? '',
        path: (end < 0 ? path : path.slice(0, end)).slice(0, maxPathLength),
        status: isUpgrade && !response.headersSent ? 101 : response.statusCode,
        bytes: socket.bytesWritten - bytesBefore,
        milliseconds: Math.round(this.#elapsed() - begin),
        client,
      }),
    )
  }
}
