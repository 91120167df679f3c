// Random requests of operators, as the API writes them into the database.
import { driftPolicies } from '#control-plane/tenants/tenant.ts'
import { clusterMembers } from '#control-plane/stacks/cluster-services.ts'
import type { Isolation } from '#control-plane/stacks/isolation.ts'
import type { Chance } from './chance.ts'
import type { ControlDatabase, TenantRow } from './control-database.ts'

const mega = 2 ** 20

export interface OperatorsOptions {
  database: ControlDatabase
  chance: Chance
  now: () => Date
  region: string
  /** IDs of the tenants that are still to be created; the first is the next. */
  ids: string[]
  /** The isolation models of new tenants, each as often as it is there. */
  isolations: readonly Isolation[]
  trace: (line: string) => void
}

const sizes = (chance: Chance): TenantRow['sizes'] => ({
  postgres: { memoryBytes: chance.pick([256, 512]) * mega, cpuMillis: 500 },
  runtime: { memoryBytes: chance.pick([128, 256]) * mega, cpuMillis: 500 },
})

export type Operators = ReturnType<typeof createOperators>

export function createOperators({ database, chance, now, region, ids, isolations, trace }: OperatorsOptions) {
  const create = () => {
    const id = ids.shift()
    if (id === undefined) return
    const isolation = chance.pick(isolations)
    const desired = isolation !== 'schema-per-tenant' && chance.happens(0.1) ? 'warm' : 'active'
    trace(`operator creates ${id} ${isolation} ${desired}`)
    database.create({ id, regionId: region, isolation, desired, sizes: sizes(chance) })
  }

  const after = (seconds: number) => new Date(now().getTime() + seconds * 1000)
  const remove = (row: TenantRow) => {
    const due = after(chance.pick([0, 0, 5, 40]))
    const purgeAfter = row.purgeAfter !== null && row.purgeAfter < due ? row.purgeAfter : due
    const desiredBeforeDelete = row.desired === 'deleted' ? row.desiredBeforeDelete : row.desired
    const change = { desired: 'deleted', status: 'deleting', purgeAfter, desiredBeforeDelete } as const
    return database.requestChange(row.id, 'delete', change)
  }
  const undelete = ({ id, purgeAfter, isPurgeBegun, desiredBeforeDelete }: TenantRow): boolean => {
    if (isPurgeBegun || purgeAfter === null || purgeAfter <= now() || desiredBeforeDelete === 'warm') return false
    const desired = desiredBeforeDelete === 'suspended' ? 'suspended' : 'active'
    const change = { desired, status: 'pending', reason: null, purgeAfter: null, desiredBeforeDelete: null } as const
    return database.requestChange(id, 'undelete', change)
  }

  const switchOver = (id: string): boolean => {
    const [from = '', other = ''] = chance.pick([clusterMembers, clusterMembers.toReversed()])
    return database.requestChange(id, 'switchover', {}, { switchover: { from, to: chance.pick([null, other]) } })
  }

  /** Requests a random change that the tenant's state allows. @returns whether it is accepted */
  const change = (row: TenantRow): boolean => {
    const { id, desired, isolation } = row
    if (chance.happens(0.15)) return remove(row)
    if (desired === 'deleted') return chance.happens(0.5) ? undelete(row) : remove(row)
    if (desired === 'warm') return database.requestChange(id, 'update', { desired: 'active' })
    if (desired === 'suspended') return database.requestChange(id, 'resume', { desired: 'active' })
    if (desired === 'paused') return database.requestChange(id, 'wake', { desired: 'active' })
    const isDedicated = isolation !== 'schema-per-tenant'
    const choices: (() => boolean)[] = [
      () => database.requestChange(id, 'suspend', { desired: 'suspended' }),
      () => database.requestChange(id, 'rotate_keys', { expiries: [...row.expiries, after(chance.between(1, 30))] }),
      () => database.requestChange(id, 'rotate_database_password', { databasePasswordDue: true }),
      () => database.requestChange(id, 'rotate_service_passwords', { servicePasswordsDue: true }),
      ...(isDedicated
        ? [
            () => database.requestChange(id, 'pause', { desired: 'paused' }),
            () => database.requestChange(id, 'restart', { restarts: row.restarts + 1 }),
            () => database.requestChange(id, 'resize', { sizes: sizes(chance) }),
            () => database.requestChange(id, 'update', { driftPolicy: chance.pick(driftPolicies) }),
            () =>
              row.images != null &&
              database.requestChange(id, 'upgrade', {
                images: { postgres: row.images.postgres, runtime: chance.pick(['runtime:1', 'runtime:2']) },
              }),
          ]
        : []),
      ...(isolation === 'cluster-per-tenant' ? [() => switchOver(id)] : []),
    ]
    return chance.pick(choices)()
  }

  const actOn = (row: TenantRow) => {
    const before = row.generation
    if (change(row))
      trace(`operator ${[...database.operations.values()].at(-1)?.kind ?? ''} ${row.id} ${before} → ${row.generation}`)
  }

  return {
    create,
    act(): void {
      const rows = [...database.tenants.values()]
      if (rows.length === 0 || chance.happens(0.2)) create()
      else actOn(chance.pick(rows))
    },
  }
}
