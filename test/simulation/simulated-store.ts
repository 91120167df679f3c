// The simulated ReconcileStore: the statements of the real one (reconcile/store.ts) on the database in memory, over a
// connection that may break before or after each of them.
import { unobservedHome, type ReconcileStore } from '#control-plane/reconcile/reconcile-store.ts'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import type { ControlDatabase, TenantRow } from './control-database.ts'
import type { Actor, ControlPlane } from './control-plane.ts'
import type { Invariants } from './invariants.ts'

export interface SimulatedStoreOptions {
  database: ControlDatabase
  caller: ControlPlane
  invariants: Invariants
  now: () => Date
  /** False lets former leaders write. A planted defect. */
  checksEpoch: boolean
}

const phaseOf: Partial<Record<TenantRow['desired'], TenantRow['routePhase']>> = {
  active: 'ready',
  suspended: 'suspended',
  paused: 'paused',
}
const settledStatuses = new Set(['ready', 'suspended', 'paused', 'warm'])
const timeout = 5_000
const hasObservedHome = ({ homeVersion }: TenantRow) => homeVersion !== null && homeVersion !== unobservedHome

export function createSimulatedStore({
  database,
  caller,
  invariants,
  now,
  checksEpoch,
}: SimulatedStoreOptions): ReconcileStore {
  const { tenants, operations, subnets } = database
  const request = <T>(what: string, effect: (actor: Actor) => T): Promise<T> =>
    caller.call(`database: ${what}`, effect, {
      timeout,
      takes: 4,
      failure: () => new Error('the connection to the database ended'),
    })

  /** The last work of those that run one after the other. */
  let turn: Promise<unknown> = Promise.resolve()

  const lead = <T>(what: string, epoch: bigint, effect: (actor: Actor) => T): Promise<T> =>
    request(what, (actor) => {
      if (checksEpoch && epoch !== database.state.epoch) throw new LeadershipLost('another control plane leads')
      database.state.writes++
      invariants.written(epoch, what)
      return effect(actor)
    })

  const freeNumbers = (regionId: string, count: number, except: readonly number[]): number[] => {
    const taken = new Set([
      ...except,
      ...[...subnets.values()].filter((subnet) => subnet.regionId === regionId).map(({ number }) => number),
    ])
    return Array.from({ length: count }, (_, candidate) => candidate).filter((candidate) => !taken.has(candidate))
  }

  return {
    placements: {
      inTurn(_regionId, work) {
        const result = turn.then(work)
        turn = result.catch(() => undefined)
        return result
      },
      states: () => request('states', () => new Map(database.hostStates)),
      // Operators set the states, and no job measures the hosts.
      setState: () => Promise.reject(new Error('The simulation sets states without it.')),
      noteLost: () => Promise.reject(new Error('The simulation sets states without it.')),
      reserved: (regionId) =>
        request(`reserved ${regionId}`, () => {
          const reserved = new Map<string, number>()
          for (const row of [...tenants.values()].filter((tenant) => tenant.regionId === regionId))
            for (const [service, host] of Object.entries(row.placement))
              reserved.set(host, (reserved.get(host) ?? 0) + (row.reserved[service] ?? 0))
          return reserved
        }),
      of: (tenantId) =>
        request(`placement of ${tenantId}`, () => {
          const row = tenants.get(tenantId)
          return { placement: row?.placement ?? {}, reserved: row?.reserved ?? {} }
        }),
      assign: (tenantId, needs, placement, epoch) =>
        lead(`assign ${tenantId}`, epoch, () => {
          const row = tenants.get(tenantId)
          if (row === undefined) return {}
          row.placement = { ...row.placement, ...placement }
          row.reserved = Object.fromEntries(needs.map(({ service, memoryBytes }) => [service, memoryBytes]))
          return row.placement
        }),
      endReplacement: () => Promise.reject(new Error('The simulation restores no tenants.')),
    },
    snapshot: (tenantId) =>
      request(`snapshot ${tenantId}`, () => {
        const row = tenants.get(tenantId)
        if (row === undefined) return undefined
        const operation = database.openOf(tenantId).sort((a, b) => b.generation - a.generation)[0]
        const current =
          operation?.generation === row.generation
            ? {
                id: operation.id,
                attempts: operation.attempts,
                ...(operation.switchover === undefined ? {} : { switchover: operation.switchover }),
              }
            : undefined
        return database.snapshotOf(row, current, subnets.get(tenantId)?.number)
      }),
    regionOf: (tenantId) => request('region of a tenant', () => tenants.get(tenantId)?.regionId),
    unsettled: (homeVersion) =>
      request('unsettled', () =>
        [...tenants.values()]
          .filter(
            (row) =>
              row.observedGeneration < row.generation ||
              row.status === 'pending' ||
              row.status === 'failed' ||
              (row.status !== 'deleting' && row.reason !== null) ||
              row.routePhase !== (phaseOf[row.desired] ?? row.routePhase) ||
              (row.desired === 'deleted' && row.purgeAfter !== null && row.purgeAfter <= now()) ||
              (row.homeVersion !== homeVersion &&
                (row.desired === 'active' ||
                  row.desired === 'warm' ||
                  (row.desired !== 'deleted' && row.isolation === 'schema-per-tenant'))) ||
              row.expiries.some((expiry) => expiry <= now()),
          )
          .map(({ id, regionId }) => ({ id, regionId })),
      ),
    async settledDedicated(regionId) {
      const rows = await request('settled tenants', () =>
        [...tenants.values()]
          .filter(
            (row) =>
              row.regionId === regionId &&
              row.isolation !== 'schema-per-tenant' &&
              settledStatuses.has(row.status) &&
              row.desired !== 'deleted' &&
              row.generation === row.observedGeneration,
          )
          .map((row) => ({ ...row })),
      )
      const numbers = await request(
        'subnets',
        () => new Map([...subnets].map(([stack, { number }]) => [stack, number])),
      )
      return rows.map((row) => database.snapshotOf(row, undefined, numbers.get(row.id)))
    },
    hasHomes: (regionId) =>
      request('homes', () =>
        [...tenants.values()].some(
          (row) => row.regionId === regionId && row.isolation === 'schema-per-tenant' && hasObservedHome(row),
        ),
      ),
    mayHoldHomes: (regionId) =>
      request('homes', () =>
        [...tenants.values()].some(
          (row) => row.regionId === regionId && row.isolation === 'schema-per-tenant' && row.homeVersion !== null,
        ),
      ),
    hasClusters: (regionId) =>
      request('homes', () =>
        [...tenants.values()].some(
          (row) => row.regionId === regionId && row.isolation === 'cluster-per-tenant' && hasObservedHome(row),
        ),
      ),
    tenantIds: () => request('tenants', () => new Set(tenants.keys())),

    confirmLead: (epoch) =>
      request('confirm lead', () => {
        if (checksEpoch && epoch !== database.state.epoch) throw new LeadershipLost('another control plane leads')
      }),
    beginOperation: (operationId, epoch) =>
      lead(`begin ${operationId}`, epoch, () => {
        const operation = operations.get(operationId)
        if (operation === undefined || !database.isOpen(operation)) return
        operation.state = 'running'
        operation.attempts++
      }),
    recordStep: (operationId, step, epoch) =>
      lead(`step ${step} of ${operationId}`, epoch, () => {
        const operation = operations.get(operationId)
        if (operation?.state === 'running') operation.step = step
      }),
    pinImages: (tenantId, images, epoch) =>
      lead(`pin images of ${tenantId}`, epoch, () => {
        const row = tenants.get(tenantId)
        if (row !== undefined) row.images ??= images
      }),
    replaceImages: (tenantId, images, epoch) =>
      lead(`replace images of ${tenantId}`, epoch, () => {
        const row = tenants.get(tenantId)
        if (row?.homeVersion === unobservedHome) row.images = images
      }),
    deletedTenants: (ids) =>
      request(
        'deleted tenants',
        () =>
          new Set(
            ids.filter((id) =>
              [...operations.values()].some(
                (operation) =>
                  operation.tenantId === id && operation.kind === 'delete' && operation.state === 'succeeded',
              ),
            ),
          ),
      ),
    allocateSubnet: (tenantId, regionId, count, epoch, except = []) =>
      lead(`allocate subnet of ${tenantId}`, epoch, () => {
        const stored = subnets.get(tenantId)
        if (stored !== undefined) return stored.number
        if (!tenants.has(tenantId)) return undefined
        const [number] = freeNumbers(regionId, count, except)
        if (number === undefined) return undefined
        subnets.set(tenantId, { regionId, number })
        invariants.allocated()
        return number
      }),
    moveSubnet: (tenantId, from, regionId, count, epoch, except) =>
      lead(`move subnet of ${tenantId}`, epoch, () => {
        const stored = subnets.get(tenantId)
        if (stored?.number !== from) return stored?.number
        const free = freeNumbers(regionId, count, except)
        const number = free.find((candidate) => candidate > from) ?? free[0]
        if (number === undefined) return undefined
        invariants.freed(tenantId)
        subnets.set(tenantId, { regionId, number })
        invariants.allocated()
        return number
      }),
    freeSubnet: (stackId, epoch) =>
      lead(`free subnet of ${stackId}`, epoch, () => {
        if (tenants.has(stackId)) return
        if (subnets.delete(stackId)) invariants.freed(stackId)
      }),
    recordPublished: (tenantId, { homeVersion, routePhase }, epoch) =>
      lead(`publish ${tenantId} ${routePhase} ${homeVersion ?? '-'}`, epoch, (actor) => {
        const row = tenants.get(tenantId)
        if (row === undefined) return
        invariants.published(row, routePhase, caller, actor)
        row.homeVersion = homeVersion
        row.routePhase = routePhase
        row.hadHome ||= homeVersion !== null
        row.expiries = row.expiries.filter((expiry) => expiry > now())
        database.report({ kind: 'published', subject: tenantId })
      }),
    recordObserved: (tenantId, { generation, status, reason, conditions, operation }, epoch) =>
      lead(`observed ${tenantId} ${status} ${generation} ${reason ?? ''}`, epoch, (actor) => {
        const row = tenants.get(tenantId)
        if (row !== undefined && row.generation >= generation && row.observedGeneration <= generation) {
          const newStatus = row.desired === 'deleted' ? 'deleting' : status
          invariants.observed(row, newStatus, generation, caller, actor)
          Object.assign(row, { observedGeneration: generation, reason, status: newStatus, conditions })
        }
        const ended = operations.get(operation?.id ?? '')
        if (operation !== undefined && ended !== undefined && database.isOpen(ended)) {
          if (operation.hasFailed === true) ended.state = 'failed'
          else if (operation.error === null) ended.state = 'succeeded'
          ended.error = operation.error
        }
        database.report({ kind: 'observed', subject: tenantId })
      }),
    recordServicePasswordsSet: (tenantId, generation, epoch) =>
      lead(`service passwords of ${tenantId} set`, epoch, () => {
        const row = tenants.get(tenantId)
        if (row?.generation !== generation) return
        row.servicePasswordsDue = false
        database.report({ kind: 'published', subject: tenantId })
      }),
    recordPasswordSet: (tenantId, generation, epoch) =>
      lead(`password of ${tenantId} set`, epoch, () => {
        const row = tenants.get(tenantId)
        if (row?.generation === generation) row.databasePasswordDue = false
      }),
    readyTenants: () => Promise.resolve([]),
    recordLoss: (tenantId, _condition, epoch) => lead(`loss ${tenantId}`, epoch, () => undefined),
    beginPurge: async (tenantId, generation, epoch) => {
      let isBegun = false
      await lead(`purge ${tenantId}`, epoch, () => {
        const row = tenants.get(tenantId)
        isBegun = row?.desired === 'deleted' && row.generation === generation
        if (row !== undefined && isBegun) row.isPurgeBegun = true
      })
      return isBegun
    },
    removeTenant: (tenantId, epoch) =>
      lead(`remove ${tenantId}`, epoch, () => {
        for (const operation of database.openOf(tenantId)) operation.state = 'succeeded'
        const row = tenants.get(tenantId)
        if (row !== undefined) invariants.removed(row)
        if (subnets.delete(tenantId)) invariants.freed(tenantId)
        tenants.delete(tenantId)
        database.report({ kind: 'published', subject: tenantId })
      }),
  }
}
