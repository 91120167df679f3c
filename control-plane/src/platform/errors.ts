// The catalogue of the API's errors.
// Services throw `ControlError`s. Only the HTTP error handler converts them to bodies.

/** Codes of all errors of the API, each with its HTTP status and short tag (specification, section 7). */
export const errorKinds = {
  BAD_REQUEST: { status: 400, tag: 'bad_request' },
  INVALID_JSON: { status: 400, tag: 'bad_request' },
  UNKNOWN_FIELD: { status: 400, tag: 'bad_request' },
  MISSING_FIELD: { status: 400, tag: 'bad_request' },
  INVALID_FIELD: { status: 400, tag: 'bad_request' },
  UNKNOWN_PARAMETER: { status: 400, tag: 'bad_request' },
  INVALID_PARAMETER: { status: 400, tag: 'bad_request' },
  INVALID_HEADER: { status: 400, tag: 'bad_request' },
  INVALID_NAME: { status: 400, tag: 'bad_request' },
  RESERVED_NAME: { status: 400, tag: 'bad_request' },
  UNKNOWN_PLAN: { status: 400, tag: 'bad_request' },
  UNKNOWN_DATABASE: { status: 400, tag: 'bad_request' },
  UNKNOWN_REGION: { status: 400, tag: 'bad_request' },
  INVALID_MONTH: { status: 400, tag: 'bad_request' },
  FUTURE_MONTH: { status: 400, tag: 'bad_request' },
  MISSING_KEY: { status: 401, tag: 'unauthorized' },
  INVALID_KEY: { status: 401, tag: 'unauthorized' },
  REVOKED_KEY: { status: 401, tag: 'unauthorized' },
  SESSION_ENDED: { status: 401, tag: 'unauthorized' },
  WRONG_SCOPE: { status: 403, tag: 'forbidden' },
  KEY_LIMITED: { status: 403, tag: 'forbidden' },
  ADDRESS_NOT_ALLOWED: { status: 403, tag: 'forbidden' },
  CSRF_REJECTED: { status: 403, tag: 'forbidden' },
  NOT_FOUND: { status: 404, tag: 'not_found' },
  TENANT_NOT_FOUND: { status: 404, tag: 'not_found' },
  OPERATION_NOT_FOUND: { status: 404, tag: 'not_found' },
  HOST_NOT_FOUND: { status: 404, tag: 'not_found' },
  ROLLOUT_NOT_FOUND: { status: 404, tag: 'not_found' },
  REBALANCE_NOT_FOUND: { status: 404, tag: 'not_found' },
  DATABASE_NOT_FOUND: { status: 404, tag: 'not_found' },
  BACKUP_NOT_FOUND: { status: 404, tag: 'not_found' },
  INVOICE_NOT_FOUND: { status: 404, tag: 'not_found' },
  SPENDING_LIMIT_NOT_FOUND: { status: 404, tag: 'not_found' },
  ADJUSTMENT_NOT_FOUND: { status: 404, tag: 'not_found' },
  WEBHOOK_NOT_FOUND: { status: 404, tag: 'not_found' },
  DELIVERY_NOT_FOUND: { status: 404, tag: 'not_found' },
  KEY_NOT_FOUND: { status: 404, tag: 'not_found' },
  SERVICE_NOT_FOUND: { status: 404, tag: 'not_found' },
  SESSION_NOT_FOUND: { status: 404, tag: 'not_found' },
  CONSOLE_SESSION_NOT_FOUND: { status: 404, tag: 'not_found' },
  BLOCKED_ADDRESS_NOT_FOUND: { status: 404, tag: 'not_found' },
  SOURCE_NOT_FOUND: { status: 404, tag: 'not_found' },
  NAME_TAKEN: { status: 409, tag: 'conflict' },
  TENANT_DELETED: { status: 409, tag: 'conflict' },
  NOT_ACTIVE: { status: 409, tag: 'conflict' },
  PLAN_TOO_SMALL: { status: 409, tag: 'conflict' },
  NOT_DRIFTED: { status: 409, tag: 'conflict' },
  NO_CANDIDATE: { status: 409, tag: 'conflict' },
  SAME_DATABASE: { status: 409, tag: 'conflict' },
  SAME_ISOLATION: { status: 409, tag: 'conflict' },
  SAME_REGION: { status: 409, tag: 'conflict' },
  DATABASE_FULL: { status: 409, tag: 'conflict' },
  NOT_CANCELABLE: { status: 409, tag: 'conflict' },
  NO_MOVE_TO_REVERT: { status: 409, tag: 'conflict' },
  NOT_SUSPENDED: { status: 409, tag: 'conflict' },
  LAST_ADMIN_KEY: { status: 409, tag: 'conflict' },
  KEY_NOT_LIVE: { status: 409, tag: 'conflict' },
  TOO_MANY_SECRETS: { status: 409, tag: 'conflict' },
  ROLLOUT_IN_PROGRESS: { status: 409, tag: 'conflict' },
  ROLLOUT_FINISHED: { status: 409, tag: 'conflict' },
  REBALANCE_IN_PROGRESS: { status: 409, tag: 'conflict' },
  REBALANCE_FINISHED: { status: 409, tag: 'conflict' },
  BACKUP_NOT_COMPLETE: { status: 409, tag: 'conflict' },
  BACKUP_IN_USE: { status: 409, tag: 'conflict' },
  BACKUP_NOT_ADOPTED: { status: 409, tag: 'conflict' },
  BACKUP_NOT_ADOPTABLE: { status: 409, tag: 'conflict' },
  MONTH_NOT_CLOSED: { status: 409, tag: 'conflict' },
  INVOICE_NOT_FINAL: { status: 409, tag: 'conflict' },
  ADJUSTMENT_BILLED: { status: 409, tag: 'conflict' },
  TOO_MANY_ADJUSTMENTS: { status: 409, tag: 'conflict' },
  TOO_MANY_BLOCKED_ADDRESSES: { status: 409, tag: 'conflict' },
  SOURCE_LIVES: { status: 409, tag: 'conflict' },
  IDEMPOTENCY_MISMATCH: { status: 409, tag: 'conflict' },
  TENANT_PURGED: { status: 410, tag: 'gone' },
  STALE_ETAG: { status: 412, tag: 'precondition_failed' },
  NOT_ACCEPTABLE: { status: 406, tag: 'not_acceptable' },
  BODY_TOO_LARGE: { status: 413, tag: 'payload_too_large' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, tag: 'unsupported_media_type' },
  FORBIDDEN_ADDRESS: { status: 422, tag: 'unprocessable' },
  CONFIRMATION_REQUIRED: { status: 422, tag: 'unprocessable' },
  UNSUPPORTED_ISOLATION: { status: 422, tag: 'unprocessable' },
  UNSUPPORTED_REGION: { status: 422, tag: 'unprocessable' },
  NOT_CREATED_BY_CONTROL_PLANE: { status: 422, tag: 'unprocessable' },
  NOT_SHARED: { status: 422, tag: 'unprocessable' },
  NOT_DEDICATED: { status: 422, tag: 'unprocessable' },
  LIMITS_BEYOND_HOST: { status: 422, tag: 'unprocessable' },
  IMAGE_MISSING: { status: 422, tag: 'unprocessable' },
  WRONG_IMAGE: { status: 422, tag: 'unprocessable' },
  OUTSIDE_ARCHIVE: { status: 422, tag: 'unprocessable' },
  BACKUPS_OFF: { status: 422, tag: 'unprocessable' },
  BILLING_OFF: { status: 422, tag: 'unprocessable' },
  NO_PRICES: { status: 422, tag: 'unprocessable' },
  OPERATION_IN_PROGRESS: { status: 423, tag: 'locked' },
  TOO_MANY_ATTEMPTS: { status: 429, tag: 'too_many_requests' },
  INTERNAL: { status: 500, tag: 'internal' },
  UNAVAILABLE: { status: 503, tag: 'unavailable' },
  STORED_UNKNOWN: { status: 503, tag: 'unavailable' },
  ENGINE_UNREACHABLE: { status: 503, tag: 'unavailable' },
  ENGINE_FAILED: { status: 503, tag: 'unavailable' },
  HOST_DISK_FULL: { status: 507, tag: 'insufficient_storage' },
  REGION_FULL: { status: 507, tag: 'insufficient_storage' },
  TOO_MANY_FOLLOWERS: { status: 503, tag: 'unavailable' },
} as const satisfies Record<string, { status: number; tag: string }>

/** A key of `errorKinds`, stable for programs. */
export type ErrorCode = keyof typeof errorKinds

/** An error that the API returns to the caller. The HTTP error handler converts it to a body. */
export class ControlError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly tag: string
  /** Further public members of the body, for example `{ operation_id }`. */
  readonly detail: Record<string, unknown>

  /** @param message public text that names the field @param options `cause` goes to the log only */
  constructor(code: ErrorCode, message: string, options: { cause?: unknown; detail?: Record<string, unknown> } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ControlError'
    this.code = code
    this.status = errorKinds[code].status
    this.tag = errorKinds[code].tag
    this.detail = options.detail ?? {}
  }
}

/** Returns the error for a tenant that does not exist. */
export function tenantNotFound(): ControlError {
  return new ControlError('TENANT_NOT_FOUND', 'There is no such tenant.')
}
