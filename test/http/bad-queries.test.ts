// Each mistake in a path, a query or a header returns a 4xx error that names it, and creates nothing.
import t from 'tap'
import { isError, startApi } from '#test/support/control-plane/api.ts'
import { good, rejectedBy, type Case } from './support/rejections.ts'

const api = await startApi(t, { cloud: true })
const rejected = rejectedBy(api)

t.test('A tenant, operation or key that does not exist is not found', async (t) => {
  const ids = [
    't_00000000000000000000',
    't_ABCDEF0123456789ABCD',
    'acme',
    '%00',
    '..%2f..',
    "'%20or%20true--",
    'T_00000000000000000000',
  ]
  await rejected(t, [
    ...ids.flatMap((id): Case[] => [
      [`GET ${id}`, 'GET', `/v1/tenants/${id}`, {}, 404, 'TENANT_NOT_FOUND', 'tenant'],
      [`PATCH ${id}`, 'PATCH', `/v1/tenants/${id}`, { body: { suspended: true } }, 404, 'TENANT_NOT_FOUND', 'tenant'],
      [`DELETE ${id}`, 'DELETE', `/v1/tenants/${id}`, {}, 404, 'TENANT_NOT_FOUND', 'tenant'],
      [`rotate ${id}`, 'POST', `/v1/tenants/${id}/keys/rotate`, { body: {} }, 404, 'TENANT_NOT_FOUND', 'tenant'],
      [`password ${id}`, 'POST', `/v1/tenants/${id}/database-password/rotate`, {}, 404, 'TENANT_NOT_FOUND', 'tenant'],
      [`passwords ${id}`, 'POST', `/v1/tenants/${id}/service-passwords/rotate`, {}, 404, 'TENANT_NOT_FOUND', 'tenant'],
      [`usage ${id}`, 'GET', `/v1/tenants/${id}/usage`, {}, 404, 'TENANT_NOT_FOUND', 'tenant'],
      [`past usage ${id}`, 'GET', `/v1/tenants/${id}/usage/2026-01`, {}, 404, 'TENANT_NOT_FOUND', 'tenant'],
      [`drift ${id}`, 'GET', `/v1/tenants/${id}/drift`, {}, 404, 'TENANT_NOT_FOUND', 'tenant'],
      [`logs ${id}`, 'GET', `/v1/tenants/${id}/logs?component=runtime`, {}, 404, 'TENANT_NOT_FOUND', 'tenant'],
      ...['restart', 'switchover', 'pause', 'wake'].map((action): Case => [
        `${action} ${id}`,
        'POST',
        `/v1/tenants/${id}/${action}`,
        {},
        404,
        'TENANT_NOT_FOUND',
        'tenant',
      ]),
      [`health ${id}`, 'GET', `/v1/tenants/${id}/health`, {}, 404, 'TENANT_NOT_FOUND', 'tenant'],
      [`operation ${id}`, 'GET', `/v1/operations/${id}`, {}, 404, 'OPERATION_NOT_FOUND', 'operation'],
      [`revoke ${id}`, 'DELETE', `/v1/keys/${id}`, {}, 404, 'KEY_NOT_FOUND', 'key'],
      [`rotate key ${id}`, 'POST', `/v1/keys/${id}/rotate`, { body: {} }, 404, 'KEY_NOT_FOUND', 'key'],
    ]),
    [
      'no such uuid',
      'GET',
      '/v1/operations/00000000-0000-4000-8000-000000000000',
      {},
      404,
      'OPERATION_NOT_FOUND',
      'operation',
    ],
    ['no such key', 'DELETE', '/v1/keys/00000000-0000-4000-8000-000000000000', {}, 404, 'KEY_NOT_FOUND', 'key'],
    ['no such path', 'GET', '/v1/tenant', {}, 404, 'NOT_FOUND', '/v1/tenant'],
    ['no such method', 'PUT', '/v1/tenants', { body: good() }, 404, 'NOT_FOUND', 'PUT /v1/tenants'],
  ])
})

t.test('A query parameter that is unknown, repeated or invalid is rejected', async (t) => {
  const { tenant_id: id } = await api.create()
  const get = (path: string, code: string, names: string): Case => [path, 'GET', path, {}, 400, code, names]
  const lists = ['/v1/tenants', '/v1/operations', '/v1/audit']
  const plain = [
    '/v1/plans',
    '/v1/regions',
    '/v1/hosts',
    '/v1/keys',
    '/v1/audit/verify',
    ...['', '/health', '/drift', '/usage'].map((part) => `/v1/tenants/${id}${part}`),
  ]
  const limits = ['0', '1001', '-1', '1e2', 'ten', '', '1.5', '%201']
  const months = ['2026-13', '2026-00', '26-01', '2026-1', 'now', '2026-01-01', '0000-01']
  const other = Buffer.from(JSON.stringify(['2026-01-01T00:00:00.000Z', 'x'])).toString('base64url')
  await rejected(t, [
    ...[...lists, ...plain].map((path) => get(`${path}?page=2`, 'UNKNOWN_PARAMETER', '"page"')),
    ...lists.map((path) => get(`${path}?limit=1&limit=2`, 'INVALID_PARAMETER', '"limit" must not be repeated')),
    ...lists.flatMap((path) => limits.map((limit) => get(`${path}?limit=${limit}`, 'INVALID_PARAMETER', '"limit"'))),
    ...['/v1/tenants', '/v1/operations'].flatMap((path) =>
      ['x', '', 'bnVsbA', 'W10', 'WyJ4IiwieSJd', '%00'].map((cursor) =>
        get(`${path}?cursor=${cursor}`, 'INVALID_PARAMETER', 'cursor'),
      ),
    ),
    get('/v1/tenants?plan=Free&plan=Pro', 'INVALID_PARAMETER', '"plan" must not be repeated'),
    get('/v1/tenants?status=ready&status=failed', 'INVALID_PARAMETER', '"status"'),
    get('/v1/tenants?status=well', 'INVALID_PARAMETER', '"status" must be one of pending, ready'),
    get('/v1/operations?kind=make', 'INVALID_PARAMETER', '"kind"'),
    get('/v1/operations?state=done', 'INVALID_PARAMETER', '"state"'),
    get(`/v1/operations?cursor=${other}`, 'INVALID_PARAMETER', 'cursor'),
    get('/v1/audit?before=yesterday', 'INVALID_PARAMETER', '"before"'),
    ...months.map((month) => get(`/v1/tenants/${id}/usage/${month}`, 'INVALID_MONTH', month)),
    get(`/v1/tenants/${id}/usage/9999-12`, 'FUTURE_MONTH', '9999-12'),
    ['on a create', 'POST', '/v1/tenants?dry_run=true', { body: good() }, 400, 'UNKNOWN_PARAMETER', '"dry_run"'],
    [
      'on a change',
      'PATCH',
      `/v1/tenants/${id}?force=1`,
      { body: { suspended: true } },
      400,
      'UNKNOWN_PARAMETER',
      '"force"',
    ],
    ['on a delete', 'DELETE', `/v1/tenants/${id}?force=1`, {}, 400, 'UNKNOWN_PARAMETER', '"force"'],
    ['purge twice', 'DELETE', `/v1/tenants/${id}?purge=true&purge=false`, {}, 400, 'INVALID_PARAMETER', '"purge"'],
  ])
})

t.test('A value that Postgres cannot store matches nothing, or is rejected', async (t) => {
  const before = await api.counts()
  const nul = Buffer.from(JSON.stringify(['2026-01-01T00:00:00.000Z', 't_\u0000'])).toString('base64url')
  for (const query of ['plan=%00', 'region=a%00', 'name_prefix=%00', `cursor=${nul}`]) {
    const response = await api.call('GET', `/v1/tenants?${query}`)
    isError(t, response, 400, 'INVALID_PARAMETER', query.split('=')[0] ?? '', query)
  }
  isError(
    t,
    await api.call('GET', '/v1/operations?tenant_id=%00'),
    400,
    'INVALID_PARAMETER',
    'tenant_id',
    'tenant_id=%00',
  )
  for (const name of ['a\u0000b', 'half a \ud83e', '\udd8a']) {
    const response = await api.call('POST', '/v1/keys', { body: { name, scope: 'read' } })
    isError(t, response, 400, 'INVALID_FIELD', 'name', `the key's name ${JSON.stringify(name)}`)
  }
  t.same(await api.counts(), before)
  t.same((await api.call('POST', '/v1/keys', { body: { name: 'a whole 🦊', scope: 'read' } })).status, 201)
})

t.test('An invalid header is rejected', async (t) => {
  const { tenant_id: id } = await api.create()
  const with_ = (name: string, value: string, code: string, names: string): Case => [
    `${name}: ${value}`,
    'POST',
    '/v1/tenants',
    { body: good(), headers: { [name]: value } },
    400,
    code,
    names,
  ]
  await rejected(t, [
    ...['soon', '-1', '1.5', ''].map((wait) => with_('prefer', `wait=${wait}`, 'INVALID_HEADER', 'Prefer: wait')),
    ...['', 'with space', 'ü', 'x'.repeat(256)].map((key) =>
      with_('idempotency-key', key, 'INVALID_HEADER', 'Idempotency-Key'),
    ),
    ...['"7"', '"x"', '1', 'W/"1"', '']
      .map((tag) => ({ 'if-match': tag }))
      .flatMap((headers): Case[] => [
        [
          `change with ${headers['if-match']}`,
          'PATCH',
          `/v1/tenants/${id}`,
          { body: { suspended: true }, headers },
          412,
          'STALE_ETAG',
          'If-Match',
        ],
        [
          `delete with ${headers['if-match']}`,
          'DELETE',
          `/v1/tenants/${id}`,
          { headers },
          412,
          'STALE_ETAG',
          'If-Match',
        ],
      ]),
  ])
  t.match(await api.tenant(id), { status: 'ready', generation: 1 })
})
