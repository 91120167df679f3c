// Errors of a tenant that is not as specified, with a code for programs and a public message.
import { EngineError } from '../engines/index.ts'
import { HomeError } from '../homes/index.ts'

/** Reason of a condition if neither the engine nor the home gives one. */
export type NotReadyCode =
  | 'RUNTIME_UNREACHABLE'
  | 'RUNTIME_UNHEALTHY'
  | 'GATEWAY_UNREACHABLE'
  | 'ROUTE_MISSING'
  | 'ROUTE_OUTDATED'
  | 'LEASE_MISSING'

/** An error of a runtime or a gateway that did not reach the expected state in time. Its message is public. */
export class NotReady extends Error {
  readonly code: NotReadyCode

  constructor(code: NotReadyCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Returns the public message of an error. A driver's own text is not public, because it may contain addresses. */
export function publicMessage(error: unknown): string {
  if (error instanceof EngineError || error instanceof HomeError || error instanceof NotReady) return error.message
  return 'The home could not be brought to its specified state. The work is retried.'
}

/** Returns the reason of a condition: `VOLUME_MISSING` → `VolumeMissing`. An error without a code is `Error`. */
export function reasonOf(error: unknown): string {
  if (error instanceof HomeError) return error.reason
  if (!(error instanceof EngineError || error instanceof NotReady)) return 'Error'
  return error.code.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
