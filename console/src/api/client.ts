// Calls a public API with the session's cookie: the control plane's, or a tenant's. The CSRF token is only in memory.

/** The API that the page calls. */
export interface Api {
  /** The path before those of the API: empty, or a tenant's `/t/NAME`. */
  base: string
  /** Its name in messages: `control plane`. */
  name: string
  /** Whether reads need the session's CSRF token, too. */
  protectsReads: boolean
}

let api: Api = { base: '', name: 'control plane', protectsReads: false }

/** Sets the API, before the first call. */
export function setApi(used: Api): void {
  api = used
}

/** Returns the URL of a path of the API on the page's own host. */
export function urlOf(path: string): string {
  return `${api.base}${path}`
}

/** An error as the API returned it, or one of the connection. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  /** The ID of the request in the service's log; undefined if there was no response. */
  readonly requestId: string | undefined
  /** The whole body of the response, if it is JSON. */
  readonly body: unknown

  constructor(status: number, code: string, message: string, requestId: string | undefined, body?: unknown) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.requestId = requestId
    this.body = body
  }
}

/** A response of the API. */
export interface ApiResponse<Body> {
  body: Body
  etag: string | undefined
  headers: Headers
}

interface CallOptions {
  /** A value that is sent as JSON, a text that is JSON already, or a form. */
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
  /** Whether the body may take any time. */
  isStream?: boolean
}

const timeoutMilliseconds = 70_000
/** The headers of a request that no action of the user causes. It does not keep the session from ending as idle. */
export const backgroundHeaders: Record<string, string> = { 'x-console-background': '1' }
let csrfToken: string | undefined
let onSessionEnd: () => void = () => undefined

/** Sets the token that writes carry; undefined after the sign-out. */
export function setCsrfToken(token: string | undefined): void {
  csrfToken = token
}

/** Sets the function that is called when a response states that the session has ended. */
export function whenSessionEnds(listener: () => void): void {
  onSessionEnd = listener
}

/** Returns the headers with which the API accepts the session. */
export function sessionHeaders(method: string): Record<string, string> {
  return csrfToken === undefined || (method === 'GET' && !api.protectsReads) ? {} : { 'x-csrf-token': csrfToken }
}

/** Calls the API, and returns the response before its body. @throws ApiError */
export async function request(method: string, path: string, options: CallOptions = {}): Promise<Response> {
  const { body, headers = {}, signal, isStream = false } = options
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(), timeoutMilliseconds)
  const response = await fetch(urlOf(path), {
    method,
    credentials: 'same-origin',
    headers: {
      accept: 'application/json',
      ...(body === undefined || body instanceof FormData ? {} : { 'content-type': 'application/json' }),
      ...sessionHeaders(method),
      ...headers,
    },
    ...(body === undefined
      ? {}
      : { body: typeof body === 'string' || body instanceof FormData ? body : JSON.stringify(body) }),
    signal: signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]),
  }).catch((cause: unknown) => {
    if (signal?.aborted === true) throw cause
    throw new ApiError(0, 'UNREACHABLE', `The ${api.name} does not respond. Check your connection.`, undefined)
  })
  if (!response.ok) throw errorOf(response.status, response.headers.get('x-request-id'), await response.text())
  if (isStream) clearTimeout(timer)
  return response
}

/** Calls the API. @throws ApiError */
export async function call<Body>(method: string, path: string, options: CallOptions = {}): Promise<ApiResponse<Body>> {
  const response = await request(method, path, options)
  const text = await response.text()
  return {
    body: (text === '' ? undefined : JSON.parse(text)) as Body,
    etag: response.headers.get('etag') ?? undefined,
    headers: response.headers,
  }
}

/** Reads from the API. @throws ApiError */
export async function get<Body>(path: string, signal?: AbortSignal): Promise<Body> {
  return (await call<Body>('GET', path, signal === undefined ? {} : { signal })).body
}

/** Returns the error of a response, and ends the session after a 401. */
export function errorOf(status: number, requestId: string | null, text: string): ApiError {
  let code = `HTTP_${status}`
  let message = `The ${api.name} responded with status ${status}.`
  let body: { code?: unknown; message?: unknown } | undefined
  try {
    body = JSON.parse(text) as { code?: unknown; message?: unknown }
    if (typeof body.code === 'string') code = body.code
    if (typeof body.message === 'string') message = body.message
  } catch {
    // A proxy between the browser and the service may respond with another body.
  }
  if (status === 401) onSessionEnd()
  return new ApiError(status, code, message, requestId ?? undefined, body)
}
