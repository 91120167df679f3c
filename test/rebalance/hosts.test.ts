// A rebalance over the hosts of a region: services of clusters move to a host that was added, the primaries are spread, and a control
// plane that leads next continues it.
import t, { type Test } from 'tap'
import type { FailpointName } from '#control-plane/reconcile/failpoints.ts'
import { startApi, type TestApi, type TestApiOptions, type TestController } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'

interface Step {
  tenant_id: string
  service: string
  from: string
  to: string
  from_host: string
  to_host: string
  state: string
  operation_id: string | null
  error: string | null
}
interface Rebalance {
  id: string
  state: string
  moves: object[]
  service_moves: Step[]
  switchovers: Step[]
  hosts_after: { id: string; memory_bytes: number; free_bytes: number; services: number; primaries: number }[]
  finished: string | null
}

const region = '/v1/regions/cloud'
const hostBytes = 10 * 2 ** 30
const hosts = ['a', 'b', 'c', 'd'].map((id) => ({ id, bytes: hostBytes }))

/** Starts a region whose host `d` received nothing while its clusters were created, and whose primaries are all on host `a`. */
async function startRegion(t: Parameters<typeof startApi>[0], options: TestApiOptions = {}) {
  const api = await startApi(t, { cloud: { hosts }, control: false, jobs: true, ...options })
  const controller = api.startController()
  await api.call('POST', `${region}/hosts/d/drain`)
  const ids: string[] = []
  for (const name of ['ada', 'ben', 'cem']) {
    const tenant = await api.create(name, { plan: 'Pro', region: 'cloud', isolation: 'cluster-per-tenant' })
    ids.push(tenant.tenant_id)
    const placement = await placementOf(api, tenant.tenant_id)
    const primary = ['postgres-1', 'postgres-2', 'postgres-3'].find((member) => placement[member] === 'a') ?? ''
    api.engine.primaries.set(tenant.tenant_id, primary)
  }
  await api.call('POST', `${region}/hosts/d/activate`)
  return { api, controller, ids }
}

async function placementOf(api: TestApi, id: string): Promise<Readonly<Record<string, string>>> {
  return (await api.reconcileStore.snapshot(id))?.placement ?? {}
}

const post = async (api: TestApi, body: object) =>
  (await api.call('POST', `${region}/rebalance`, { body })).body as Rebalance
const read = async (api: TestApi, id: string) => (await api.call('GET', `${region}/rebalances/${id}`)).body as Rebalance
const ended = async (api: TestApi, id: string) => {
  await until(async () => (await read(api, id)).finished !== null, 'the end of the rebalance')
  return read(api, id)
}
const statesOf = (steps: readonly Step[]) => steps.map(({ state }) => state)

/** Checks that all of a rebalance was carried out, and that it is where the engine runs it. */
async function checkDone(t: Test, api: TestApi, { service_moves: moves, switchovers }: Rebalance): Promise<void> {
  t.ok(moves.length > 0 && switchovers.length > 0)
  t.same(new Set(statesOf([...moves, ...switchovers])), new Set(['moved']))
  for (const { tenant_id: id, service, to } of moves) {
    t.equal((await placementOf(api, id))[service], to)
    const containers = api.engine.stacks.get(id)?.containers ?? []
    t.equal(containers.find(({ labels }) => labels.service === service)?.host, to, `${service} runs there`)
  }
  for (const { tenant_id: id, to, to_host: host } of switchovers) {
    t.equal(api.engine.primaries.get(id), to)
    t.equal((await placementOf(api, id))[to], host)
  }
  for (const { tenant_id: id } of moves) {
    t.match(await api.tenant(id), { status: 'ready' })
    const placement = await placementOf(api, id)
    t.equal(new Set([1, 2, 3].map((number) => placement[`postgres-${number}`])).size, 3, 'members are apart')
    t.equal(new Set([1, 2].map((number) => placement[`runtime-${number}`])).size, 2, 'runtimes are apart')
  }
}

t.test('A rebalance moves services and primaries to hosts that have fewer', async (t) => {
  const { api } = await startRegion(t)
  const before = await api.sql('select * from placements order by tenant_id, service')
  const plan = await post(api, {})
  t.match(plan, { moves: [], databases_after: [] })
  t.ok(plan.service_moves.every(({ to, from }) => to === 'd' && from !== 'd'))
  t.same(
    plan.hosts_after.map(({ id, memory_bytes: bytes }) => [id, bytes]),
    hosts.map(({ id, bytes }) => [id, bytes]),
  )
  const parts = plan.hosts_after.map(({ free_bytes: free }) => free / hostBytes)
  t.ok(Math.max(...parts) - Math.min(...parts) < 0.3, `free parts ${parts.join(', ')}`)
  t.ok(Math.max(...plan.hosts_after.map(({ primaries }) => primaries)) < 3)
  t.same(await api.sql('select * from placements order by tenant_id, service'), before, 'nothing has changed')
  t.match(await api.call('GET', `${region}/rebalances`), { body: { rebalances: [] } })

  const started = await post(api, { dry_run: false })
  t.same(
    statesOf([...started.service_moves, ...started.switchovers]).filter((state) => state !== 'waiting'),
    [],
  )
  const done = await ended(api, started.id)
  t.equal(done.state, 'done')
  await checkDone(t, api, done)
  for (const [kind, steps] of Object.entries({ move_service: done.service_moves, switchover: done.switchovers }))
    for (const { operation_id: operation, tenant_id: tenant } of steps)
      t.match((await api.call('GET', `/v1/operations/${operation ?? ''}`)).body, {
        ...{ kind, state: 'succeeded', tenant_id: tenant },
      })
  const { entries } = (await api.call('GET', '/v1/audit?limit=100')).body as { entries: { action: string }[] }
  t.equal(entries.filter(({ action }) => action === 'tenant.move_service').length, done.service_moves.length)
  t.match(await post(api, {}), { service_moves: [], switchovers: [] }, 'nothing is left to do')
})

t.test('Two moves are in progress at a time, and a canceled rebalance begins no further one', async (t) => {
  const { api, ids } = await startRegion(t)
  let open: () => void = () => undefined
  api.engine.gate = new Promise((resolve) => (open = resolve))
  const [suspended = ''] = ids
  const { id, service_moves: planned, switchovers } = await post(api, { dry_run: false })
  t.ok(planned.length > 2)
  await until(
    async () => statesOf((await read(api, id)).service_moves).filter((state) => state === 'moving').length === 2,
  )
  t.match(await api.call('POST', `${region}/rebalance`, { body: { dry_run: false } }), {
    status: 409,
    body: { code: 'REBALANCE_IN_PROGRESS', rebalance_id: id },
  })
  t.match(await api.call('POST', `${region}/rebalances/${id}/cancel`), { status: 202, body: { state: 'canceling' } })
  open()
  const canceled = await ended(api, id)
  t.equal(canceled.state, 'canceled')
  t.same(statesOf(canceled.service_moves).sort(), ['moved', 'moved', ...planned.slice(2).map(() => 'skipped')])
  t.same(
    statesOf(canceled.switchovers),
    switchovers.map(() => 'skipped'),
  )

  await api.call('PATCH', `/v1/tenants/${suspended}`, { body: { suspended: true }, headers: { prefer: 'wait=30' } })
  const plan = await post(api, {})
  t.same(
    [...plan.service_moves, ...plan.switchovers].filter(({ tenant_id: tenant }) => tenant === suspended),
    [],
  )
})

t.test('A tenant that is suspended meanwhile is skipped', async (t) => {
  const { api, controller } = await startRegion(t)
  const { id, service_moves: planned } = await post(api, {})
  t.equal(id, undefined)
  await controller.stop()
  const started = await post(api, { dry_run: false })
  const tenant = planned[0]?.tenant_id ?? ''
  await api.sql("update tenants set desired = 'suspended', generation = generation + 1 where id = $1", [tenant])
  api.startController()
  const done = await ended(api, started.id)
  for (const { tenant_id: one, state, error } of [...done.service_moves, ...done.switchovers]) {
    t.equal(state, one === tenant ? 'skipped' : 'moved')
    t.equal(error === null, one !== tenant)
  }
})

const deaths: FailpointName[] = [
  'rebalance.chosen',
  'rebalance.begun',
  'rebalance.settled',
  'allocate.before',
  'converge.before',
  'converge.step-after',
  'switchover.before',
  'switchover.sent',
  'finish.before',
  'finish.after',
]
t.test('A control plane that leads next continues a rebalance, wherever the last one has died', async (t) => {
  let controller: TestController | undefined
  let armed: FailpointName[] = []
  const died: FailpointName[] = []
  const failpoint = async (name: FailpointName) => {
    if (!armed.includes(name) || controller === undefined) return
    armed = armed.filter((other) => other !== name)
    died.push(name)
    const dying = controller
    controller = undefined
    void dying.stop().then(() => (controller = api.startController()))
    throw new Error('The control plane has died.')
  }
  const started = await startRegion(t, { failpoint })
  const { api } = started
  controller = started.controller
  armed = [...deaths]
  const { id } = await post(api, { dry_run: false })
  const done = await ended(api, id)
  t.equal(done.state, 'done')
  await checkDone(t, api, done)
  t.ok(died.length >= 6, died.join(', '))
  await until(() => controller !== undefined)
})
