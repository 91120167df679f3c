// The condition of a region: its last observed state with a public message, and none when no control plane observes it.
import t from 'tap'
import type { Engine } from '#control-plane/engines/engine.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import { createMetrics } from '#control-plane/metrics.ts'
import { noFailpoints } from '#control-plane/reconcile/failpoints.ts'
import { createRegionConditions } from '#control-plane/reconcile/region-conditions.ts'
import { createRegionLoop } from '#control-plane/reconcile/region-loop.ts'
import type { ReconcileStore } from '#control-plane/reconcile/reconcile-store.ts'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import type { Region } from '#control-plane/reconcile/region.ts'
import type { Stack } from '#control-plane/stacks/stack.ts'
import { stoppedClock } from '#test/support/control-plane/clock.ts'

const stack: Stack = {
  id: 'region-r',
  state: 'running',
  networks: [],
  volumes: [{ name: 'data', mustExist: false, isGuarded: false }],
  services: [],
}
const fails = (error: Error) => () => Promise.reject(error)

function startLoop() {
  const clock = stoppedClock()
  const conditions = createRegionConditions(clock)
  const stop = new AbortController()
  const events = { recoveries: 0 }
  const warnings: object[] = []
  const volumes = [{ name: 'tenantry-region-r-data', labels: { installation: 'i', stack: 'region-r' } }]
  const engine: {
    observe(): Promise<object>
    converge(stack: Stack): Promise<void>
    repair(stack: Stack): Promise<void>
  } = {
    observe: () => Promise.resolve({ containers: [], networks: [], volumes, unlabelledVolumes: [] }),
    converge: () => Promise.resolve(),
    repair: () => Promise.resolve(),
  }
  const region: Pick<Region, 'stackId' | 'replaceEtcdMember'> & { config: { id: string }; ownStack(): Promise<Stack> } =
    {
      stackId: 'region-r',
      config: { id: 'r' },
      ownStack: () => Promise.resolve(stack),
      replaceEtcdMember: () => Promise.resolve(),
    }
  const store: Partial<ReconcileStore> = {
    hasHomes: () => Promise.resolve(false),
    mayHoldHomes: () => Promise.resolve(false),
    hasClusters: () => Promise.resolve(false),
    settledDedicated: () => Promise.resolve([]),
    tenantIds: () => Promise.resolve(new Set()),
    confirmLead: () => Promise.resolve(),
    deletedTenants: () => Promise.resolve(new Set()),
  }
  const loop = createRegionLoop(
    {
      region: region as unknown as Region,
      engine: engine as unknown as Engine,
      store: store as ReconcileStore,
      failpoint: noFailpoints,
      clock,
      epoch: 1n,
      orphanGraceSeconds: 1,
      regionStacks: ['region-r'],
      wake: () => undefined,
      recovered: () => {
        events.recoveries++
      },
      conditions,
      measure: () => undefined,
      log: { info: () => undefined, warn: (about: object) => void warnings.push(about) },
    },
    stop.signal,
  )
  return { clock, conditions, engine, region, volumes, loop, events, warnings, stop: () => stop.abort() }
}

t.test('A converged region is ready, with the time of the last observation', async (t) => {
  const { clock, conditions, loop } = startLoop()
  t.equal(conditions.all().get('r'), undefined)
  await loop.sweep()
  t.same(conditions.all().get('r'), {
    type: 'Ready',
    status: 'True',
    reason: 'Observed',
    message: '',
    observed_at: clock.now().toISOString(),
  })
  const before = clock.now()
  clock.pass(20)
  await loop.sweep()
  t.not(conditions.all().get('r')?.observed_at, before.toISOString())
})

t.test('An error is reported with its reason and cleared when it has passed', async (t) => {
  const { conditions, engine, region, volumes, loop } = startLoop()
  const well = { ...engine, ...region }
  const errors: [what: string, plant: () => void, expected: object][] = [
    [
      'no engine',
      () => (engine.observe = fails(new EngineError('ENGINE_UNREACHABLE', 'the Docker Engine cannot be reached'))),
      { reason: 'EngineUnreachable', message: 'the Docker Engine cannot be reached' },
    ],
    [
      'an old engine',
      () => (engine.observe = fails(new EngineError('ENGINE_TOO_OLD', 'too old'))),
      { reason: 'EngineTooOld', message: 'too old' },
    ],
    [
      'no image',
      () => (region.ownStack = fails(new EngineError('IMAGE_MISSING', 'the image "x" is not there'))),
      { reason: 'ImageMissing', message: 'the image "x" is not there' },
    ],
    [
      'a driver error with an address',
      () => (engine.observe = fails(new Error('connect ECONNREFUSED 10.1.2.3'))),
      { reason: 'Error', message: 'The region could not be observed. The sweep is retried.' },
    ],
    [
      'services that cannot be created',
      () => {
        volumes.length = 0
        engine.converge = fails(new EngineError('DISK_FULL', 'its disk is full'))
      },
      { reason: 'DiskFull', message: 'its disk is full' },
    ],
    [
      'a lost data volume',
      () => {
        volumes.length = 0
        region.ownStack = () =>
          Promise.resolve({ ...stack, volumes: [{ name: 'data', mustExist: true, isGuarded: false }] })
      },
      { reason: 'VolumeMissing', message: 'Volumes of the region that held data are gone: data.' },
    ],
  ]
  const volume = { name: 'tenantry-region-r-data', labels: { installation: 'i', stack: 'region-r' } }
  for (const [what, plant, expected] of errors) {
    plant()
    await loop.sweep()
    t.match(conditions.all().get('r'), { status: 'False', ...expected }, what)
    engine.observe = well.observe
    engine.converge = well.converge
    region.ownStack = well.ownStack
    volumes.splice(0, volumes.length, volume)
    await loop.sweep()
    t.match(conditions.all().get('r'), { status: 'True' }, `after ${what}`)
  }
})

t.test('A volume of etcd is created empty once the other members have replaced its member', async (t) => {
  const { conditions, engine, region, volumes, loop } = startLoop()
  const etcd = { name: 'etcd-2', mustExist: true, isGuarded: false }
  region.ownStack = () => Promise.resolve({ ...stack, volumes: [...stack.volumes, etcd] })
  const created: Stack[] = []
  engine.repair = async (one) => {
    created.push(one)
    volumes.push({ name: 'tenantry-region-r-etcd-2', labels: { installation: 'i', stack: 'region-r' } })
  }
  region.replaceEtcdMember = fails(new EngineError('UNHEALTHY', "The region's etcd does not accept changes."))
  await loop.sweep()
  const message = 'Volumes of the region that held data are gone: etcd-2.'
  t.match(conditions.all().get('r'), { status: 'False', reason: 'VolumeMissing', message })
  t.same(created, [], 'no volume was created')
  const replaced: string[] = []
  region.replaceEtcdMember = async (name) => void replaced.push(name)
  await loop.sweep()
  t.match(conditions.all().get('r'), { status: 'True' })
  t.same(replaced, ['etcd-2'])
  t.match(created, [{ volumes: [{ name: 'data' }, { name: 'etcd-2', mustExist: false }] }])
})

t.test('The recovery of an engine is reported once, and only after an outage', async (t) => {
  const { engine, loop, events } = startLoop()
  const well = engine.observe
  await loop.sweep()
  t.equal(events.recoveries, 0)
  engine.observe = fails(new EngineError('ENGINE_UNREACHABLE', 'the Docker Engine cannot be reached'))
  await loop.sweep()
  await loop.sweep()
  t.equal(events.recoveries, 0)
  engine.observe = well
  await loop.sweep()
  await loop.sweep()
  t.equal(events.recoveries, 1)
})

t.test('A call that never ends ends its sweep only', async (t) => {
  const { clock, conditions, engine, region, loop, warnings } = startLoop()
  const { observe } = engine
  const { ownStack } = region
  engine.observe = () => new Promise<object>(() => undefined)
  const first = loop.sweep()
  clock.pass(60)
  t.same(warnings, [{ region: 'r', step: 'observe the hosts', seconds: 60 }], 'the log shows where it waits')
  clock.pass(540)
  await first
  t.match(conditions.all().get('r'), {
    status: 'False',
    message: 'The region could not be observed. The sweep is retried.',
  })
  engine.observe = observe
  await loop.sweep()
  t.match(conditions.all().get('r'), { status: 'True' })

  region.ownStack = () => new Promise<Stack>(() => undefined)
  const second = loop.sweep()
  // The sweep reaches the call.
  await new Promise((resolve) => setImmediate(resolve))
  warnings.length = 0
  clock.pass(300)
  await second
  t.match(warnings[0], { step: 'read the specification of its own services', seconds: 60 })
  t.match(conditions.all().get('r'), { status: 'False' })
  region.ownStack = ownStack
  await loop.sweep()
  t.match(conditions.all().get('r'), { status: 'True' })
})

t.test('A control plane that lost the lead reports nothing', async (t) => {
  const { conditions, engine, volumes, loop, stop } = startLoop()
  volumes.length = 0
  engine.converge = fails(new LeadershipLost('another leads'))
  await loop.sweep()
  t.equal(conditions.all().get('r'), undefined)
  stop()
  engine.observe = fails(new Error('stopped'))
  await loop.sweep()
  t.equal(conditions.all().get('r'), undefined)
})

t.test('The metrics contain each observed region', async (t) => {
  const { conditions, loop } = startLoop()
  const metrics = createMetrics(conditions, () => new Date())
  const reported = async () =>
    (await metrics.text()).split('\n').filter((line) => line.startsWith('tenantry_region_ready'))
  t.same(await reported(), [])
  await loop.sweep()
  conditions.failed('other', new Error('x'), 'words')
  t.same(await reported(), ['tenantry_region_ready{region="r"} 1', 'tenantry_region_ready{region="other"} 0'])
  conditions.evict()
  t.same(await reported(), [])
})
