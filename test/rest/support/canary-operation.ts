// One request of a member in the test of isolation.
import type { ApiResponse } from '#test/support/runtime.ts'
import type { Member } from './canary-tenants.ts'

/** A request, and what the test expects of it. */
export interface Operation {
  method: string
  path: string
  body?: object | string
  headers?: Record<string, string>
  /** The expected statuses. */
  right: number[]
  /** The collection and texts that a rejected request must not store. */
  writes?: { collection: string; texts: string[] }
  learn?: (response: ApiResponse) => void
}

/** Returns a maker of operations several times, so that it is chosen more often. */
export function repeat(times: number, make: () => (member: Member) => Operation): ((member: Member) => Operation)[] {
  return Array.from({ length: times }, make)
}
