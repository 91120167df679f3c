// What can go wrong with an engine, in words that may be shown to the operator.

/** The reason of a condition; `TRANSIENT` ones pass by themselves. */
export type EngineErrorCode =
  | 'ENGINE_UNREACHABLE'
  | 'ENGINE_TOO_OLD'
  | 'IMAGE_MISSING'
  | 'DISK_FULL'
  | 'PORT_TAKEN'
  | 'ADDRESS_TAKEN'
  | 'SUBNET_TAKEN'
  | 'SUBNETS_EXHAUSTED'
  | 'LIMITS_BEYOND_HOST'
  | 'FOREIGN_OBJECT'
  | 'VOLUME_MISSING'
  | 'HOME_MISSING'
  | 'NOT_FOUND'
  | 'CONTAINER_LOST'
  | 'UNHEALTHY'
  | 'ENGINE_FAILED'

/**
 * An engine could not do what was asked of it. Code and message are public: operators read them in conditions and
 * errors.
 */
export class EngineError extends Error {
  readonly code: EngineErrorCode

  /** `message` is public: what and which object, never a secret or an address of the host. */
  constructor(code: EngineErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
