// Pausing and waking on the reconciler's own store: a wake at any moment of a pause ends with a tenant that runs.
import t from 'tap'
import { createPublishedSource } from '#control-plane/watch/store.ts'
import { createReconcileStore } from '#control-plane/reconcile/store.ts'
import { failpointNames, type Failpoint, type FailpointName } from '#control-plane/reconcile/failpoints.ts'
import type { Region } from '#control-plane/reconcile/region.ts'
import type { RegionProbe } from '#control-plane/reconcile/region-probe.ts'
import { Observations } from '#control-plane/reconcile/observations.ts'
import { reconcileTenant } from '#control-plane/reconcile/tenant-reconciler.ts'
import type { Engine } from '#control-plane/engines/engine.ts'
import { oldImages, startPlane } from '#test/support/control-plane/plane.ts'

const plane = await startPlane(t)
const config = plane.region()
const { signal } = new AbortController()
const store = createReconcileStore(plane.database, plane.seal, plane.clock.now)
const isUnsettled = async (tenantId: string) => (await store.unsettled('home')).some(({ id }) => id === tenantId)
const published = createPublishedSource(
  plane.database,
  plane.seal,
  [config],
  {
    maxUploadBytes: 100_000_000,
    homeLimits: { functions: {}, schemas: {}, events: {}, invocations: {}, realtime: {} },
  },
  plane.clock.now,
)

/** The last state of each stack that the engine received. */
const stacks = new Map<string, 'running' | 'stopped'>()
/** The phases that the gateway received, and whether the stack ran then. */
let shown: string[] = []

const notUsed = () => Promise.reject(new Error('not used here'))
const engine: Pick<Engine, 'converge'> = {
  async converge(stack, _signal, edge) {
    await edge?.('before')
    stacks.set(stack.id, stack.state)
    await edge?.('after')
  },
}
/** A region with what a pause and a wake need. */
const region = {
  config,
  engine: engine as Engine,
  gatewayUrls: () => config.gateway_internal_urls,
  runtimeUrls: () => config.gateway_internal_urls,
  images: async () => oldImages,
  stack: async ({ id, desired }) => ({
    id,
    state: desired === 'active' ? 'running' : 'stopped',
    networks: [],
    volumes: [],
    services: [],
  }),
  ownStack: async () => undefined,
  awaitDatabase: async () => undefined,
  home: () => ({
    prepare: notUsed,
    create: notUsed,
    repair: notUsed,
    migrate: notUsed,
    check: async () => undefined,
    setSqlLogin: notUsed,
    setSqlPassword: notUsed,
    setServicePasswords: notUsed,
    endSessions: notUsed,
    openLogins: notUsed,
    drop: notUsed,
    dropSchema: notUsed,
  }),
} satisfies Partial<Region> as Partial<Region> as Region

const publishedOf = async (id: string) => (await published.some(new Set([id])))[0]
const probe: RegionProbe = {
  async tenantHealth(_url, id) {
    const manifest = (await publishedOf(id))?.manifest
    if (manifest === undefined || stacks.get(id) !== 'running') return undefined
    const component = { status: 'healthy' as const, observed_at: plane.clock.now().toISOString() }
    return {
      tenant_id: id,
      generation: manifest.generation,
      status: 'healthy',
      components: { database: component, storage: component, functions: component },
    }
  },
  async route(_url, id) {
    const route = (await publishedOf(id))?.route
    if (route !== undefined) shown.push(`${route.phase} ${stacks.get(id) ?? ''}`)
    return route
  },
  activity: notUsed,
  tenantUsage: notUsed,
  removeData: notUsed,
}

const reconcile = async (id: string, failpoint: Failpoint = () => undefined) => {
  const snapshot = await store.snapshot(id)
  if (snapshot === undefined) throw new Error(`there is no ${id}`)
  await reconcileTenant(
    snapshot,
    {
      store,
      region,
      homeVersion: 'home',
      probe,
      failpoint,
      clock: plane.clock,
      epoch: plane.epoch,
      observations: new Observations(plane.clock),
      rejectedSubnets: new Map(),
    },
    signal,
  )
}

const runningTenant = async () => {
  const id = await plane.addTenant({ observed_generation: 0 })
  await store.allocateSubnet(id, config.id, 100, plane.epoch)
  await reconcile(id)
  return id
}
const wake = (id: string) => plane.request(id, 'wake', { desired: 'active' })
const operations = async (id: string) =>
  (await plane.sql('select kind, state from operations where tenant_id = $1 order by generation', [id])).map(
    ({ kind, state }) => `${String(kind)} ${String(state)}`,
  )

const asItRuns = { desired: 'active', status: 'ready', route_phase: 'ready' }

t.test('A pause informs the gateway and then stops; a wake starts and then informs the gateway', async (t) => {
  const id = await runningTenant()
  shown = []
  t.ok(await plane.store.pause(id, 1, plane.epoch))
  await reconcile(id)
  t.match(await plane.tenant(id), {
    desired: 'paused',
    status: 'paused',
    route_phase: 'paused',
    generation: 2,
    observed_generation: 2,
  })
  t.same([stacks.get(id), shown.at(-1)], ['stopped', 'paused running'])
  await wake(id)
  shown = []
  await reconcile(id)
  t.match(await plane.tenant(id), { ...asItRuns, generation: 3, observed_generation: 3 })
  t.same([stacks.get(id), shown], ['running', ['ready running']])
  t.same(await operations(id), ['pause succeeded', 'wake succeeded'])
})

const passed: FailpointName[] = []
t.test('A wake at any moment of a pause is not lost', async (t) => {
  const probing = await runningTenant()
  await plane.store.pause(probing, 1, plane.epoch)
  await reconcile(probing, (name) => void passed.push(name))
  t.ok(passed.length >= 8 && passed.every((name) => failpointNames.some((known) => known === name)), 'the moments')
  for (const moment of passed) {
    const id = await runningTenant()
    t.ok(await plane.store.pause(id, 1, plane.epoch))
    await reconcile(id, async (name) => {
      if (name === moment) await wake(id)
    })
    t.match(await plane.tenant(id), { desired: 'active', generation: 3 }, `${moment}: the wake was not lost`)
    t.ok(await isUnsettled(id), `${moment}: work remains`)
    await reconcile(id)
    t.match(await plane.tenant(id), { ...asItRuns, observed_generation: 3 }, `${moment}: it runs`)
    t.same([stacks.get(id), (await operations(id)).at(-1)], ['running', 'wake succeeded'], moment)
    t.notOk(await isUnsettled(id), `${moment}: settled`)
  }
})

t.test('An end of the control plane at any moment of a pause loses nothing', async (t) => {
  for (const moment of passed) {
    const id = await runningTenant()
    await plane.store.pause(id, 1, plane.epoch)
    const ended = await reconcile(id, (name) => {
      if (name === moment) throw new Error('ended')
    }).then(
      () => false,
      () => true,
    )
    t.ok(ended, moment)
    await wake(id)
    await reconcile(id)
    t.match(
      { ...(await plane.tenant(id)), stack: stacks.get(id) },
      { ...asItRuns, stack: 'running' },
      `${moment}: woken`,
    )
    await plane.store.pause(id, 3, plane.epoch)
    await reconcile(id)
    t.match(
      { ...(await plane.tenant(id)), stack: stacks.get(id) },
      { status: 'paused', route_phase: 'paused', stack: 'stopped' },
      `${moment}: and paused again`,
    )
  }
})
