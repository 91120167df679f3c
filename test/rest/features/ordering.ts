// Features of ordering and paging: order, limit, offset, ranges, counts.
import { give, gives, json, rejected, rows, type Feature, type Scene } from './scene.ts'

const big = '9007199254740993'

async function inOrder(
  { t, request }: Scene,
  ...cases: readonly (readonly [order: string, ids: string])[]
): Promise<void> {
  for (const [order, ids] of cases) {
    const response = await request(
      'GET',
      `/books?select=id,author:authors!author_id(name)&order=${encodeURIComponent(order)}`,
    )
    t.equal(
      response.text
        .replaceAll(/"name":"[^"]*"/g, '')
        .replaceAll(/[^\d,]/g, '')
        .replace(big, '4')
        .replaceAll(',', ''),
      ids,
      order,
    )
  }
}

const three = [{ id: 1 }, { id: 2 }, { id: 3 }]
const list = '/shelves?select=id&order=id'

export const ordering: Feature[] = [
  {
    feature: '`order=a.desc,b.asc`',
    here: 'same',
    check: (scene) =>
      inOrder(
        scene,
        ['pages', '4213'],
        ['pages.desc', '3124'],
        ['available.desc.nullslast,pages.desc', '1423'],
        ['title.asc', '4321'],
      ),
  },
  {
    feature: '`nullsfirst`, `nullslast`',
    here: 'same',
    check: (scene) =>
      inOrder(
        scene,
        ['isbn', '1243'],
        ['isbn.nullsfirst', '3124'],
        ['isbn.desc', '3421'],
        ['isbn.desc.nullslast', '4213'],
      ),
  },
  {
    feature: 'by paths into JSON, composites and arrays',
    here: 'same',
    check: (scene) =>
      inOrder(
        scene,
        ['extra->a.desc.nullslast,id', '2134'],
        ['extra->>a.nullslast,id', '1234'],
        ['size->width.nullslast,id', '3124'],
        ['tags->>1.nullslast,id', '3124'],
      ),
  },
  {
    feature: 'related order: `order=relation(column)`, of a to-one relation',
    here: 'same',
    check: (scene) =>
      inOrder(
        scene,
        ['author(name).desc.nullslast,id', '3124'],
        ['author(prefs->>lang),id', '3124'],
        ['authors(name).desc.nullsfirst,id', '4312'],
      ),
  },
  {
    feature: 'related order by an alias',
    here: 'same',
    check: give([
      '/books?id=lt.9&select=id,a:authors!author_id(n:name)&order=a(n).desc, id.desc',
      [
        { id: 3, a: { n: 'Ben' } },
        { id: 2, a: { n: 'Ada' } },
        { id: 1, a: { n: 'Ada' } },
      ],
    ]),
  },
  {
    feature: 'related order of a to-many relation',
    here: 'same',
    check: gives(
      '/authors?select=id,books!author_id(id)&order=books(id)',
      rejected(400, 'PGRST118', "A related order on 'books' is not possible", {
        details: "'authors' and 'books' do not form a many-to-one or one-to-one relationship",
      }),
    ),
  },
  {
    feature: 'related order of a relation that is not embedded',
    here: 'same',
    check: gives(
      '/books?order=authors(name)',
      rejected(400, 'PGRST108', "'authors' is not an embedded resource in this request", {
        hint: "Verify that 'authors' is included in the 'select' query parameter.",
      }),
    ),
  },
  {
    feature: 'an unknown direction',
    here: 'same',
    check: gives(
      '/books?order=id.up',
      rejected(
        400,
        'PGRST100',
        'Invalid query parameter "order": asc, desc, nullsfirst or nullslast is expected at character 4 of "id.up".',
      ),
    ),
  },
  {
    feature: '`limit`, `offset`',
    here: 'same',
    check: async ({ expect }) => {
      await expect({ path: `${list}&limit=2` }, rows(three.slice(0, 2)))
      await expect({ path: `${list}&limit=2&offset=1` }, rows(three.slice(1), { range: '1-2/*' }))
      await expect({ path: `${list}&offset=2` }, rows([{ id: 3 }], { range: '2-2/*' }))
      await expect({ path: `${list}&limit=0` }, rows([]))
      await expect({ path: `${list}&offset=9` }, rows([]))
    },
  },
  {
    feature: 'no `limit`',
    here: 'differs',
    note: 'at most 1,000 rows, as with `db-max-rows`, because tenants share memory',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/lines',
          body: Array.from({ length: 1_003 }, (_, at) => ({ at })),
          headers: { prefer: 'return=minimal' },
        },
        { status: 201, headers: { 'content-range': '*/*', 'preference-applied': 'return=minimal' }, body: '' },
      )
      await expect(
        { path: '/lines?select=at&order=at', headers: { prefer: 'count=exact' } },
        rows(
          Array.from({ length: 1_000 }, (_, at) => ({ at })),
          { status: 206, range: '0-999/1003', 'preference-applied': 'count=exact' },
        ),
      )
      await expect(
        { path: '/lines?select=at&order=at&limit=1002' },
        rows(Array.from({ length: 1_002 }, (_, at) => ({ at }))),
      )
    },
  },
  {
    feature: 'a negative limit or offset',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { path: `${list}&limit=-1` },
        rejected(416, 'PGRST103', 'Requested range not satisfiable', {
          details: 'Limit should be greater than or equal to zero.',
        }),
      )
      await expect({ path: `${list}&offset=-1` }, rows(three))
    },
  },
  {
    feature: '`Range`, also with `limit` and `offset`: the intersection',
    here: 'same',
    check: async ({ expect }) => {
      await expect({ path: list, headers: { range: '0-1', 'range-unit': 'items' } }, rows(three.slice(0, 2)))
      await expect({ path: list, headers: { range: '1-' } }, rows(three.slice(1), { range: '1-2/*' }))
      await expect(
        { path: `${list}&limit=1`, headers: { range: '1-9' } },
        rejected(416, 'PGRST103', 'Requested range not satisfiable', {
          details: 'The Range header and limit and offset have no rows in common.',
        }),
      )
      await expect({ path: `${list}&limit=2`, headers: { range: '1-9' } }, rows([{ id: 2 }], { range: '1-1/*' }))
      await expect({ path: list, headers: { range: 'bytes=0-1', 'range-unit': 'bytes' } }, rows(three))
    },
  },
  {
    feature: 'a range that ends before it begins',
    here: 'same',
    check: gives(
      { path: list, headers: { range: '2-1' } },
      rejected(416, 'PGRST103', 'Requested range not satisfiable', {
        details: 'The lower boundary must be lower than or equal to the upper boundary in the Range header.',
      }),
    ),
  },
  {
    feature: '`Prefer: count=exact`: 200 for all records, 206 for a part, 416 beyond the end',
    here: 'same',
    check: async ({ expect }) => {
      const headers = { prefer: 'count=exact' }
      const applied = { 'preference-applied': 'count=exact' }
      await expect({ path: list, headers }, rows(three, { range: '0-2/3', ...applied }))
      await expect(
        { path: `${list}&limit=1&offset=1`, headers },
        rows([{ id: 2 }], { status: 206, range: '1-1/3', ...applied }),
      )
      await expect({ path: `${list}&offset=3`, headers }, rows([], { status: 206, range: '*/3', ...applied }))
      await expect({ path: `${list}&id=gt.9`, headers }, rows([], { range: '*/0', ...applied }))
      const beyond = rejected(416, 'PGRST103', 'Requested range not satisfiable', {
        details: 'An offset of 4 was requested, but there are only 3 rows.',
      })
      await expect(
        { path: `${list}&offset=4`, headers },
        { ...beyond, headers: { ...beyond.headers, 'content-range': '*/3' } },
      )
    },
  },
  {
    feature: '`count=exact` with `!inner`, aggregates and filters on relations',
    here: 'same',
    check: async ({ expect }) => {
      const headers = { prefer: 'count=exact' }
      const applied = { 'preference-applied': 'count=exact' }
      await expect(
        { path: '/books?select=id,shelves!inner(id)&shelves.id=eq.1&limit=1', headers },
        rows([{ id: 1, shelves: [{ id: 1 }] }], { status: 206, range: '0-0/2', ...applied }),
      )
      await expect(
        { path: '/shelves?select=id,books()&books=is.null', headers },
        rows([{ id: 3 }], { range: '0-0/1', ...applied }),
      )
      await expect(
        { path: '/sales?select=sold_on,count()&order=sold_on&limit=1', headers },
        rows([{ sold_on: '2026-01-01', count: 1 }], { status: 206, range: '0-0/3', ...applied }),
      )
    },
  },
  {
    feature: '`count=planned`',
    here: 'same',
    check: async ({ t, request, tenant, expect }) => {
      await tenant.rows('analyze shelves')
      await expect(
        { path: `${list}&limit=1`, headers: { prefer: 'count=planned' } },
        rows([{ id: 1 }], { status: 206, range: '0-0/3', 'preference-applied': 'count=planned' }),
      )
      t.match(await request('GET', `${list}&limit=1&id=gte.2`, { headers: { prefer: 'count=planned' } }), {
        status: 206,
        headers: { 'content-range': /^0-0\/[23]$/ },
      })
    },
  },
  {
    feature: '`count=estimated`',
    here: 'same',
    note: 'exact up to 1,000',
    check: async ({ expect, tenant }) => {
      await expect(
        { path: `${list}&limit=1`, headers: { prefer: 'count=estimated' } },
        rows([{ id: 1 }], { status: 206, range: '0-0/3', 'preference-applied': 'count=estimated' }),
      )
      await tenant.rows('analyze lines')
      await expect(
        { path: '/lines?select=at&order=at&limit=1', headers: { prefer: 'count=estimated' } },
        rows([{ at: 0 }], { status: 206, range: '0-0/1003', 'preference-applied': 'count=estimated' }),
      )
    },
  },
  {
    feature: 'HEAD',
    here: 'same',
    check: async ({ expect }) => {
      const headers = { 'content-type': json }
      await expect(
        { method: 'HEAD', path: `${list}&limit=1`, headers: { prefer: 'count=exact' } },
        {
          status: 206,
          headers: { ...headers, 'content-range': '0-0/3', 'preference-applied': 'count=exact' },
          body: '',
        },
      )
      await expect(
        { method: 'HEAD', path: list },
        { status: 200, headers: { ...headers, 'content-range': '0-2/*' }, body: '' },
      )
      await expect({ method: 'HEAD', path: '/nowhere' }, { status: 404, headers, body: '' })
    },
  },
  {
    feature: 'paging by keys: `cursor=`',
    here: 'differs',
    note: 'an addition; PostgREST rejects the parameter',
    check: async ({ t, request, expect }) => {
      const first = await request('GET', `${list}&limit=2&cursor=`)
      t.same(first.list(), three.slice(0, 2))
      await expect({ path: `${list}&limit=2&cursor=${String(first.headers['next-cursor'])}` }, rows([{ id: 3 }]))
      t.equal((await request('GET', `${list.replace('id', 'id,id')}&limit=1&cursor=`)).text, '[{"id":1,"id":1}]')
    },
  },
]
