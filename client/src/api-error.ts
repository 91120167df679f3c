// Errors of the client: a response that reports an error, and a control plane that does not respond.

/** The body of every error of the API. */
export interface ErrorBody {
  readonly statusCode: string
  /** Class of the error, such as `not_found`. */
  readonly error: string
  /** A sentence that states what is wrong. */
  readonly message: string
  /** Code of the error, such as `TENANT_NOT_FOUND`. */
  readonly code: string
  /** Further members of some codes, such as `operation_id` of `OPERATION_IN_PROGRESS`. */
  readonly [member: string]: unknown
}

/** A response of the control plane that reports an error. Its message is that of the API. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** Status code of the response. */
  readonly status: number
  /** Code of the error; `UNEXPECTED_RESPONSE` if the body is not an error of the API. */
  readonly code: string
  /** The whole body; undefined if it is not an error of the API. */
  readonly body: ErrorBody | undefined

  constructor(status: number, body: ErrorBody | undefined, request: string) {
    super(body?.message ?? `${request} responds with ${status} and a body that is not an error of the API.`)
    this.status = status
    this.code = body?.code ?? 'UNEXPECTED_RESPONSE'
    this.body = body
  }
}

/** The control plane could not be reached, or did not respond in time. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
}

/** Reads the error of a response. The body of the response is consumed. */
export async function readApiError(response: Response, request: string): Promise<ApiError> {
  const text = await response.text()
  return new ApiError(response.status, parseErrorBody(text), request)
}

function parseErrorBody(text: string): ErrorBody | undefined {
  try {
    const body: unknown = JSON.parse(text)
    return isErrorBody(body) ? body : undefined
  } catch {
    return undefined
  }
}

function isErrorBody(body: unknown): body is ErrorBody {
  return (
    typeof body === 'object' &&
    body !== null &&
    'message' in body &&
    typeof body.message === 'string' &&
    'code' in body &&
    typeof body.code === 'string'
  )
}
