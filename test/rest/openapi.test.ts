// The interface describes itself: every served collection and function, and nothing else.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'

t.test('The description of the interface', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await query(
    tenant.home.adminUrl,
    `
    create table shelves (id int primary key, label varchar not null default 'new', tags text[], extra jsonb);
    comment on table shelves is 'Where books stand';
    create table books (id int primary key, shelf int references shelves (id), secret text);
    create table hidden (id int primary key);
    alter table shelves enable row level security;
    alter table books enable row level security;
    create function how_many(shelf int, minimum int default 0) returns bigint language sql stable as 'select count(*) from books';
    create function sell(book int) returns void language sql as 'delete from books where id = book'`,
  )
  const before = (await tenant.request('GET', '/rest/v1/', { headers: { accept: 'application/openapi+json' } })).json()
  t.notOk('shelves' in (before['definitions'] as object), 'nothing before a reload')
  await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })

  const response = await tenant.request('GET', '/rest/v1/', { headers: { accept: 'application/openapi+json' } })
  t.equal(response.headers['content-type'], 'application/openapi+json; charset=utf-8')
  const description = response.json() as {
    paths: Record<string, Record<string, unknown>>
    definitions: Record<string, { required?: string[]; properties: Record<string, unknown> }>
    parameters: Record<string, unknown>
    basePath: string
  }
  t.equal(description.basePath, '/rest/v1')
  t.match(description.definitions['shelves'], {
    description: 'Where books stand',
    type: 'object',
    required: ['id', 'label'],
    properties: {
      id: { type: 'integer', format: 'integer', description: /<pk\/>/ },
      label: { type: 'string', format: 'character varying', default: "'new'::character varying" },
      tags: { type: 'array', items: { type: 'string' } },
      extra: { format: 'jsonb' },
    },
  })
  t.match(description.definitions['books']?.properties['shelf'], { description: /<fk table='shelves' column='id'\/>/ })
  t.same(Object.keys(description.paths['/books'] ?? {}), ['get', 'post', 'patch', 'delete'])
  t.same(Object.keys(description.paths['/storage_objects'] ?? {}), ['get'])
  t.same(Object.keys(description.paths['/rpc/how_many'] ?? {}), ['get', 'post'])
  t.same(Object.keys(description.paths['/rpc/sell'] ?? {}), ['post'])
  t.match(description.paths['/rpc/how_many'], { post: { parameters: [{ schema: { required: ['shelf'] } }] } })
  t.notOk('/hidden' in description.paths, 'a table without row-level security is not served')
  for (const reference of response.text.matchAll(/"#\/(parameters|definitions)\/([^"]+)"/g)) {
    t.ok(
      (reference[1] === 'parameters' ? description.parameters : description.definitions)[reference[2] ?? ''],
      reference[0],
    )
  }
  t.equal(
    (await tenant.request('GET', '/rest/v1/books', { headers: { accept: 'application/openapi+json' } })).status,
    406,
  )
  const { data } = await tenant.client(undefined).from('books').select()
  t.same(data, [])
})
