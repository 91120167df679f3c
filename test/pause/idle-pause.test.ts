// Pausing of idle tenants on a real control database: which tenants, when, and which not.
import t from 'tap'
import type { Activity } from '@tenantry/contract'
import { createIdlePause } from '#control-plane/pause/jobs.ts'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import { isRejected, startPlane } from '#test/support/control-plane/plane.ts'

const plane = await startPlane(t)
const { signal } = new AbortController()

/** Creates a watch with the activity of the region's gateways by URL; undefined stands for one that does not respond. */
const watch = (reported: Record<string, Activity | undefined>, pauseAfter?: number) => {
  const config: RegionConfig = {
    ...plane.region(pauseAfter === undefined ? {} : { pause_after_seconds: pauseAfter }),
    gateway_internal_urls: Object.keys(reported),
  }
  let requests = 0
  const probe = {
    async activity(url: string) {
      requests++
      const activity = reported[url]
      if (activity === undefined) throw new Error('no response')
      return activity
    },
  }
  const { poll } = createIdlePause({ config }, { ...plane, regions: new Map(), probe }, plane.epoch)
  return { poll: () => poll(signal), requests: () => requests }
}

const seen = (id: string, open = 0) => ({ [id]: { last_request_at: plane.clock.now().toISOString(), open } })
const started = plane.clock.now().toISOString()
const reports = (tenants: Activity['tenants'], since = started): Activity => ({ since, tenants })
const quiet = (): Record<string, Activity> => ({ 'http://a': reports({}), 'http://b': reports({}) })
const desired = async (id: string) => (await plane.tenant(id))['desired']

t.beforeEach(() => plane.nextRegion())

t.test('An idle tenant is paused with an operation, in one step', async (t) => {
  const id = await plane.addTenant()
  const reported = quiet()
  const { poll } = watch(reported, 60)
  await poll()
  reported['http://b'] = reports(seen(id))
  plane.clock.pass(59)
  await poll()
  t.same(await desired(id), 'active', 'the last request is 59 s old')
  plane.clock.pass(1)
  await poll()
  t.match(await plane.tenant(id), {
    desired: 'paused',
    status: 'ready',
    generation: 2,
    observed_generation: 1,
    updated_at: plane.clock.now(),
  })
  t.match(await plane.sql('select kind, state, generation from operations where tenant_id = $1', [id]), [
    { kind: 'pause', state: 'pending', generation: 2 },
  ])
  await poll()
  t.match(await plane.tenant(id), { generation: 2 }, 'only once')
})

t.test('The time of a tenant takes precedence over that of its region, and 0 means never', async (t) => {
  const [early, never, late] = [
    await plane.addTenant({ pause_after_seconds: 20 }),
    await plane.addTenant({ pause_after_seconds: 0 }),
    await plane.addTenant(),
  ]
  const { poll } = watch(quiet(), 60)
  await poll()
  plane.clock.pass(20)
  await poll()
  t.same([await desired(early), await desired(never), await desired(late)], ['paused', 'active', 'active'])
  plane.clock.pass(1000)
  await poll()
  t.same([await desired(early), await desired(never), await desired(late)], ['paused', 'active', 'paused'])
})

t.test('Only running tenants with their own stack and no operation in progress are paused', async (t) => {
  const [shared] = await plane.sql(
    "insert into shared_databases (id, region_id, name, capacity) values ($1, $1, 'homes', 10) returning id",
    [plane.region().id],
  )
  const others = [
    await plane.addTenant({ isolation: 'schema-per-tenant', shared_database_id: shared?.['id'] }),
    await plane.addTenant({ status: 'failed' }),
    await plane.addTenant({ status: 'pending', observed_generation: 0 }),
    await plane.addTenant({ desired: 'suspended', status: 'suspended' }),
    await plane.addTenant({ desired: 'warm', status: 'warm' }),
    await plane.addTenant({ desired: 'deleted', status: 'deleting', purge_after: plane.clock.now() }),
  ]
  const busy = await plane.addTenant()
  await plane.sql(
    "insert into operations (id, tenant_id, kind, state, generation) values (gen_random_uuid(), $1, 'backup', 'running', 1)",
    [busy],
  )
  const idle = await plane.addTenant()
  const { poll } = watch(quiet(), 10)
  await poll()
  plane.clock.pass(10)
  await poll()
  t.same(await plane.sql("select id from tenants where region_id = $1 and desired = 'paused'", [plane.region().id]), [
    { id: idle },
  ])
  t.same(await plane.sql('select generation from tenants where id = any($1) group by 1', [[...others, busy]]), [
    { generation: 1 },
  ])
})

t.test(
  'Unknown is not idle: while a gateway does not respond no tenant is paused, and its activity is discarded',
  async (t) => {
    const id = await plane.addTenant()
    const reported: Record<string, Activity | undefined> = quiet()
    const { poll } = watch(reported, 30)
    await poll()
    reported['http://b'] = undefined
    plane.clock.pass(100)
    await poll()
    t.same(await desired(id), 'active')
    reported['http://b'] = reports({})
    await poll()
    plane.clock.pass(29)
    await poll()
    t.same(await desired(id), 'active', 'the time counts from its first response')
    plane.clock.pass(1)
    await poll()
    t.same(await desired(id), 'paused')
  },
)

t.test('After a restart of the control plane or of a gateway, the time counts from the first response', async (t) => {
  const id = await plane.addTenant()
  plane.clock.pass(1000)
  const reported = quiet()
  const { poll } = watch(reported, 30)
  await poll()
  t.same(await desired(id), 'active', 'nothing is known yet')
  reported['http://a'] = reports(seen(id))
  plane.clock.pass(10)
  await poll()
  // The gateway starts again, right after another request that the control plane does not know.
  reported['http://a'] = reports({})
  plane.clock.pass(10)
  await poll()
  plane.clock.pass(29)
  await poll()
  t.same(await desired(id), 'active')
  plane.clock.pass(1)
  await poll()
  t.same(await desired(id), 'paused')
})

t.test('An unnoticed restart of a gateway counts too, since requests before it are unknown', async (t) => {
  const id = await plane.addTenant()
  const reported = quiet()
  const { poll } = watch(reported, 30)
  await poll()
  plane.clock.pass(20)
  // A request and a restart between two polls.
  reported['http://a'] = reports({}, plane.clock.now().toISOString())
  plane.clock.pass(29)
  await poll()
  t.same(await desired(id), 'active')
  plane.clock.pass(1)
  await poll()
  t.same(await desired(id), 'paused')
})

t.test('A tenant that was just woken or changed stays for its time', async (t) => {
  const id = await plane.addTenant()
  const { poll } = watch(quiet(), 30)
  await poll()
  plane.clock.pass(40)
  await poll()
  await plane.settle()
  t.same(await desired(id), 'paused')
  plane.clock.pass(100)
  await plane.request(id, 'wake', { desired: 'active' })
  await plane.settle()
  await poll()
  t.match(await plane.tenant(id), { desired: 'active', status: 'ready' })
  plane.clock.pass(30)
  await poll()
  t.same(await desired(id), 'paused')
})

t.test('A change in the meantime wins', async (t) => {
  const id = await plane.addTenant()
  await plane.request(id, 'update', {})
  t.equal(await plane.store.pause(id, 1, plane.epoch), false, 'of a newer generation')
  t.equal(await plane.store.pause(id, 2, plane.epoch), false, 'while an operation is in progress')
  await plane.settle()
  t.equal(await plane.store.pause(id, 1, plane.epoch), false, 'of an older generation')
  t.match(await plane.tenant(id), { desired: 'active', generation: 2 })
  const responses = await Promise.all([plane.store.pause(id, 2, plane.epoch), plane.store.pause(id, 2, plane.epoch)])
  t.same(responses.toSorted(), [false, true], 'of two at once one succeeds')
  t.match(await plane.tenant(id), { desired: 'paused', generation: 3 })
})

t.test('Gateways are polled only where tenants may be paused, as often as the shortest time needs', async (t) => {
  await plane.addTenant()
  const without = watch(quiet())
  t.equal(await without.poll(), 5_000)
  t.equal(without.requests(), 0)
  t.equal(await watch(quiet(), 60).poll(), 5_000)
  t.equal(await watch(quiet(), 10).poll(), 2_500)
  t.equal(await watch(quiet(), 1).poll(), 1_000)
})

t.test('A control plane that no longer leads pauses no tenant', async (t) => {
  const id = await plane.addTenant()
  const { poll } = watch(quiet(), 10)
  await poll()
  plane.clock.pass(10)
  await plane.changeLeader()
  t.ok(await isRejected(poll()))
  t.same(await desired(id), 'active')
  plane.epoch += 1n
})
