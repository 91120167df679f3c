// The controller in simulated time: when a tenant is marked failed, that other tenants are served while many fail, and that a new
// request interrupts an outdated run.
import t from 'tap'
import type { TenantHealth } from '@tenantry/contract'
import { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import type { HomeServer } from '#control-plane/homes/home-server.ts'
import { HomeError } from '#control-plane/homes/home-report.ts'
import { EngineError, type Engine } from '#control-plane/engines/index.ts'
import { control } from '#control-plane/reconcile/controller.ts'
import { noFailpoints } from '#control-plane/reconcile/failpoints.ts'
import { createRegionConditions } from '#control-plane/reconcile/region-conditions.ts'
import type { RegionProbe } from '#control-plane/reconcile/region-probe.ts'
import { createRegion, type Region } from '#control-plane/reconcile/region.ts'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { createControlDatabase } from '#test/simulation/control-database.ts'
import { beginning, createControlPlane, noCallFaults } from '#test/simulation/control-plane.ts'
import { createInvariants } from '#test/simulation/invariants.ts'
import { createScheduler } from '#test/simulation/scheduler.ts'
import { createSimulatedStore } from '#test/simulation/simulated-store.ts'

const config: RegionConfig = {
  id: 'local',
  engine: 'process',
  domain: 'localhost',
  gateway_url: 'http://127.0.0.1:4401',
  postgres_url: 'postgresql://nowhere.invalid/postgres',
  runtime_urls: ['http://runtime'],
  gateway_internal_urls: ['http://gateway'],
  database_host: 'nowhere.invalid',
  docker: undefined,
  superuserPassword: '',
}
/** The ID of a second region. */
const other = 'other'
const sizes = { postgres: { memoryBytes: 1, cpuMillis: 1 }, runtime: { memoryBytes: 1, cpuMillis: 1 } }

/**
 * Starts a controller for a region without an engine, or with one that has no containers. `home` is the result of all work in
 * homes, `complaint` the runtime's error.
 */
function startController({ concurrency = 4, hasEngine = false } = {}) {
  const scheduler = createScheduler()
  const chance = chanceOf(1)
  const now = () => new Date(beginning + scheduler.now())
  const database = createControlDatabase(now)
  database.state.epoch = 1n
  const caller = createControlPlane({
    name: 'cp',
    epoch: 1n,
    scheduler,
    chance,
    faults: () => noCallFaults,
    leads: () => true,
    died: () => undefined,
  })
  const invariants = createInvariants({
    installation: 'i',
    database,
    unknown: new Set(),
    now,
    breach: () => undefined,
    dockers: () => [],
  })
  const world: {
    home: (tenantId: string) => Promise<void>
    complaint: string | undefined
    isEngineDown: boolean
    /** Whether the controller only receives that it may have missed changes. */
    hasGap: boolean
  } = {
    hasGap: false,
    home: () => Promise.resolve(),
    complaint: undefined,
    isEngineDown: false,
  }
  const engine: Partial<Engine> = {
    async observe() {
      if (world.isEngineDown) throw new EngineError('ENGINE_UNREACHABLE', 'the engine is down')
      return { containers: [], networks: [], volumes: [], unlabelledVolumes: [] }
    },
    // eslint-disable-next-line require-yield -- nothing happens to its containers
    async *events(signal) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  }
  const homeOf = (tenantId: string): HomeServer => ({
    prepare: async (created) => created(),
    migrate: async () => ({ lost: [] }),
    setSqlLogin: async () => undefined,
    setSqlPassword: async () => undefined,
    setServicePasswords: async () => undefined,
    endSessions: async () => undefined,
    openLogins: async () => undefined,
    drop: async () => undefined,
    dropSchema: async () => undefined,
    check: () => world.home(tenantId),
    async create() {
      await world.home(tenantId)
      return 'whole'
    },
    async repair() {
      await world.home(tenantId)
      return 'to be migrated'
    },
  })
  const region: Region = {
    ...createRegion({
      config,
      engine: undefined,
      homes: new HomeDatabases(config.postgres_url, []),
      migrations: [],
      maxObjects: 2_000,
      internalToken: 'internal',
      clock: caller.clock,
    }),
    home: ({ id }) => homeOf(id),
    ...(hasEngine ? { engine: engine as Engine } : {}),
  }
  const probe: RegionProbe = {
    async tenantHealth(_url, tenantId): Promise<TenantHealth | undefined> {
      const published = database.published(tenantId)
      if (published?.hasManifest !== true) return undefined
      const well = { status: 'healthy', observed_at: now().toISOString() } as const
      const storage =
        world.complaint === undefined ? well : { ...well, status: 'unhealthy' as const, message: world.complaint }
      return {
        tenant_id: tenantId,
        generation: published.generation,
        status: storage.status,
        components: { database: well, storage, functions: well },
      }
    },
    tenantUsage: async () => undefined,
    async route(_url, tenantId) {
      const published = database.published(tenantId)
      return published === undefined
        ? undefined
        : {
            tenant_id: tenantId,
            name: tenantId,
            generation: published.generation,
            phase: published.phase,
            runtimes: [],
            dedicated: false,
          }
    },
    activity: async () => ({ since: now().toISOString(), tenants: {} }),
    removeData: async () => undefined,
  }
  const lost = new AbortController()
  const ended = control(
    {
      store: createSimulatedStore({ database, caller, invariants, now, checksEpoch: true }),
      regions: new Map([
        [config.id, region],
        [other, { ...region, config: { ...config, id: other } }],
      ]),
      homeVersion: 'v1',
      conditions: createRegionConditions(caller.clock),
      probe,
      concurrency,
      changes: {
        subscribe: (listener) =>
          database.listen((change) => scheduler.after(1, () => listener(world.hasGap ? 'resync' : change))),
      },
      failpoint: noFailpoints,
      clock: caller.clock,
      random: () => chance.next(),
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      measure: { reconciled: () => undefined, swept: () => undefined, queue: () => undefined },
      orphanGraceSeconds: 30,
      housekeeping: [],
    },
    { epoch: 1n, lost: lost.signal },
  )
  /** Runs the simulation until `seconds` have passed. */
  const until = (seconds: number) => {
    scheduler.after(seconds * 1000 - scheduler.now(), () => undefined)
    return scheduler.run(() => scheduler.now() >= seconds * 1000)
  }
  return {
    world,
    database,
    until,
    sleep: (seconds: number) => caller.clock.sleep(seconds * 1000),
    create: (id: string, regionId = config.id) =>
      database.create({ id, regionId, isolation: 'schema-per-tenant', desired: 'active', sizes }),
    row: (id: string) => database.tenants.get(id),
    attempts: () => [...database.operations.values()].at(-1)?.attempts ?? 0,
    async stop() {
      lost.abort()
      let hasEnded = false
      void ended.then(() => (hasEnded = true))
      await scheduler.run(() => hasEnded)
    },
  }
}

t.test('A tenant is marked failed after three failures over at least half a minute', async (t) => {
  const { world, database, create, row, attempts, until, stop } = startController()
  create('a')
  await until(1)
  t.match(row('a'), { status: 'ready', reason: null })
  world.home = () => Promise.reject(new HomeError('the home does not respond'))
  database.requestChange('a', 'update', {})
  await until(29)
  t.match(row('a'), { status: 'ready', reason: 'the home does not respond' }, 'the reason is reported at once')
  t.ok(attempts() > 3)
  await until(33)
  t.match(row('a'), { status: 'failed', reason: 'the home does not respond' })
  world.home = () => Promise.resolve()
  await until(90)
  t.match(row('a'), { status: 'ready', reason: null, observedGeneration: 2 })
  await stop()
})

t.test('A success resets the count of failures', async (t) => {
  const { world, database, create, row, until, stop } = startController()
  create('a')
  for (const second of [1, 41, 81]) {
    await until(second)
    world.home = () => Promise.reject(new HomeError('the home does not respond'))
    database.requestChange('a', 'update', {})
    await until(second + 10)
    t.match(row('a'), { status: 'ready', reason: 'the home does not respond' })
    world.home = () => Promise.resolve()
  }
  await stop()
})

t.test('While many tenants fail slowly, the others are served', async (t) => {
  const { world, create, row, until, sleep, stop } = startController({ concurrency: 4 })
  world.home = async (id) => {
    if (!id.startsWith('bad')) return
    await sleep(20)
    throw new HomeError('the home does not respond')
  }
  const bad = Array.from({ length: 12 }, (_, number) => `bad${number}`)
  for (const id of bad) create(id)
  await until(400)
  t.same(
    bad.map((id) => row(id)?.status),
    bad.map(() => 'failed'),
  )
  for (let number = 0; number < 20; number++) {
    create(`good${number}`)
    await until(401 + number)
    t.match(row(`good${number}`), { status: 'ready' }, 'within a second')
  }
  world.home = () => Promise.resolve()
  await until(520)
  t.same(
    bad.map((id) => row(id)?.status),
    bad.map(() => 'ready'),
    'the tenants that failed recover',
  )
  await stop()
})

t.test('While all homes of a region hang, tenants of the others are served', async (t) => {
  const { world, database, create, row, until, sleep, stop } = startController({ concurrency: 4 })
  const hour = 3_600
  world.home = async (id) => {
    if (id.startsWith('bad')) await sleep(hour)
  }
  const bad = Array.from({ length: 20 }, (_, number) => `bad${number}`)
  for (const id of bad) create(id, other)
  await until(10)
  for (let number = 0; number < 10; number++) {
    create(`good${number}`)
    await until(11 + number)
    t.match(row(`good${number}`), { status: 'ready' }, 'within a second')
  }
  database.requestChange('good0', 'update', {})
  await until(30)
  t.match(row('good0'), { status: 'ready', observedGeneration: 2 }, 'changes, too')
  t.same(
    bad.map((id) => row(id)?.status),
    bad.map(() => 'pending'),
  )
  world.home = () => Promise.resolve()
  await until(hour + 60)
  t.same(
    bad.map((id) => row(id)?.status),
    bad.map(() => 'ready'),
    'the tenants of the region follow when it responds',
  )
  await stop()
})

for (const hasGap of [false, true])
  t.test(
    `A new request interrupts the run of an older one without a failure${hasGap ? ', also if its notification was missed' : ''}`,
    async (t) => {
      const { world, database, create, row, until, stop } = startController()
      world.hasGap = hasGap
      world.complaint = 'no store'
      create('a')
      await until(2)
      t.match(row('a'), { status: 'pending', reason: null }, 'the controller waits for the runtime')
      database.requestChange('a', 'delete', { desired: 'deleted', status: 'deleting', purgeAfter: new Date(beginning) })
      await until(3)
      t.equal(row('a'), undefined, 'the tenant is removed before the wait for the runtime times out')
      t.match(
        [...database.operations.values()],
        [
          { kind: 'create', state: 'superseded', error: null, attempts: 1 },
          { kind: 'delete', state: 'succeeded', error: null, attempts: 1 },
        ],
      )
      await stop()
    },
  )

t.test('A run that waits begins again when the engine is reachable again', async (t) => {
  const { world, create, row, attempts, until, stop } = startController({ hasEngine: true })
  world.isEngineDown = true
  await until(35)
  world.complaint = 'no store'
  create('a')
  await until(39)
  t.equal(attempts(), 1)
  world.isEngineDown = false
  // The next sweep is after 40 seconds.
  await until(41)
  t.equal(attempts(), 2, 'before the wait for the runtime times out')
  t.match(row('a'), { status: 'pending', reason: null }, 'without a failure')
  world.complaint = undefined
  await until(43)
  t.match(row('a'), { status: 'ready', reason: null })
  await stop()
})

for (const hasGap of [false, true])
  t.test(`A late or repeated notification of ${hasGap ? 'a gap' : 'a change'} interrupts nothing`, async (t) => {
    const { world, database, create, row, attempts, until, stop } = startController()
    world.hasGap = hasGap
    world.complaint = 'no store'
    create('a')
    for (const second of [1, 2, 3]) {
      await until(second)
      database.report({ kind: 'wanted', subject: 'a' })
    }
    await until(9)
    t.equal(attempts(), 1)
    world.complaint = undefined
    await until(11)
    t.match(row('a'), { status: 'ready', reason: null })
    await stop()
  })

t.test("The reason contains the runtime's error, shortened and without control characters", async (t) => {
  const { world, create, row, until, stop } = startController()
  world.complaint = `the store is gone\n\u001b[31m${'x'.repeat(400)}`
  create('a')
  await until(12)
  const reason = row('a')?.reason ?? ''
  t.match(reason, /^The runtime reports unhealthy at generation 1: storage: the store is gone \[31mx+…\.$/)
  t.ok(reason.length <= 248)
  await stop()
})
