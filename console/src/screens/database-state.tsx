// Whether a shared database exceeds its limits.
import type { SharedDatabase } from '../api/types.ts'
import { Badge } from '../parts/basics.tsx'

/** The state of a shared database: below its limits, or what there is too much of. */
export function DatabaseState({ exceeds }: Pick<SharedDatabase, 'exceeds'>) {
  if (exceeds.length === 0) return <Badge text="below its limits" kind="good" />
  return <Badge text={`too many ${exceeds.join(' and ')}`} kind="bad" />
}
