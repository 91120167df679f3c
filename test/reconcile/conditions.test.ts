// The conditions that the reconciler reports for a tenant, and those of other writers, which it leaves unchanged.
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

/** A tenant that was last observed in its desired state. */
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

t.test('A part that was not observed keeps its condition with its time', (t) => {
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
  /** Error of the preparation of the database; `create` is the error of the creation of the home. */
  prepare?: Error
  create?: Error
}

/** Reconciles a shared tenant, last observed an hour ago. @returns what is recorded; `unchanged` lists conditions from before */
async function recorded(world: World): Promise<{ reason: string | null; conditions: string[]; unchanged: string[] }> {
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
  const respond = <T>(body: T | 'silent') =>
    body === 'silent' ? Promise.reject(new Error('connection refused')) : Promise.resolve(body)
  const failing = (error: Error | undefined) => (error === undefined ? Promise.resolve('made') : Promise.reject(error))
  const run = {
    store,
    clock,
    homeVersion: 'v1',
    failpoint: noFailpoints,
    epoch: 1n,
    probe: { tenantHealth: () => respond(world.health), route: () => respond(world.route) },
    region: {
      engine: undefined,
      runtimeUrls: () => ['http://runtime'],
      gatewayUrls: () => ['http://gateway'],
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
    unchanged: before.filter((one) => conditions.includes(one)).map(({ type }) => type),
  }
}

const well: World = {
  health: { status: 'healthy', generation: 4, components: {} as TenantHealth['components'] },
  route: { phase: 'ready', generation: 4, leased: true },
  login: 'works',
}

t.test('Each condition reports the observed state of its own part with a reason', async (t) => {
  t.same(await recorded(well), {
    reason: null,
    conditions: ['Home True Observed', 'Database True Observed', 'Runtime True Observed', 'Route True Observed'],
    unchanged: [],
  })
  t.same(
    await recorded({ ...well, route: 'silent' }),
    {
      reason: 'The gateway does not respond.',
      conditions: [
        'Home True Observed',
        'Database True Observed',
        'Runtime True Observed',
        'Route False GatewayUnreachable',
      ],
      unchanged: [],
    },
    'an unreachable gateway does not change the condition of the home',
  )
  const routes = { RouteMissing: undefined, RouteOutdated: { phase: 'ready', generation: 3 } } as const
  for (const [reason, route] of Object.entries(routes))
    t.equal((await recorded({ ...well, route })).conditions.at(-1), `Route False ${reason}`)
  const unleased = await recorded({ ...well, route: { phase: 'ready', generation: 4, leased: false } })
  t.equal(unleased.conditions.at(-1), 'Route False LeaseMissing')
  t.match(unleased.reason, /^The gateway has no lease/)
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
    reason: /^The runtime reports unhealthy at generation 4/,
    conditions: { 2: 'Runtime False RuntimeUnhealthy' },
  })
})

t.test('A failure changes only the conditions of observed parts', async (t) => {
  const secret = new Error('connect ECONNREFUSED 10.0.0.7:5432')
  t.same(await recorded({ ...well, login: 'fails', prepare: secret }), {
    reason: 'The home could not be brought to its specified state. The work is retried.',
    conditions: ['Home True Observed', 'Database False Error', 'Runtime True Observed', 'Route True Observed'],
    unchanged: ['Home', 'Runtime', 'Route'],
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
      unchanged: ['Runtime', 'Route'],
    },
  )
})

t.test('The reconciler does nothing about a full disk', async (t) => {
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
