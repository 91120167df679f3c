// Each mistake in a body returns a 4xx error that names it, in the common form of errors, and creates nothing.
import t from 'tap'
import { reservedNames } from '#control-plane/tenants/names.ts'
import { newName, startApi } from '#test/support/control-plane/api.ts'
import { good, rejectedBy, type Case } from './support/rejections.ts'

const api = await startApi(t, { cloud: true })
const rejected = rejectedBy(api)
const create = (what: string, body: unknown, status: number, code: string, names: string): Case => [
  what,
  'POST',
  '/v1/tenants',
  { body },
  status,
  code,
  names,
]

t.test('A body with an unknown, missing or mistyped field is rejected', async (t) => {
  const { name, plan, region } = good()
  await rejected(t, [
    create('unknown field', { ...good(), colour: 'red' }, 400, 'UNKNOWN_FIELD', '"colour"'),
    create('unknown field, though null', { ...good(), tenant_id: null }, 400, 'UNKNOWN_FIELD', '"tenant_id"'),
    create('no name', { plan, region }, 400, 'MISSING_FIELD', '"name"'),
    create('no plan', { name, region }, 400, 'MISSING_FIELD', '"plan"'),
    create('no region', { name, plan }, 400, 'MISSING_FIELD', '"region"'),
    create('name is a number', { ...good(), name: 7 }, 400, 'INVALID_FIELD', '"name" must be string'),
    create('plan is null', { ...good(), plan: null }, 400, 'INVALID_FIELD', '"plan" must be string'),
    create('region is a list', { ...good(), region: ['local'] }, 400, 'INVALID_FIELD', '"region" must be string'),
    create(
      'rate limit is null',
      { ...good(), rate_limit: null },
      400,
      'INVALID_FIELD',
      '"rate_limit" must be object or "unlimited"',
    ),
    create(
      'rate limit of nothing',
      { ...good(), rate_limit: { per_second: 0, burst: 5 } },
      400,
      'INVALID_FIELD',
      '"rate_limit.per_second" must be >= 1',
    ),
    create(
      'isolation is none',
      { ...good(), isolation: 'bunker' },
      400,
      'INVALID_FIELD',
      '"isolation" must be one of schema-per-tenant',
    ),
    create('a list', [good()], 400, 'INVALID_FIELD', 'body must be object'),
    create('a text', 'tenant', 400, 'INVALID_FIELD', 'body must be object'),
    create('null', null, 400, 'INVALID_FIELD', 'body must be object'),
    ['no body', 'POST', '/v1/tenants', {}, 400, 'INVALID_FIELD', 'body must be object'],
  ])
})

t.test('A body that is not JSON, or is too large, is rejected', async (t) => {
  const send = (what: string, payload: string, status: number, code: string, names: string, headers = {}): Case => [
    what,
    'POST',
    '/v1/tenants',
    { payload, headers },
    status,
    code,
    names,
  ]
  await rejected(t, [
    send('broken off', '{"name": "acme", "plan": "Fr', 400, 'INVALID_JSON', 'body'),
    send('no JSON at all', 'name=acme', 400, 'INVALID_JSON', 'body'),
    send('empty', '', 400, 'INVALID_JSON', 'body'),
    send('a prototype', '{"name": "acme", "__proto__": {"plan": "Free"}}', 400, 'INVALID_JSON', 'body'),
    send('over the limit', JSON.stringify({ ...good(), name: 'x'.repeat(65 * 1024) }), 413, 'BODY_TOO_LARGE', '64 KB'),
    send('another content type', JSON.stringify(good()), 415, 'UNSUPPORTED_MEDIA_TYPE', 'application/json', {
      'content-type': 'application/yaml',
    }),
    send('a form', 'name=acme', 415, 'UNSUPPORTED_MEDIA_TYPE', 'application/json', {
      'content-type': 'application/x-www-form-urlencoded',
    }),
  ])
})

t.test('A name that is not a DNS label, is reserved or is taken is rejected', async (t) => {
  const taken = await api.create()
  const bad = [
    '',
    'a',
    'ab',
    'a'.repeat(64),
    'Acme',
    'ACME',
    '1acme',
    '-acme',
    'acme-',
    'ac_me',
    'ac.me',
    'ac me',
    ' acme',
    'acme\n',
    'ac\u0000me',
    'xn--acme',
    'ab--cd',
    'ácme',
    'аcme',
    'acme/..',
    '../acme',
    '%61cme',
    '"; drop table tenants; --',
    '🦊🦊🦊',
  ]
  const spare = await api.create()
  await rejected(t, [
    ...bad.map((name) => create(`name ${JSON.stringify(name)}`, { ...good(), name }, 400, 'INVALID_NAME', 'name')),
    ...bad.map((name): Case => [
      `new name ${JSON.stringify(name)}`,
      'PATCH',
      `/v1/tenants/${spare.tenant_id}`,
      { body: { name } },
      400,
      'INVALID_NAME',
      'name',
    ]),
    ...['www', 'api', 'admin', 'tenantry'].map((name) =>
      create(`name ${name}`, { ...good(), name }, 400, 'RESERVED_NAME', `name "${name}"`),
    ),
    create('taken', { ...good(), name: taken.name }, 409, 'NAME_TAKEN', `name "${taken.name}"`),
    [
      'new name taken',
      'PATCH',
      `/v1/tenants/${spare.tenant_id}`,
      { body: { name: taken.name } },
      409,
      'NAME_TAKEN',
      `name "${taken.name}"`,
    ],
  ])
  t.ok(reservedNames.size > 20, 'many names are reserved')
  t.same((await api.tenant(spare.tenant_id)).name, spare.name)
  for (const name of ['abc', 'a'.repeat(63), 'a1-b2', `${newName()}-x`])
    t.same((await api.create(name)).name, name, `${name} is a name`)
})

t.test('A plan, region or isolation that is not available is rejected', async (t) => {
  const { tenant_id: id } = await api.create()
  const pair = ['database-per-tenant', 'cluster-per-tenant']
  await rejected(t, [
    create(
      'unknown plan',
      { ...good(), plan: 'Gold' },
      400,
      'UNKNOWN_PLAN',
      'Unknown plan "Gold". Allowed: Free, Pro, Enterprise.',
    ),
    create('plan in lower case', { ...good(), plan: 'free' }, 400, 'UNKNOWN_PLAN', 'plan "free"'),
    create('empty plan', { ...good(), plan: '' }, 400, 'UNKNOWN_PLAN', 'plan ""'),
    create(
      'unknown region',
      { ...good(), region: 'mars' },
      400,
      'UNKNOWN_REGION',
      'Unknown region "mars". Allowed: local, cloud.',
    ),
    ...pair.map((isolation) =>
      create(
        isolation,
        { ...good(), isolation },
        422,
        'UNSUPPORTED_ISOLATION',
        `Invalid isolation "${isolation}" in the region "local", which uses the engine`,
      ),
    ),
    ['unknown new plan', 'PATCH', `/v1/tenants/${id}`, { body: { plan: 'Gold' } }, 400, 'UNKNOWN_PLAN', 'plan "Gold"'],
  ])
})

t.test('A change that changes nothing, or cannot be made, is rejected', async (t) => {
  const { tenant_id: id, generation } = await api.create()
  const patch = (what: string, body: unknown, code: string, names: string): Case => [
    what,
    'PATCH',
    `/v1/tenants/${id}`,
    { body },
    400,
    code,
    names,
  ]
  await rejected(t, [
    patch('nothing', {}, 'INVALID_FIELD', 'body'),
    patch('no region', { region: 'nowhere' }, 'UNKNOWN_REGION', 'Unknown region "nowhere". Allowed: local'),
    patch('two changes', { region: 'local', plan: 'Pro' }, 'INVALID_FIELD', 'Field "region" must be the only one'),
    [
      'the same region',
      'PATCH',
      `/v1/tenants/${id}`,
      { body: { region: 'local' } },
      409,
      'SAME_REGION',
      'The region of the tenant is "local" already.',
    ],
    patch('no isolation', { isolation: 'bunker' }, 'INVALID_FIELD', '"isolation" must be one of schema-per-tenant'),
    [
      'the same isolation',
      'PATCH',
      `/v1/tenants/${id}`,
      { body: { isolation: 'schema-per-tenant' } },
      409,
      'SAME_ISOLATION',
      'The isolation of the tenant is schema-per-tenant already.',
    ],
    patch('suspended as text', { suspended: 'true' }, 'INVALID_FIELD', '"suspended" must be boolean'),
    patch('plan null', { plan: null }, 'INVALID_FIELD', '"plan" must be string'),
    ['purge=maybe', 'DELETE', `/v1/tenants/${id}?purge=maybe`, {}, 400, 'INVALID_PARAMETER', '"purge"'],
    [
      'negative overlap',
      'POST',
      `/v1/tenants/${id}/keys/rotate`,
      { body: { overlap_seconds: -1 } },
      400,
      'INVALID_FIELD',
      '"overlap_seconds"',
    ],
    [
      'half an overlap',
      'POST',
      `/v1/tenants/${id}/keys/rotate`,
      { body: { overlap_seconds: 0.5 } },
      400,
      'INVALID_FIELD',
      '"overlap_seconds"',
    ],
  ])
  t.same((await api.tenant(id)).generation, generation)
})

t.test('A setting outside its limits is rejected', async (t) => {
  const { tenant_id: id, generation } = await api.create(newName(), { plan: 'Pro', region: 'cloud' })
  const named = (body: object) => JSON.stringify(body).replaceAll(/[^ -~]/g, '?')
  const patch = (body: object, names: string, code = 'INVALID_FIELD'): Case => [
    named(body),
    'PATCH',
    `/v1/tenants/${id}`,
    { body },
    400,
    code,
    names,
  ]
  const reason = (text: unknown) => patch({ suspended: true, suspend_reason: text }, '"suspend_reason"')
  const schedule = (text: unknown, names = '"backup_schedule"') => patch({ backup_schedule: text }, names)
  const limit = (size: object, names: string) => [
    patch({ resources: { postgres: size } }, `"resources.postgres.${names}"`),
    patch({ resources: { runtime: size } }, `"resources.runtime.${names}"`),
  ]
  await rejected(t, [
    ...['', 'x'.repeat(201), 'two\nlines', 'a\u0000', '\u001b[31m', '\u0085', '\u2028', 'half \ud83e', 7, ['x']].map(
      reason,
    ),
    patch({ payment_required: 'yes' }, '"payment_required" must be boolean'),
    patch({ drift_policy: 'fix' }, '"drift_policy" must be one of repair, report, ignore'),
    patch({ drift_policy: null }, '"drift_policy"'),
    ...[-1, 1, 9, 30 * 86_400 + 1, 0.5, '60'].map((seconds) =>
      patch({ pause_after_seconds: seconds }, '"pause_after_seconds"'),
    ),
    ...[0, 366, 1.5, null, '7'].map((stored) => patch({ backups_kept: stored }, '"backups_kept"')),
    ...[
      [0, 1],
      [1, 0],
      [10_000_000, 1],
      [1, 10_000_000],
      [0.5, 1],
      ['5', 1],
      [null, 1],
      [5, null],
    ].map(([per_second, burst]) => patch({ rate_limit: { per_second, burst } }, '"rate_limit.')),
    patch({ rate_limit: { per_second: 5 } }, '"rate_limit.burst" is required', 'MISSING_FIELD'),
    patch({ rate_limit: { per_second: 5, burst: 5, source: 'plan' } }, '"rate_limit.source"', 'UNKNOWN_FIELD'),
    ...['none', 5, ['unlimited'], true].map((rate) =>
      patch({ rate_limit: rate }, '"rate_limit" must be object or "unlimited" or null'),
    ),
    ...['', '* * * * *', '*/30 * * * *', '0,30 1 * * *', '0-5 1 * * *'].map((text) => schedule(text)),
    ...['0 1 * *', '0 0 1 * * *', '@daily', 'daily', '0 1 * * * 2026'].map((text) => schedule(text, 'five fields')),
    ...['60 1 * * *', '0 24 * * *', '0 0 31 2 *', '0 0 * * mon-xyz', '0 x * * *'].map((text) =>
      schedule(text, 'must be a cron expression with a future time'),
    ),
    ...[7, ['0 1 * * *'], '0'.repeat(101)].map((text) => schedule(text)),
    ...limit({ memory_bytes: 128 * 2 ** 20 - 1 }, 'memory_bytes'),
    ...limit({ memory_bytes: 2 ** 40 + 1 }, 'memory_bytes'),
    ...limit({ memory_bytes: '1g' }, 'memory_bytes'),
    ...limit({ cpu_millis: 49 }, 'cpu_millis'),
    ...limit({ cpu_millis: 512_001 }, 'cpu_millis'),
    ...limit({ cpu_millis: 50.5 }, 'cpu_millis'),
    patch({ resources: { postgres: { pids: 5 } } }, '"resources.postgres.pids"', 'UNKNOWN_FIELD'),
    patch({ resources: { gateway: {} } }, '"resources.gateway"', 'UNKNOWN_FIELD'),
    patch({ resources: 5 }, '"resources"'),
    patch({ resources: {} }, 'must change at least one field'),
    patch({ resources: { postgres: {} } }, 'must change at least one field'),
  ])
  t.same((await api.tenant(id)).generation, generation)
  for (const backup_schedule of ['0 0 * * *', ' 59  23 1 * 0 ', '5 */2 * * *', '0 3 29 2 *']) {
    const response = await api.call('PATCH', `/v1/tenants/${id}`, {
      body: { backup_schedule },
      headers: { prefer: 'wait=30' },
    })
    t.match(response, { status: 200, body: { backup_schedule } }, backup_schedule)
  }
})
