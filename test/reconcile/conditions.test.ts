// What the reconciler says of a tenant, and what it leaves as others said it.
import type { AppliedRoute, TenantHealth } from '@tenantry/contract'
import t from 'tap'
import { HomeError } from '#control-plane/homes/home-report.ts'
import { noFailpoints } from '#control-plane/reconcile/failpoints.ts'
import { Observations } from '#control-plane/reconcile/observations.ts'
import { conditionsWith, driftConditions } from '#control-plane/reconcile/conditions.ts'
import type { ReconcileStore, Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import type { Reconciliation } from '#control-plane/reconcile/reconciliation.ts'
import { recordFailure } from '#control-plane/reconcile/record-outcome.ts'
import { reconcileTenant } from '#control-plane/reconcile/tenant-reconciler.ts'
import { type Clock, systemClock } from '#control-plane/platform/clock.ts'
import type { Condition } from '#control-plane/tenants/tenant.ts'

const at = new Date('2026-03-01T12:00:00.000Z')
const disk: Condition = {
  type: 'Disk',
  status: 'False',
  reason: 'DiskExceeded',
  message: 'full',
  observed_at: '2026-03-01T11:00:00.000Z',
}

const condition = (type: Condition['type'], status: Condition['status'], reason = 'Observed'): Condition => ({
  type,
  status,
  reason,
  message: '',
  observed_at: '2026-03-01T11:00:00.000Z',
})

/** A tenant that was last seen as it was asked for. */
const settled = {
  id: 't_0123456789abcdef0123',
  isolation: 'database-per-tenant',
  desired: 'active',
  status: 'ready',
  reason: null,
  routePhase: 'ready',
  generation: 3,
  observedGeneration: 3,
  homeVersion: 'v1',
  hasExpired: false,
  nextExpiry: undefined,
  operation: undefined,
  driftPolicy: 'repair',
} as const

t.test('a part that nobody looked at keeps what was said of it, with its time', (t) => {
  const before = [condition('Home', 'True'), condition('Database', 'False'), condition('Drift', 'True'), disk]
  const route = condition('Route', 'False', 'RouteMissing')
  const database = condition('Database', 'True')
  const conditions = conditionsWith(
    before,
    new Map([
      ['Route', route],
      ['Database', database],
    ]),
  )
  t.same(conditions, [before[0], database, route, disk])
  t.same(
    driftConditions(conditions, [{ do: 'start-container', container: 'c' }], at)?.filter(({ type }) => type === 'Disk'),
    [disk],
  )
  t.end()
})

interface World {
  health: Partial<TenantHealth> | undefined | 'silent'
  route: Partial<AppliedRoute> | undefined | 'silent'
  login: 'works' | 'fails'
  /** What preparing the database, and making the home, throw. */
  prepare?: Error
  create?: Error
}

/** What is recorded of a shared tenant, last seen an hour ago, that is reconciled in such a world. */
async function recorded(world: World): Promise<{ reason: string | null; conditions: string[]; kept: string[] }> {
  const clock: Clock = { ...systemClock, now: () => at, timeout: () => AbortSignal.timeout(50) }
  const before = (['Home', 'Database', 'Runtime', 'Route'] as const).map((type) => condition(type, 'True'))
  const snapshot = {
    ...settled,
    isolation: 'schema-per-tenant',
    generation: 4,
    conditions: before,
    secrets: { runtime_password: ['a'], ddl_password: ['b'], admin_password: ['c'] },
  } as unknown as Snapshot
  let seen: { reason: string | null; conditions: Condition[] } | undefined
  const store = {
    recordPublished: async () => undefined,
    recordObserved: async (_: string, observed: typeof seen) => void (seen = observed),
  } as unknown as ReconcileStore
  const response = <T>(reported: T | 'silent') =>
    reported === 'silent' ? Promise.reject(new Error('refused')) : Promise.resolve(reported)
  const failing = (error: Error | undefined) => (error === undefined ? Promise.resolve('made') : Promise.reject(error))
  const run = {
    store,
    clock,
    homeVersion: 'v1',
    failpoint: noFailpoints,
    epoch: 1n,
    probe: { tenantHealth: () => response(world.health), route: () => response(world.route) },
    region: {
      engine: undefined,
      runtimeUrls: () => ['http://runtime'],
      config: { gateway_internal_urls: ['http://gateway'] },
      home: () => ({
        check: () => failing(world.login === 'works' ? undefined : new Error('password authentication failed')),
        prepare: () => failing(world.prepare),
        create: () => failing(world.create),
        repair: () => failing(world.create),
      }),
    },
    observations: new Observations(clock),
  } as unknown as Reconciliation
  try {
    await reconcileTenant(snapshot, run, new AbortController().signal)
  } catch (error) {
    await recordFailure(snapshot, run, error, { count: 1, since: at, outageOf: undefined })
  }
  const conditions = seen?.conditions ?? []
  return {
    reason: seen?.reason ?? null,
    conditions: conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    kept: before.filter((one) => conditions.includes(one)).map(({ type }) => type),
  }
}

const well: World = {
  health: { status: 'healthy', generation: 4, components: {} as TenantHealth['components'] },
  route: { phase: 'ready', generation: 4, leased: true },
  login: 'works',
}

t.test('each condition says what was seen of its own part, and why', async (t) => {
  t.same(await recorded(well), {
    reason: null,
    conditions: ['Home True Observed', 'Database True Observed', 'Runtime True Observed', 'Route True Observed'],
    kept: [],
  })
  t.same(
    await recorded({ ...well, route: 'silent' }),
    {
      reason: 'the gateway does not answer',
      conditions: [
        'Home True Observed',
        'Database True Observed',
        'Runtime True Observed',
        'Route False GatewayUnreachable',
      ],
      kept: [],
    },
    'a gateway that does not answer says nothing of the home',
  )
  const routes = { RouteMissing: undefined, RouteOutdated: { phase: 'ready', generation: 3 } } as const
  for (const [reason, route] of Object.entries(routes))
    t.equal((await recorded({ ...well, route })).conditions.at(-1), `Route False ${reason}`)
  const unleased = await recorded({ ...well, route: { phase: 'ready', generation: 4, leased: false } })
  t.equal(unleased.conditions.at(-1), 'Route False LeaseMissing')
  t.match(unleased.reason, /^the gateway has no lease/)
  t.same((await recorded({ ...well, health: 'silent' })).conditions, [
    'Home True Observed',
    'Database True Observed',
    'Runtime False RuntimeUnreachable',
    'Route True Observed',
  ])
  const unhealthy: World['health'] = {
    status: 'unhealthy',
    generation: 4,
    components: {} as TenantHealth['components'],
  }
  t.match(await recorded({ ...well, health: unhealthy }), {
    reason: /^the runtime says unhealthy at generation 4/,
    conditions: { 2: 'Runtime False RuntimeUnhealthy' },
  })
})

t.test('what was not looked at is not spoken of', async (t) => {
  const secret = new Error('connect ECONNREFUSED 10.0.0.7:5432')
  t.same(await recorded({ ...well, login: 'fails', prepare: secret }), {
    reason: 'the home could not be brought to the wanted state; it is tried again',
    conditions: ['Home True Observed', 'Database False Error', 'Runtime True Observed', 'Route True Observed'],
    kept: ['Home', 'Runtime', 'Route'],
  })
  t.same(
    await recorded({
      ...well,
      login: 'fails',
      create: new HomeError('the home is damaged', { reason: 'HomeDamaged' }),
    }),
    {
      reason: 'the home is damaged',
      conditions: ['Home False HomeDamaged', 'Database True Observed', 'Runtime True Observed', 'Route True Observed'],
      kept: ['Runtime', 'Route'],
    },
  )
})

t.test('a full disk is no work of the reconciler', async (t) => {
  const snapshot: Partial<Snapshot> = { ...settled, conditions: [disk] }
  const writes: string[] = []
  const store = new Proxy(
    {},
    { get: (_, name) => () => Promise.resolve(void writes.push(String(name))) },
  ) as ReconcileStore
  const deps = { store, clock: systemClock, homeVersion: 'v1', region: { engine: undefined } } as Reconciliation
  t.same(await reconcileTenant(snapshot as Snapshot, deps, new AbortController().signal), {
    again: undefined,
    repaired: false,
  })
  t.same(writes, [])
})
