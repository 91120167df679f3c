// All attacks of the suite.
import type { Attack } from '../attack.ts'
import type { Target } from '../support/target.ts'
import { accessAttacks } from './access.ts'
import { bodyAttacks } from './bodies.ts'
import { connectionAttacks } from './connections.ts'
import { functionAttacks } from './functions.ts'
import { loadAttacks } from './load.ts'
import { lockAttacks } from './locks.ts'
import { parsingAttacks } from './parsing.ts'
import { queryAttacks } from './queries.ts'
import { readerAttacks } from './readers.ts'
import { realtimeAttacks } from './realtime.ts'
import { schemaAttacks } from './schemas.ts'
import { serverAttacks } from './server.ts'

const attacks: readonly Attack[] = [
  ...bodyAttacks,
  ...connectionAttacks,
  ...queryAttacks,
  ...lockAttacks,
  ...loadAttacks,
  ...accessAttacks,
  ...functionAttacks,
  ...readerAttacks,
  ...realtimeAttacks,
  ...parsingAttacks,
  ...schemaAttacks,
  ...serverAttacks,
]

const defaultTargets: readonly Target[] = ['npm start', 'shared Postgres']

/** Returns the attacks that make sense in a target. */
export const attacksIn = (target: Target): Attack[] =>
  attacks.filter(({ targets = defaultTargets }) => targets.includes(target))
