// Why a part of a tenant is not as it was asked for, in a code for programs and words that may be shown.
import { EngineError } from '../engines/index.ts'
import { HomeError } from '../homes/index.ts'

/** The reason of a condition, where neither the engine nor the home gives one. */
export type NotReadyCode =
  | 'RUNTIME_UNREACHABLE'
  | 'RUNTIME_UNHEALTHY'
  | 'GATEWAY_UNREACHABLE'
  | 'ROUTE_MISSING'
  | 'ROUTE_OUTDATED'
  | 'LEASE_MISSING'

/** A runtime or a gateway did not show what was waited for. Its message is public. */
export class NotReady extends Error {
  readonly code: NotReadyCode

  constructor(code: NotReadyCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** What went wrong in words that may be shown: ours, never a driver's, which may hold addresses. */
export function publicMessage(error: unknown): string {
  if (error instanceof EngineError || error instanceof HomeError || error instanceof NotReady) return error.message
  return 'the home could not be brought to the wanted state; it is tried again'
}

/** Code of a condition: `VOLUME_MISSING` → `VolumeMissing`. An error that has no code is `Error`. */
export function reasonOf(error: unknown): string {
  if (error instanceof HomeError) return error.reason
  if (!(error instanceof EngineError || error instanceof NotReady)) return 'Error'
  return error.code.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
