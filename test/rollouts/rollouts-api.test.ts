// Tests of /v1/rollouts: the API creates, reads, lists and cancels rollouts, and rejects invalid requests.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createRolloutLedger } from '#control-plane/rollouts/store-ledger.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import { isError, startApi, type ApiResponse } from '#test/support/control-plane/api.ts'

const api = await startApi(t, { control: false, cloud: true })
const defaultBody = { region: 'cloud', component: 'runtime', image: 'tenantry/tenant-runtime:2' }
const begin = (more: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
  api.call('POST', '/v1/rollouts', { body: { ...defaultBody, ...more }, headers })
const end = () => api.sql("update rollouts set state = 'succeeded', finished_at = now()")
const bodyOf = ({ body }: ApiResponse) => body as Record<string, unknown> & { id: string }
const rows = async () => Number((await api.sql('select count(*) as count from rollouts'))[0]?.['count'])

t.test('a creation returns the whole rollout, pins the image and writes an audit entry', async (t) => {
  const response = await begin()
  t.match(response, { status: 202, headers: { location: `/v1/rollouts/${bodyOf(response).id}` } })
  t.match(response.body, {
    region: 'cloud',
    component: 'runtime',
    image: defaultBody.image,
    image_id: /^sha256:[0-9a-f]{64}$/,
    state: 'running',
    wave: 0,
    canary: null,
    wave_size: 8,
    soak_seconds: 10,
    deadline_seconds: 120,
    moved: 0,
    error: null,
    finished: null,
    tenants: [],
  })
  t.same((await api.call('GET', `/v1/rollouts/${bodyOf(response).id}`)).body, response.body)
  const [entry] = await api.sql('select action, detail from audit_log where target = $1', [bodyOf(response).id])
  t.match(entry, {
    action: 'rollout.create',
    detail: { region: 'cloud', image: defaultBody.image, image_id: bodyOf(response)['image_id'] },
  })
})

t.test('a region has one rollout at a time', async (t) => {
  const open = String((await api.sql("select id from rollouts where state = 'running'"))[0]?.['id'])
  const response = await begin()
  isError(t, response, 409, 'ROLLOUT_IN_PROGRESS', open, 'a second rollout')
  t.equal(bodyOf(response)['rollout_id'], open)
  await api.sql("update rollouts set state = 'rolling_back'")
  isError(t, await begin(), 409, 'ROLLOUT_IN_PROGRESS', open, 'a rollout during a rollback')
  await end()
  const both = await Promise.all([begin(), begin()])
  t.same(both.map(({ status }) => status).toSorted(), [202, 409], 'of two concurrent creations, one succeeds')
  await end()
})

t.test('repeats with one Idempotency-Key create one rollout and get the same response', async (t) => {
  const headers = { 'idempotency-key': randomUUID() }
  const first = await begin({}, headers)
  const count = await rows()
  const again = await begin({}, headers)
  t.match(again, { status: 202, headers: { 'idempotency-replayed': 'true' }, body: first.body as object })
  t.equal(await rows(), count)
  isError(
    t,
    await begin({ component: 'postgres' }, headers),
    409,
    'IDEMPOTENCY_MISMATCH',
    'Idempotency-Key',
    'the key with another body',
  )
  await end()
})

t.test('invalid requests are rejected, and nothing is written', async (t) => {
  const count = await rows()
  isError(t, await begin({ region: 'nowhere' }), 400, 'UNKNOWN_REGION', '"nowhere"', 'an unknown region')
  isError(t, await begin({ region: 'local' }), 422, 'IMAGE_MISSING', '"local"', 'a region without an engine')
  isError(t, await begin({ component: 'gateway' }), 400, 'INVALID_FIELD', 'component', 'another component')
  isError(t, await begin({ image: '' }), 400, 'INVALID_FIELD', 'image', 'no image')
  isError(t, await begin({ wave_size: 0 }), 400, 'INVALID_FIELD', 'wave_size', 'waves of size 0')
  isError(
    t,
    await begin({ soak_seconds: 120 }),
    400,
    'INVALID_FIELD',
    'deadline_seconds',
    'a deadline before the end of the soak',
  )
  isError(t, await begin({ canary: 't_00000000000000000000' }), 400, 'INVALID_FIELD', 'canary', 'an unknown canary')
  isError(t, await begin({ waves: 2 }), 400, 'UNKNOWN_FIELD', 'waves', 'an unknown field')
  isError(
    t,
    await api.call('POST', '/v1/rollouts', { body: { region: 'cloud', image: 'x' } }),
    400,
    'MISSING_FIELD',
    'component',
    'a missing field',
  )
  const { image } = api.engine
  api.engine.image = (reference) =>
    Promise.reject(new EngineError('IMAGE_MISSING', `the image ${reference} is not there`))
  isError(t, await begin(), 422, 'IMAGE_MISSING', defaultBody.image, 'an image that is not on the engine')
  api.engine.image = image
  api.engine.isReachable = false
  t.equal((await begin()).status, 503, 'an engine that does not respond')
  api.engine.isReachable = true
  t.equal(await rows(), count)
})

t.test('an image of another component, or of none, is rejected by its label', async (t) => {
  const count = await rows()
  const { image } = api.engine
  const cases: [component: string, label: string | undefined, message: string][] = [
    ['runtime', 'caddy', 'is of the component "caddy". Allowed: images with the label org.tenantry.component=runtime.'],
    ['runtime', 'postgres', 'is of the component "postgres"'],
    ['postgres', 'runtime', 'Allowed: images with the label org.tenantry.component=postgres.'],
    [
      'runtime',
      undefined,
      'has no label org.tenantry.component. Allowed: images with the label org.tenantry.component=runtime.',
    ],
  ]
  for (const [component, label, message] of cases) {
    api.engine.image = () => Promise.resolve({ id: 'sha256:1', component: label })
    isError(
      t,
      await begin({ component, image: 'tenantry/caddy' }),
      422,
      'WRONG_IMAGE',
      message,
      `${label ?? 'no label'} as ${component}`,
    )
  }
  api.engine.image = () => Promise.resolve({ id: 'sha256:1', component: 'x'.repeat(10_000) })
  const response = await begin({ image: `tenantry/${'y'.repeat(280)}` })
  isError(t, response, 422, 'WRONG_IMAGE', 'x'.repeat(100), 'a very long label')
  t.ok(JSON.stringify(response.body).length < 500, 'the quoted label is cut')
  api.engine.image = image
  t.equal(await rows(), count)
})

t.test('a canary must have services in the region', async (t) => {
  const tenants = [
    { id: 't_000000000000000000aa', region: 'cloud', isolation: 'database-per-tenant', desired: 'active', status: 202 },
    { id: 't_000000000000000000ab', region: 'cloud', isolation: 'schema-per-tenant', desired: 'active', status: 400 },
    { id: 't_000000000000000000ac', region: 'local', isolation: 'database-per-tenant', desired: 'active', status: 400 },
    { id: 't_000000000000000000ad', region: 'cloud', isolation: 'database-per-tenant', desired: 'warm', status: 400 },
  ]
  for (const { id, region, isolation, desired, status } of tenants) {
    await api.sql(
      'insert into tenants (id, name, plan_id, region_id, isolation, desired) values ($1, $2, $3, $4, $5, $6)',
      [id, `canary-${id.slice(-2)}`, 'Pro', region, isolation, desired],
    )
    const response = await begin({ canary: id })
    t.equal(response.status, status, id)
    await end()
  }
})

t.test('a cancellation begins the rollback and can be repeated; a finished rollout cannot be cancelled', async (t) => {
  const { id } = bodyOf(await begin())
  const cancel = () => api.call('POST', `/v1/rollouts/${id}/cancel`)
  t.match(await cancel(), {
    status: 202,
    body: { id, state: 'rolling_back', error: 'The operator cancelled the rollout.' },
  })
  t.match(await cancel(), {
    status: 202,
    body: { id, state: 'rolling_back', error: 'The operator cancelled the rollout.' },
  })
  await end()
  isError(t, await cancel(), 409, 'ROLLOUT_FINISHED', 'succeeded', 'a finished rollout')
  isError(
    t,
    await api.call('POST', `/v1/rollouts/${randomUUID()}/cancel`),
    404,
    'ROLLOUT_NOT_FOUND',
    'rollout',
    'an unknown rollout',
  )
})

t.test('lists are paged, oldest first, and can be limited to a region', async (t) => {
  const ids = (await api.sql('select id from rollouts order by created_at, id')).map(({ id }) => String(id))
  t.ok(ids.length >= 4)
  const listed: string[] = []
  let query = '?limit=2'
  for (;;) {
    const { body } = await api.call('GET', `/v1/rollouts${query}`)
    const { rollouts, next_cursor: cursor } = body as {
      rollouts: Record<string, unknown>[]
      next_cursor: string | null
    }
    t.notOk(
      rollouts.some((rollout) => 'tenants' in rollout),
      'listed rollouts omit their tenants',
    )
    listed.push(...rollouts.map(({ id }) => String(id)))
    if (cursor === null) break
    query = `?limit=2&cursor=${cursor}`
  }
  t.same(listed, ids)
  t.match((await api.call('GET', '/v1/rollouts?region=local')).body, { rollouts: [], next_cursor: null })
  for (const path of [randomUUID(), 'no-uuid'])
    isError(t, await api.call('GET', `/v1/rollouts/${path}`), 404, 'ROLLOUT_NOT_FOUND', 'rollout', path)
  isError(t, await api.call('GET', '/v1/rollouts?state=x'), 400, 'UNKNOWN_PARAMETER', 'state', 'an unknown parameter')
})

t.test('a rollout that ends without success is reported to webhooks, once', async (t) => {
  const database = openDatabase(api.controlUrl)
  t.teardown(() => database.$disconnect())
  const ledger = createRolloutLedger(database, () => new Date())
  const epoch = BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
  const reported = async (state: 'succeeded' | 'rolled_back') => {
    await end()
    const { id } = bodyOf(await begin())
    const [rollout] = await ledger.open()
    if (rollout === undefined) throw new Error('there is no open rollout')
    const step = { do: 'finish', state, error: state === 'succeeded' ? undefined : 't_1 is not healthy.' } as const
    await Promise.all([ledger.take(rollout, step, epoch), ledger.take(rollout, step, epoch)])
    return api.sql("select type, tenant_id, data from operator_events where data ->> 'rollout_id' = $1", [id])
  }
  t.same(await reported('succeeded'), [])
  t.match(await reported('rolled_back'), [
    {
      type: 'rollout.failed',
      tenant_id: null,
      data: { region: 'cloud', component: 'runtime', state: 'rolled_back', message: 't_1 is not healthy.' },
    },
  ])
})

t.test('an admin key may do all, a read key only read, and a billing key nothing', async (t) => {
  const { id } = bodyOf(await begin())
  const count = await rows()
  for (const key of [api.keys.read, api.keys.billing]) {
    t.equal((await api.call('POST', '/v1/rollouts', { key, body: defaultBody })).status, 403)
    t.equal((await api.call('POST', `/v1/rollouts/${id}/cancel`, { key })).status, 403)
    const status = key === api.keys.read ? 200 : 403
    t.same(
      [
        (await api.call('GET', '/v1/rollouts', { key })).status,
        (await api.call('GET', `/v1/rollouts/${id}`, { key })).status,
      ],
      [status, status],
    )
  }
  t.equal(await rows(), count)
  t.match(await api.sql('select state from rollouts where id = $1', [id]), [{ state: 'running' }])
})
