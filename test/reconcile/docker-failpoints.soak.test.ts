// Kills the control plane, throws or hangs at every boundary of a dedicated tenant's create, resize, suspend, wake, delete and undelete.
// The tenant reaches its desired state, and the engine has exactly the tenants' objects. A hang does not delay other tenants.
import t, { type Test } from 'tap'
import type { FailpointName } from '#control-plane/reconcile/failpoints.ts'
import { startDockerPlatform, type ControlPlane, type DockerPlatform } from '#test/support/docker-platform.ts'
import { effort, seed } from '#test/support/effort.ts'

type Action = 'kill' | 'throw' | 'hang'
/** A failpoint, and the pass at which it acts; the default is the first. */
type Point = FailpointName | `${FailpointName}@${number}`

interface Operation {
  points: readonly Point[]
  /** Moves a ready tenant to the state in which the operation begins. */
  prepare(platform: DockerPlatform, id: string): Promise<void>
  request(platform: DockerPlatform, id: string): Promise<unknown>
  /** Status at the end; undefined means that the tenant is deleted. */
  end: 'ready' | 'suspended' | undefined
}

const steps = ['converge.before', 'converge.step-before', 'converge.step-after', 'converge.after'] as const
const running = ['observe.before', 'observe.after', 'finish.before', 'finish.after'] as const
const now = { prefer: 'wait=40' }
const nothing = async () => undefined
const patch = (body: object) => (platform: DockerPlatform, id: string) =>
  platform.call('PATCH', `/v1/tenants/${id}`, body, now)
const megabyte = 2 ** 20

const operations: Record<'create' | 'resize' | 'suspend' | 'wake' | 'delete' | 'undelete', Operation> = {
  create: {
    points: [
      'begin.before',
      'begin.after',
      'allocate.before',
      'allocate.pinned',
      'allocate.subnet',
      ...steps,
      'converge.step-before@2',
      'converge.step-after@2',
      'database.before',
      'database.created',
      'database.prepared',
      'home.before',
      'home.created',
      'home.migrated',
      'home.recorded',
      'observe.runtime',
      ...running,
    ],
    prepare: nothing,
    request: nothing,
    end: 'ready',
  },
  resize: {
    points: [
      'begin.before',
      'begin.after',
      ...steps,
      'converge.step-before@2',
      'converge.step-after@2',
      'home.recorded',
      ...running,
    ],
    prepare: nothing,
    request: patch({ resources: { postgres: { memory_bytes: 300 * megabyte } } }),
    end: 'ready',
  },
  suspend: {
    points: [
      'begin.before',
      'begin.after',
      'halt.before',
      'halt.unrouted',
      ...steps,
      'halt.stopped',
      'finish.before',
      'finish.after',
    ],
    prepare: nothing,
    request: patch({ suspended: true }),
    end: 'suspended',
  },
  wake: {
    points: ['begin.before', 'begin.after', ...steps, 'home.recorded', 'observe.runtime', ...running],
    prepare: async (platform, id) => {
      await platform.call('POST', `/v1/tenants/${id}/pause`, undefined, now)
      await platform.until(id, ({ status }) => status === 'paused')
    },
    request: (platform, id) => platform.call('POST', `/v1/tenants/${id}/wake`, undefined, now),
    end: 'ready',
  },
  delete: {
    points: [
      'begin.before',
      'begin.after',
      'delete.before',
      'delete.unrouted',
      'purge.before',
      'purge.unpublished',
      'purge.step-after',
      'purge.step-after@2',
      'purge.step-after@3',
      'purge.services-removed',
      'purge.finished',
    ],
    prepare: nothing,
    request: (platform, id) => platform.call('DELETE', `/v1/tenants/${id}?purge=true`, undefined, now),
    end: undefined,
  },
  undelete: {
    points: ['begin.before', 'begin.after', ...steps, 'home.recorded', 'observe.runtime', ...running],
    prepare: async (platform, id) => {
      await platform.call('DELETE', `/v1/tenants/${id}`, undefined, now)
      await platform.until(
        id,
        ({ status, generation, observed_generation: observed }) => status === 'deleting' && generation === observed,
      )
    },
    request: (platform, id) => platform.call('POST', `/v1/tenants/${id}/undelete`, undefined, now),
    end: 'ready',
  },
}

interface Case {
  operation: keyof typeof operations
  point: Point
  action: Action
}

const matrix = Object.entries(operations).flatMap(([operation, { points }]) =>
  points.flatMap((point) =>
    (['kill', 'throw', 'hang'] as const).map((action): Case => ({
      operation: operation as Case['operation'],
      point,
      action,
    })),
  ),
)
/** Number of cases; the small run takes a sample that the seed chooses. */
const wanted = effort({ small: 3, full: matrix.length })
const cases = matrix.filter(
  (_, at) =>
    Math.floor(((at + seed) * wanted) / matrix.length) !== Math.floor(((at + seed + 1) * wanted) / matrix.length),
)

/** Returns the tenant IDs that have objects of each kind. Without a leak each list equals the tenants. */
async function listTenantObjects(platform: DockerPlatform): Promise<Record<string, string[]>> {
  const { containers, networks, volumes } = await platform.host.observe(
    { installation: platform.installation },
    AbortSignal.timeout(30_000),
  )
  const stacks = (objects: readonly { labels: { stack: string } }[]) =>
    [...new Set(objects.map(({ labels }) => labels.stack))].filter((stack) => stack.startsWith('t_')).sort()
  const ids = async (sql: string) => (await platform.sql(sql)).map(({ id }) => String(id)).sort()
  return {
    containers: stacks(containers),
    networks: stacks(networks),
    volumes: stacks(volumes),
    subnets: await ids('select stack_id as id from subnets'),
    secrets: await ids('select distinct tenant_id as id from tenant_secrets'),
  }
}

/** Waits until the control plane has reached a failpoint `pass` times. */
async function untilHangs(plane: ControlPlane, failpoint: string, pass: number): Promise<void> {
  const deadline = Date.now() + 60_000
  while (plane.output().split(`"failpoint":"${failpoint}"`).length - 1 < pass) {
    if (Date.now() > deadline) throw new Error(`${failpoint} was not passed`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

let made = 0

async function run(t: Test, platform: DockerPlatform, { operation: name, point, action }: Case): Promise<void> {
  const operation = operations[name]
  const isCreate = name === 'create'
  const [failpoint = '', pass] = point.split('@')
  const armed = `${failpoint}=${action}${pass === undefined ? '' : `@${pass}`}`
  const create = async () => {
    const name = `t-${++made}`
    const response = await platform
      .call('POST', '/v1/tenants', { name, plan: 'Pro', region: 'local' }, now)
      .catch(() => undefined)
    // The response may be lost with the control plane.
    return response?.status === 201
      ? String(response.body['tenant_id'])
      : String((await platform.sql('select id from tenants where name = $1', [name]))[0]?.['id'])
  }
  let id = ''
  if (!isCreate) {
    const calm = await platform.startControlPlane()
    id = await create()
    await platform.until(id, ({ status }) => status === 'ready')
    await operation.prepare(platform, id)
    await calm.kill('SIGTERM')
  }
  const plane = await platform.startControlPlane({ failpoints: armed, environment: { TENANTRY_LOG_LEVEL: 'trace' } })
  const requested = isCreate ? create() : operation.request(platform, id).catch(() => undefined)
  if (action === 'kill') {
    await plane.exited
    t.equal(plane.signalCode(), 'SIGKILL', 'the control plane reached the failpoint')
  } else if (action === 'hang') {
    await untilHangs(plane, failpoint, Number(pass ?? 1))
    // A tenant that hangs must not delay another tenant.
    const other = await platform.call(
      'POST',
      '/v1/tenants',
      { name: `h-${++made}`, plan: 'Free', region: 'local' },
      now,
    )
    t.match(other, { status: 201, body: { status: 'ready' } }, 'another tenant is created meanwhile')
    await platform.call('DELETE', `/v1/tenants/${String(other.body['tenant_id'])}?purge=true`, undefined, now)
    await plane.kill('SIGKILL')
  }
  if (action !== 'throw') await platform.startControlPlane()
  const result = await requested
  if (isCreate) id = String(result)
  if (isCreate && id === 'undefined') {
    t.equal(action, 'kill', 'only a kill can lose a create')
  } else if (operation.end === undefined) {
    const gone = await platform.until(id, (body) => body['code'] === 'TENANT_NOT_FOUND')
    t.ok(gone)
  } else {
    const tenant = await platform.until(
      id,
      ({ status, generation, observed_generation: observed }) => status === operation.end && generation === observed,
    )
    t.same(tenant['reason'], null)
  }
  const tenants = (await platform.sql("select id from tenants where isolation <> 'schema-per-tenant'"))
    .map((row) => String(row['id']))
    .sort()
  const present = await listTenantObjects(platform)
  for (const [kind, ids] of Object.entries(present)) {
    if (kind === 'containers' || kind === 'networks' || kind === 'volumes' || kind === 'subnets')
      t.same(ids, tenants, `the ${kind} equal the tenants`)
  }
  t.equal(
    (await platform.sql("select count(*)::int as n from operations where state in ('pending', 'running')"))[0]?.['n'],
    0,
    'no operation is open',
  )
  if (operation.end !== undefined && id !== 'undefined') {
    await platform.call('DELETE', `/v1/tenants/${id}?purge=true`, undefined, now)
    await platform.until(id, (body) => body['code'] === 'TENANT_NOT_FOUND')
  }
  await platform.stopControlPlanes()
}

/** Number of parallel lanes. Each has its own platform, and all take cases from one queue, because a case mostly waits. */
const lanes = effort({ small: 1, full: 3 })
t.jobs = lanes
const queue = [...cases]
t.comment(`${cases.length} of ${matrix.length} cases, seed ${seed}`)
for (let lane = 1; lane <= lanes; lane++) {
  t.test(`Lane ${lane}`, { timeout: 4 * 3_600_000, buffered: true }, async (t) => {
    const platform = await startDockerPlatform()
    t.teardown(() => platform.stop())
    await platform.stopControlPlanes()
    for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
      const { operation, action, point } = one
      await t.test(`A ${operation} recovers from a ${action} at ${point}`, (t) =>
        run(t, platform, { operation, action, point }),
      )
    }
  })
}
