// How many rows Postgres' planner expects, from what EXPLAIN says.
import type { Row } from '../../database/statement.ts'

/** @param row of `explain (format json)` */
export function plannedRows(row: Row | undefined): number {
  const [first] = Object.values(row ?? {})
  const [plan] = Array.isArray(first) ? (first as unknown[]) : []
  const { Plan } = (plan ?? {}) as { Plan?: { 'Plan Rows'?: number } }
  return Plan?.['Plan Rows'] ?? 0
}
