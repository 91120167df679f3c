// Reads from EXPLAIN's result how many rows Postgres' planner expects.
import type { Row } from '../../database/statement.ts'

/**
 * Returns the expected number of rows.
 * @param row the row of `explain (format json)`
 */
export function plannedRows(row: Row | undefined): number {
  const [first] = Object.values(row ?? {})
  const [plan] = Array.isArray(first) ? (first as unknown[]) : []
  const { Plan } = (plan ?? {}) as { Plan?: { 'Plan Rows'?: number } }
  return Plan?.['Plan Rows'] ?? 0
}
