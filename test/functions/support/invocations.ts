// Ended invocations as the store receives them, and their records.
import type { TestTenant } from '#test/support/runtime.ts'

export const recordsOf = (tenant: TestTenant) =>
  tenant.rows('select i.*, f.name from function_invocations i join functions f on f.id = i.function_id order by i.id')
export const ended = {
  status: 'success',
  durationMilliseconds: 1.6,
  cpuMicroseconds: 1_234,
  memoryPeak: 65_536,
  egressBytes: 0,
  errorMessage: null,
  log: undefined,
} as const

export const onError = (error: Error) => {
  throw error
}
