// Errors of engines, with messages for the operator.

/** Code of an engine's error, which is the reason of a condition. */
export type EngineErrorCode =
  | 'ENGINE_UNREACHABLE'
  | 'HOST_UNREACHABLE'
  | 'NOT_A_MANAGER'
  | 'ENGINE_TOO_OLD'
  | 'IMAGE_MISSING'
  | 'DISK_FULL'
  | 'PORT_TAKEN'
  | 'ADDRESS_TAKEN'
  | 'SUBNET_TAKEN'
  | 'SUBNETS_EXHAUSTED'
  | 'REGION_FULL'
  | 'LIMITS_BEYOND_HOST'
  | 'FOREIGN_OBJECT'
  | 'VOLUME_MISSING'
  | 'HOME_MISSING'
  | 'NOT_FOUND'
  | 'CONTAINER_LOST'
  | 'UNHEALTHY'
  | 'ENGINE_FAILED'

/** Whether an error shows that the whole engine cannot be reached, and not only one of its objects. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof EngineError && error.code === 'ENGINE_UNREACHABLE'
}

/** Whether an error shows that only one of several hosts did not respond. */
export function isSilentHost(error: unknown): boolean {
  return error instanceof EngineError && error.code === 'HOST_UNREACHABLE'
}

/** An error of a call of an engine. Code and message are public: operators read them in conditions and errors. */
export class EngineError extends Error {
  readonly code: EngineErrorCode
  /** IDs of the hosts that a removal has missed; none for other errors. */
  readonly missedHosts: readonly string[]

  /** @param message public text that names what failed and the object, never a secret or an address of the host */
  constructor(
    code: EngineErrorCode,
    message: string,
    { missedHosts = [], ...options }: ErrorOptions & { missedHosts?: readonly string[] } = {},
  ) {
    super(message, options)
    this.code = code
    this.missedHosts = missedHosts
  }
}
