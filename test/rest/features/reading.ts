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
  { feature: '`select=` with nothing', here: 'same', check: give(['/shelves?select=', [{}, {}, {}]]) },
  {
    feature: 'renaming: `alias:column`',
    here: 'same',
    check: give([one('select=name:title,"a b":id'), [{ name: 'The quick fox', 'a b': 1 }]]),
  },
  {
    feature: 'casting: `column::type`',
    here: 'differs',
    note: "only to Postgres' own types; in PostgREST to any type",
    check: async (scene) => {
      await give([
        one('select=id::text,price::int,tags::text,genre::text,added::date'),
        [{ id: '1', price: 10, tags: '{red,"with, comma"}', genre: 'novel', added: '2026-01-01' }],
      ])(scene)
      await gives(
        one('select=id::genre'),
        rejected(400, '42704', 'Invalid query parameter "select": values cannot be cast to the type "genre".'),
      )(scene)
      await gives(
        one('select=id::uuid'),
        rejected(400, '42846', 'The field cannot be cast to this type.', {
          details: 'cannot cast type bigint to uuid',
        }),
      )(scene)
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
    note: 'only those with the rights of their caller (`security_invoker`)',
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
    check: gives(
      '/unprotected',
      rejected(404, 'PGRST205', 'The collection "unprotected" does not exist.', {
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
    feature: 'row-level security limits the rows',
    here: 'same',
    check: async ({ expect }) => {
      await expect({ path: '/drafts', as: 'ada' }, rows([{ id: 1, owner: 'ada', text: 'mine' }]))
      await expect({ path: '/drafts', as: undefined }, rows([]))
    },
  },
  {
    feature: 'computed fields: `select=*,full_name`',
    here: 'absent',
    check: gives(
      one('select=*,upper_title'),
      rejected(400, '42703', 'Invalid query parameter "select": the collection "books" has no field "upper_title".'),
    ),
  },
  {
    feature: 'domain representations',
    here: 'differs',
    note: 'a value of a domain has the form of its base type',
    check: give(['/addresses?mail=eq.a@b', [{ id: 1, mail: 'a@b' }]]),
  },
  {
    feature: 'GET of one record by its key: `/table/id`',
    here: 'differs',
    note: 'the record; PostgREST returns 404 `PGRST125`',
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
