// Reads tenants of the control database as the reconciler's snapshots: each with everything that belongs to it in one query, which
// sees one instant.
import { Value } from 'typebox/value'
import type { RoutePhase } from '@tenantry/contract'
import { Prisma } from '../../../prisma/client/client.ts'
import { placementOf } from '../placement/index.ts'
import type { Database } from '../platform/database.ts'
import type { Seal } from '../platform/seal.ts'
import { MovingServices, type Isolation } from '../stacks/index.ts'
import {
  alongsideGenerations,
  liveSecrets,
  readSecretsText,
  secretsText,
  toConditions,
  toSizes,
  type Desired,
  type DriftPolicy,
  type Status,
} from '../tenants/index.ts'
import { isHeldBy, type Snapshot } from './reconcile-store.ts'
import { toOpenOperation } from './store-open-operation.ts'

/** An operation in progress. */
interface OperationRow {
  id: string
  attempts: number
  generation: number
  switchover: unknown
  repair: unknown
  kind: string
  step: string | null
}

interface PlacementRow {
  service: string
  hostId: string
  memoryBytes: number
  formerHostId: string | null
}

/** The columns of a tenant, in which check constraints limit the values, and those of other tables under names of their own. */
interface Row {
  id: string
  name: string
  region_id: string
  isolation: Isolation
  desired: Desired
  status: Status
  route_phase: RoutePhase
  drift_policy: DriftPolicy
  generation: number
  observed_generation: number
  reason: string | null
  conditions: Prisma.JsonValue
  home_version: string | null
  purge_after: Date | null
  resources: Prisma.JsonValue
  restarts: number
  archive_days: number | null
  postgres_image: string | null
  runtime_image: string | null
  moving_services: unknown
  database_password_due: boolean
  service_passwords_due: boolean
  plan_resources: Prisma.JsonValue
  /** Name of the shared database of the home. */
  database: string | null
  /** Number of the subnet of the tenant's own services. */
  subnet: number | null
  placements: PlacementRow[]
  secrets: string | null
  is_sql_closed: boolean
  /** The newest one in progress, of those that supersede each other: opening it has superseded the others. */
  operation: OperationRow | null
}

const noSizes = { postgres: { memoryBytes: 0, cpuMillis: 0 }, runtime: { memoryBytes: 0, cpuMillis: 0 } }

/** Returns the function that reads the tenants `t` that satisfy a condition; `seal` opens their secrets. */
export function snapshotReader(database: Database, seal: Seal, now: () => Date) {
  return async (which: Prisma.Sql): Promise<Snapshot[]> => {
    const at = now()
    const rows = await database.$queryRaw<Row[]>`${selectRows(which, at)}`
    return rows.map((row) => toSnapshot(row, seal, at))
  }
}

function selectRows(which: Prisma.Sql, at: Date): Prisma.Sql {
  return Prisma.sql`
    select t.id, t.name, t.region_id, t.isolation, t.desired, t.status, t.route_phase, t.drift_policy, t.generation,
      t.observed_generation, t.reason, t.conditions, t.home_version, t.purge_after, t.resources, t.restarts, t.archive_days,
      t.postgres_image, t.runtime_image, t.moving_services, t.database_password_due, t.service_passwords_due,
      p.resources as plan_resources, d.name as database, n.number as subnet,
      (select coalesce(jsonb_agg(jsonb_build_object(
          'service', service, 'hostId', host_id, 'memoryBytes', memory_bytes, 'formerHostId', former_host_id)), '[]')
        from placements where tenant_id = t.id) as placements,
      (select ${secretsText} from tenant_secrets s where s.tenant_id = t.id) as secrets,
      exists (select from sql_logins where tenant_id = t.id and (closed_until > ${at} or is_full)) as is_sql_closed,
      (select jsonb_build_object('id', id, 'attempts', attempts, 'generation', generation, 'switchover', switchover,
          'repair', repair, 'kind', kind, 'step', step)
        from operations where tenant_id = t.id and state in ('pending', 'running')
          and kind <> all (${[...alongsideGenerations]})
        order by generation desc limit 1) as operation
    from tenants t
    join plans p on p.id = t.plan_id
    left join shared_databases d on d.id = t.shared_database_id
    left join subnets n on n.stack_id = t.id
    where ${which}`
}

function toSnapshot(row: Row, seal: Seal, at: Date): Snapshot {
  const secrets = readSecretsText(row.secrets)
  const { texts, nextExpiry } = liveSecrets(row.id, secrets, seal, at)
  const { operation, placements, postgres_image: postgres, runtime_image: runtime } = row
  const moving = Value.Check(MovingServices, row.moving_services) ? { moving: row.moving_services } : {}
  return {
    id: row.id,
    name: row.name,
    regionId: row.region_id,
    isolation: row.isolation,
    desired: row.desired,
    status: row.status,
    routePhase: row.route_phase,
    driftPolicy: row.drift_policy,
    isSqlClosed: row.is_sql_closed,
    isHeld: isHeldBy(operation, moving.moving),
    generation: row.generation,
    observedGeneration: row.observed_generation,
    reason: row.reason,
    conditions: toConditions(row.conditions),
    homeVersion: row.home_version ?? undefined,
    purgeAfter: row.purge_after ?? undefined,
    database: row.database ?? undefined,
    sizes: toSizes(row.resources) ?? toSizes(row.plan_resources) ?? noSizes,
    restarts: row.restarts,
    isArchived: row.archive_days !== null,
    images: postgres === null || runtime === null ? undefined : { postgres, runtime },
    ...moving,
    subnet: row.subnet ?? undefined,
    ...placementOf(placements),
    ...(placements.some(({ formerHostId }) => formerHostId !== null) ? { isReplaced: true } : {}),
    databasePasswordDue: row.database_password_due,
    servicePasswordsDue: row.service_passwords_due,
    secrets: texts,
    nextExpiry,
    hasExpired: secrets.some(({ expiresAt }) => expiresAt !== null && expiresAt <= at),
    operation: operation?.generation === row.generation ? toOpenOperation(operation) : undefined,
  }
}
