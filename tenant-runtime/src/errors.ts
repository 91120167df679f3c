// All errors that a tenant's callers can receive (specification, section 7). Services throw `RuntimeError`s; only the HTTP
// error handler makes bodies of them.

interface ErrorKind {
  status: number
  /** The short tag, `error` in the body. Clients compare some of these texts. */
  tag: string
  /**
   * Whether the tenant's own code failed. The tenant finds the error in its response and its logs; it is not an error of
   * the service.
   */
  isOfTenant?: true
  /**
   * Whether the load of one tenant alone can cause the error. The log then names the tenant once a minute, without the
   * requests.
   */
  isLoad?: true
}

/** The HTTP status and tag of each `code` in the body. */
export const errorKinds = {
  // requests in general
  BAD_REQUEST: { status: 400, tag: 'bad_request' },
  UNKNOWN_FIELD: { status: 400, tag: 'bad_request' },
  UNKNOWN_PARAMETER: { status: 400, tag: 'bad_request' },
  INVALID_JSON: { status: 400, tag: 'bad_request' },
  UNAUTHORIZED: { status: 401, tag: 'Unauthorized' },
  INVALID_TOKEN: { status: 401, tag: 'Unauthorized' },
  FORBIDDEN: { status: 403, tag: 'forbidden' },
  NOT_FOUND: { status: 404, tag: 'not_found' },
  METHOD_NOT_ALLOWED: { status: 405, tag: 'method_not_allowed' },
  REQUEST_TIMEOUT: { status: 408, tag: 'timeout' },
  BODY_TOO_LARGE: { status: 413, tag: 'Payload too large' },
  TOO_MANY_BYTES: { status: 429, tag: 'too_many_requests' },
  URI_TOO_LONG: { status: 414, tag: 'uri_too_long' },
  INTERNAL: { status: 500, tag: 'internal' },
  ANSWER_TOO_LARGE: { status: 413, tag: 'Payload too large' },
  DATABASE_BUSY: { status: 503, tag: 'unavailable', isLoad: true },
  DATABASE_UNAVAILABLE: { status: 503, tag: 'unavailable' },
  SERVICE_BUSY: { status: 503, tag: 'unavailable', isLoad: true },
  STATEMENT_TIMEOUT: { status: 503, tag: 'timeout', isLoad: true },
  TENANT_UNKNOWN: { status: 503, tag: 'unavailable' },
  USAGE_UNAVAILABLE: { status: 503, tag: 'unavailable' },

  // the developers' console
  INVALID_KEY: { status: 401, tag: 'Unauthorized' },
  SESSION_ENDED: { status: 401, tag: 'Unauthorized' },
  CSRF_REJECTED: { status: 403, tag: 'forbidden' },
  TOO_MANY_ATTEMPTS: { status: 429, tag: 'too_many_requests' },

  // the tenant's own SQL
  INVALID_SQL: { status: 400, tag: 'bad_request' },
  SQL_LOGIN_CLOSED: { status: 403, tag: 'forbidden' },
  TOO_MANY_QUERIES: { status: 429, tag: 'too_many_requests' },

  // events
  INVALID_EVENT_ID: { status: 400, tag: 'bad_request' },
  EVENTS_GONE: { status: 410, tag: 'gone' },
  TOO_MANY_SUBSCRIBERS: { status: 503, tag: 'unavailable', isLoad: true },

  // realtime
  TOO_MANY_MESSAGES: { status: 429, tag: 'too_many_requests' },

  // storage
  INVALID_BUCKET_NAME: { status: 400, tag: 'Invalid Input' },
  INVALID_BUCKET: { status: 400, tag: 'Invalid Input' },
  INVALID_PATH: { status: 400, tag: 'Invalid Input' },
  FeatureNotEnabled: { status: 400, tag: 'FeatureNotEnabled' },
  InvalidSignature: { status: 400, tag: 'InvalidSignature' },
  ExpiredToken: { status: 400, tag: 'ExpiredToken' },
  ACCESS_DENIED: { status: 403, tag: 'Unauthorized' },
  NoSuchBucket: { status: 404, tag: 'Bucket not found' },
  NoSuchKey: { status: 404, tag: 'not_found' },
  FILE_MISSING: { status: 404, tag: 'not_found' },
  BUCKET_EXISTS: { status: 409, tag: 'Duplicate' },
  KeyAlreadyExists: { status: 409, tag: 'Duplicate' },
  BUCKET_NOT_EMPTY: { status: 409, tag: 'ResourceNotEmpty' },
  FILE_TOO_LARGE: { status: 413, tag: 'Payload too large' },
  QUOTA_EXCEEDED: { status: 413, tag: 'Payload too large' },
  MIME_NOT_ALLOWED: { status: 415, tag: 'invalid_mime_type' },
  PRECONDITION_FAILED: { status: 412, tag: 'precondition_failed' },
  RANGE_NOT_SATISFIABLE: { status: 416, tag: 'range_not_satisfiable' },
  STORAGE_FULL: { status: 507, tag: 'insufficient_storage' },
  STORAGE_UNAVAILABLE: { status: 503, tag: 'unavailable' },

  // generated REST interface
  INVALID_FIELD: { status: 400, tag: 'bad_request' },
  INVALID_QUERY: { status: 400, tag: 'bad_request' },
  MISSING_FIELD: { status: 400, tag: 'bad_request' },
  INVALID_SCHEMA: { status: 400, tag: 'bad_request' },
  ROW_DENIED: { status: 403, tag: 'forbidden' },
  AMBIGUOUS: { status: 300, tag: 'ambiguous' },
  RAISED: { status: 400, tag: 'raised', isOfTenant: true },
  NOT_ACCEPTABLE: { status: 406, tag: 'not_acceptable' },
  NO_SUCH_COLLECTION: { status: 404, tag: 'not_found' },
  NO_SUCH_RECORD: { status: 404, tag: 'not_found' },
  DUPLICATE: { status: 409, tag: 'conflict' },
  CONFLICT: { status: 409, tag: 'conflict' },
  DESTRUCTIVE_SCHEMA_CHANGE: { status: 409, tag: 'conflict' },
  SCHEMA_NOT_MET: { status: 409, tag: 'conflict' },

  // functions
  INVALID_FUNCTION: { status: 400, tag: 'invalid_function' },
  INVALID_WASM: { status: 400, tag: 'invalid_wasm' },
  INVALID_WEBHOOK: { status: 401, tag: 'Unauthorized' },
  NO_SUCH_FUNCTION: { status: 404, tag: 'not_found' },
  NO_SUCH_DELIVERY: { status: 404, tag: 'not_found' },
  FUNCTION_EXISTS: { status: 409, tag: 'Duplicate' },
  WASM_TOO_LARGE: { status: 413, tag: 'Payload too large' },
  HOST_FUNCTION_ERROR: { status: 500, tag: 'function_error', isOfTenant: true },
  FUNCTION_TIMEOUT: { status: 504, tag: 'timeout', isOfTenant: true },
  FUNCTIONS_BUSY: { status: 503, tag: 'unavailable', isLoad: true },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof errorKinds

/** Headers, each name once, in lower case. `set-cookie` may have several values. */
export type ResponseHeaders = Readonly<Record<string, string | string[]>>

interface RuntimeErrorOptions {
  cause?: unknown
  retryAfter?: number
  tag?: string
  /** A status that a tenant's own code requests. */
  status?: number
  extra?: Record<string, unknown>
  /** Headers of the response. */
  headers?: ResponseHeaders
  /** Whether a token was valid until it expired. */
  isExpired?: boolean
}

export class RuntimeError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly tag: string
  /** Whether the tenant's own code failed, not the service. */
  readonly isOfTenant: boolean
  /** Whether the load of one tenant alone can cause the error. */
  readonly isLoad: boolean
  /** Seconds, sent as `Retry-After`. */
  readonly retryAfter: number | undefined
  /** Further public members of the body, in a client's dialect. */
  readonly extra: Record<string, unknown>
  /** Headers of the response. */
  readonly headers: ResponseHeaders
  /** Whether a token was valid until it expired. */
  readonly isExpired: boolean

  /**
   * Creates an error. `message` is public: it states what is wrong and where, without internals. `cause` goes to the log.
   */
  constructor(code: ErrorCode, message: string, options: RuntimeErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    const kind: ErrorKind = errorKinds[code]
    this.name = 'RuntimeError'
    this.code = code
    this.status = options.status ?? kind.status
    this.tag = options.tag ?? kind.tag
    this.isOfTenant = kind.isOfTenant === true
    this.isLoad = kind.isLoad === true
    this.extra = options.extra ?? {}
    this.headers = options.headers ?? {}
    this.isExpired = options.isExpired === true
    this.retryAfter = options.retryAfter ?? (kind.status === 503 ? 1 : undefined)
  }
}
