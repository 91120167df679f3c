// Features of reading: the columns and their forms.
import { gives, give, rejected, rows, type Feature } from './scene.ts'

const one = (path: string) => `/books?id=eq.1&${path}`

export const reading: Feature[] = [
  {
    feature: 'all columns: no `select`, `select=*`',
    here: 'same',
    check: give(
      ['/shelves?id=eq.1', [{ id: 1, label: 'low', hall: 'east' }]],
      ['/shelves?id=eq.1&select=*', [{ id: 1, label: 'low', hall: 'east' }]],
    ),
  },
  {
    feature: 'vertical filtering: `select=a,b`',
    here: 'same',
    check: give(
      [one('select=title,id'), [{ title: 'The quick fox', id: 1 }]],
      [one('select=id, title'), [{ id: 1, title: 'The quick fox' }]],
    ),
  },
  {
    feature: '`select=` with nothing',
    here: 'same',
    check: give(['/shelves?select=&id=eq.1', [{ id: 1, label: 'low', hall: 'east' }]]),
  },
  {
    feature: 'renaming: `alias:column`',
    here: 'same',
    check: give([one('select=name:title,"a b":id'), [{ name: 'The quick fox', 'a b': 1 }]]),
  },
  {
    feature: 'casting: `column::type`',
    here: 'same',
    note: "to Postgres' own types and those of the home, except types such as `regclass`, which show names of other tenants",
    check: async (scene) => {
      await give([
        one('select=id::text,price::int,tags::text,genre::text,added::date'),
        [{ id: '1', price: 10, tags: '{red,"with, comma"}', genre: 'novel', added: '2026-01-01' }],
      ])(scene)
      await give([
        one('select=tags::varchar[],more:tags::_text'),
        [{ tags: ['red', 'with, comma'], more: ['red', 'with, comma'] }],
      ])(scene)
      await give(
        [
          one('select=genre::genre,size::size,more:genre::text'),
          [{ genre: 'novel', size: { width: 10, height: 20 }, more: 'novel' }],
        ],
        ['/books?id=eq.99&select=tags::genre[],more:tags::_genre', []],
      )(scene)
      await gives(
        one('select=title::genre'),
        rejected(400, '22P02', 'invalid input value for enum genre: "The quick fox"'),
      )(scene)
      await gives(one('select=id::genre'), rejected(400, '42846', 'cannot cast type bigint to genre'))(scene)
      for (const type of ['regclass', 'regproc', 'nowhere', '_regclass', 'regclass[]', 'pg_class'])
        await gives(one(`select=id::${type}`), rejected(400, '42704', `type "${type}" does not exist`))(scene)
      await gives(one('select=id::uuid'), rejected(400, '42846', 'cannot cast type bigint to uuid'))(scene)
    },
  },
  {
    feature: 'JSON columns: `->`, `->>`, list positions, also from the end',
    here: 'same',
    check: give([
      '/authors?id=eq.1&select=prefs->>lang,prefs->deep->a,third:prefs->list->2,prefs->list->-3,prefs->deep->a->>b,n:prefs->nothing->0',
      [{ lang: 'en', a: { b: true }, third: 3, list: 1, b: 'true', n: null }],
    ]),
  },
  {
    feature: 'JSON columns: keys with special characters',
    here: 'same',
    check: give([
      '/authors?id=eq.3&select=prefs->!@#$_d,quoted:prefs->"a b",prefs->x-y->0&prefs->!@#$_d=is.null&order=prefs->!@#$_d.desc',
      [{ '!@#$_d': null, quoted: null, 'x-y': null }],
    ]),
  },
  {
    feature: 'JSON columns with a cast',
    here: 'same',
    check: give(['/authors?id=eq.2&select=prefs->>n::int,prefs->n::text', [{ n: 10 }]]),
  },
  {
    feature: 'composite and array columns: `size->>width`, `tags->0`',
    here: 'same',
    check: give([
      one('select=size->width,size->>height,first:tags->0,tags->>1'),
      [{ width: 10, height: '20', first: 'red', tags: 'with, comma' }],
    ]),
  },
  {
    feature: 'values of every type are returned exactly: beyond 2^53, fractions of any length',
    here: 'same',
    check: async ({ t, request }) => {
      const response = await request('GET', '/books?id=eq.9007199254740993&select=id,price,gross,extra,years,tags,size')
      t.equal(
        response.text,
        '[{"id":9007199254740993,"price":12345678901234567890.12345,"gross":24691357802469135780.24690,' +
          '"extra":{"big": 9007199254740993},"years":"empty","tags":null,"size":null}]',
      )
    },
  },
  {
    feature: 'names with special characters, in quotes',
    here: 'same',
    check: give([
      '/odd%20names?select="a,b","c.d",x:"e\\"f","g h","(i)","j:k","select"',
      [{ 'a,b': 1, 'c.d': 'dot', x: 'quote', 'g h': 'space', '(i)': 'paren', 'j:k': 'colon', select: 'sel' }],
    ]),
  },
  {
    feature: 'the same column twice',
    here: 'same',
    check: async ({ t, request }) => {
      t.equal((await request('GET', one('select=id,id'))).text, '[{"id":1,"id":1}]')
    },
  },
  {
    feature: 'views',
    here: 'differs',
    note: 'only those with the rights of their caller (`security_invoker`), because the specification allows no rights of others',
    check: give([
      '/cheap_books?select=id,price&order=id',
      [
        { id: 1, price: 9.99 },
        { id: 3, price: 5.5 },
      ],
    ]),
  },
  {
    feature: 'tables without row-level security',
    here: 'absent',
    note: 'the specification demands it',
    check: gives(
      '/unprotected',
      rejected(404, 'PGRST205', "Could not find the table 'public.unprotected' in the schema cache", {
        hint: 'A new schema takes effect with POST /admin/reload-schemas.',
      }),
    ),
  },
  {
    feature: 'partitioned tables',
    here: 'same',
    check: give([
      '/events?order=id',
      [
        { id: 1, kind: 'a', at: '2026-01-01' },
        { id: 2, kind: 'b', at: '2026-01-02' },
      ],
    ]),
  },
  {
    feature: 'partitions are not served beside their table',
    here: 'same',
    check: async ({ t, request }) => {
      t.match(await request('GET', '/events_a'), { status: 404, text: /PGRST205/ })
    },
  },
  {
    feature: 'row-level security limits the rows',
    here: 'same',
    check: async ({ expect }) => {
      await expect({ path: '/drafts', as: 'ada' }, rows([{ id: 1, owner: 'ada', text: 'mine' }]))
      await expect({ path: '/drafts', as: undefined }, rows([]))
    },
  },
  {
    feature: 'computed fields: `select=*,full_name`, filters, order',
    here: 'same',
    check: async (scene) => {
      const { t, request, expect } = scene
      await give(
        [one('select=id,upper_title,shout'), [{ id: 1, upper_title: 'THE QUICK FOX', shout: 'THE QUICK FOX!' }]],
        ['/books?upper_title=like.*DOGS&shout=neq.X&select=id&order=upper_title.desc', [{ id: 2 }, { id: 3 }]],
        ['/books?select=shout,count()&id=eq.2', [{ shout: 'LAZY DOGS!', count: 1 }]],
        ['/authors?id=eq.2&select=books!author_id(upper_title)', [{ books: [{ upper_title: 'FOXES AND DOGS' }] }]],
        [
          '/rpc/books_of?author=1&select=upper_title&order=upper_title.desc&limit=1',
          [{ upper_title: 'THE QUICK FOX' }],
        ],
      )(scene)
      t.equal((await request('GET', '/books/1?select=shout')).text, '{"shout":"THE QUICK FOX!"}')
      t.equal((await request('GET', '/books?id=eq.1&select=shout&limit=2000')).text, '[{"shout":"THE QUICK FOX!"}]')
      const withCount = { headers: { prefer: 'count=exact' } }
      await expect(
        { path: '/rpc/books_of?author=1&select=shout&id=eq.1', ...withCount },
        rows([{ shout: 'THE QUICK FOX!' }], { range: '0-0/1', 'preference-applied': 'count=exact' }),
      )
      await expect(
        {
          method: 'PATCH',
          path: '/books?shout=eq.LAZY DOGS!&select=id,upper_title',
          headers: { prefer: 'return=representation' },
          body: { pages: 80 },
        },
        rows([{ id: 2, upper_title: 'LAZY DOGS' }], { 'preference-applied': 'return=representation' }),
      )
      for (const limit of ['1', '2000'])
        t.match(await request('GET', `/shelves?select=log_line&limit=${limit}`), { status: 405, text: /"25006"/ })
      t.match(await request('GET', '/books?select=secret_title'), { status: 400, text: /"42703"/ }, 'of another role')
      t.match(await request('GET', '/shelves?select=xmin'), { status: 400, text: /"42703"/ }, 'a column of the system')
      t.match(await request('PATCH', '/books?id=eq.1', { body: { shout: 'x' } }), { status: 400, text: /PGRST204/ })
    },
  },
  {
    feature: 'domain representations: casts to json, from json and from text',
    here: 'same',
    check: async (scene) => {
      await give(
        ['/addresses?mail=eq.a@b', [{ id: 1, mail: 'a@b' }]],
        ['/coded?id=eq.%23ff', [{ id: '#ff', code: 'a@b' }]],
        [
          '/coded?id=in.(%23ff,%2310)&order=id&select=id,n:id::int',
          [
            { id: '#10', n: 16 },
            { id: '#ff', n: 255 },
          ],
        ],
        ['/coded?or=(id.lt.%23ff,id.is.null)&select=id', [{ id: '#10' }]],
      )(scene)
      const write = (method: string, path: string, body: object) =>
        scene.request(method, path, { body, headers: { prefer: 'return=representation' } })
      scene.t.same((await write('POST', '/coded?columns=id,code', [{ id: '#a', code: 'x@y' }, { id: '#b' }])).list(), [
        { id: '#a', code: 'x@y' },
        { id: '#b', code: null },
      ])
      scene.t.same((await write('PATCH', '/coded?id=eq.%23a', { id: '#c' })).list(), [{ id: '#c', code: 'x@y' }])
      scene.t.same((await write('PUT', '/coded?id=eq.%23c', { id: '#c', code: 'p@q' })).list(), [
        { id: '#c', code: 'p@q' },
      ])
      scene.t.same(await scene.rows("select id, code from coded where code like '%q'"), [{ id: 12, code: 'p@q' }])
      scene.t.equal((await scene.request('DELETE', '/coded?id=in.(%23b,%23c)')).status, 204)
    },
  },
  {
    feature: 'GET of one record by its key: `/table/id`',
    here: 'differs',
    note: 'the record, as the specification demands; PostgREST returns 404 `PGRST125`',
    check: async ({ t, request, expect }) => {
      t.match(await request('GET', '/shelves/1'), { status: 200, text: '{"id":1,"label":"low","hall":"east"}' })
      await expect({ path: '/shelves/99' }, rejected(404, 'PGRST116', 'The record does not exist in "shelves".'))
      await expect(
        { path: '/lines/1' },
        rejected(404, 'PGRST125', '"lines" does not have a key of one field. Select its records with filters.'),
      )
    },
  },
]
