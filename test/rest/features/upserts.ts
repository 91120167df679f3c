// Features of upserts: merging and ignoring duplicates, and PUT.
import { rejected, type Feature } from './scene.ts'
import { changed } from './writing.ts'

const merge = { prefer: 'resolution=merge-duplicates, return=representation' }
const merged = 'resolution=merge-duplicates, return=representation'
const ignore = { prefer: 'resolution=ignore-duplicates, return=representation' }
const ignored = 'resolution=ignore-duplicates, return=representation'

export const upserts: Feature[] = [
  {
    feature: '`resolution=merge-duplicates` by the primary key: 201',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/shelves?order=id',
          body: [
            { id: 1, label: 'low', hall: 'a' },
            { id: 10, label: 'ten', hall: 'b' },
          ],
          headers: merge,
        },
        changed(201, '*/*', merged, [
          { id: 1, label: 'low', hall: 'a' },
          { id: 10, label: 'ten', hall: 'b' },
        ]),
      )
    },
  },
  {
    feature: '200 when nothing was inserted',
    here: 'same',
    check: async ({ expect, rows, t }) => {
      await expect(
        { method: 'POST', path: '/shelves', body: [{ id: 1, label: 'low', hall: 'c' }], headers: merge },
        changed(200, '*/*', merged, [{ id: 1, label: 'low', hall: 'c' }]),
      )
      await expect(
        {
          method: 'POST',
          path: '/shelves',
          body: { id: 1, label: 'low', hall: 'd' },
          headers: { prefer: 'resolution=merge-duplicates,return=minimal,count=exact' },
        },
        changed(200, '*/1', 'resolution=merge-duplicates, return=minimal, count=exact'),
      )
      t.same(await rows('select hall from shelves where id = 1'), [{ hall: 'd' }])
    },
  },
  {
    feature: 'omitted columns keep their values',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'POST', path: '/shelves', body: { id: 2, label: 'higher' }, headers: merge },
        changed(200, '*/*', merged, [{ id: 2, label: 'higher', hall: 'west' }]),
      )
      await expect(
        { method: 'POST', path: '/shelves', body: { id: 2 }, headers: merge },
        rejected(400, '23502', 'null value in column "label" of relation "shelves" violates not-null constraint'),
      )
    },
  },
  {
    feature: 'a merge of defaults only',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'POST', path: '/authors?select=id', body: {}, headers: merge },
        rejected(400, '23502', 'null value in column "name" of relation "authors" violates not-null constraint'),
      )
      await expect(
        { method: 'POST', path: '/drafts?on_conflict=id&select=id', body: [{ id: 1 }], headers: merge },
        changed(200, '*/*', merged, [{ id: 1 }]),
      )
    },
  },
  {
    feature: '`resolution=ignore-duplicates`',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/shelves',
          body: [
            { id: 2, label: 'x' },
            { id: 11, label: 'eleven' },
          ],
          headers: ignore,
        },
        changed(201, '*/*', ignored, [{ id: 11, label: 'eleven', hall: null }]),
      )
      await expect(
        { method: 'POST', path: '/shelves', body: [{ id: 2, label: 'x' }], headers: ignore },
        changed(201, '*/*', ignored, []),
      )
    },
  },
  {
    feature: '`on_conflict`: a unique constraint',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/shelves?on_conflict=label',
          body: { id: 3, label: 'empty', hall: 'n' },
          headers: merge,
        },
        changed(200, '*/*', merged, [{ id: 3, label: 'empty', hall: 'n' }]),
      )
      await expect(
        { method: 'POST', path: '/shelves?on_conflict=label', body: { id: 12, label: 'empty' }, headers: ignore },
        changed(201, '*/*', ignored, []),
      )
      await expect(
        { method: 'POST', path: '/shelves?on_conflict=label', body: { id: 1, label: 'new' }, headers: merge },
        rejected(409, '23505', 'duplicate key value violates unique constraint "shelves_pkey"'),
      )
    },
  },
  {
    feature: 'keys of several columns',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/editions?order=number',
          body: [
            { book_id: 1, number: 1, format: 'cloth' },
            { book_id: 1, number: 3, format: 'film' },
          ],
          headers: merge,
        },
        changed(201, '*/*', merged, [
          { book_id: 1, number: 1, format: 'cloth' },
          { book_id: 1, number: 3, format: 'film' },
        ]),
      )
      await expect(
        {
          method: 'POST',
          path: '/book_shelves?on_conflict=shelf_id,book_id',
          body: { book_id: 1, shelf_id: 1 },
          headers: merge,
        },
        changed(200, '*/*', merged, [{ book_id: 1, shelf_id: 1 }]),
      )
    },
  },
  {
    feature: 'views and partitioned tables',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/cheap_books?on_conflict=id',
          body: { id: 1, title: 'The quick fox', price: 8 },
          headers: merge,
        },
        changed(200, '*/*', merged, [{ id: 1, title: 'The quick fox', price: 8, author_id: 1 }]),
      )
      await expect(
        {
          method: 'POST',
          path: '/events?order=id',
          body: [
            { id: 1, kind: 'a', at: '2027-01-01' },
            { id: 5, kind: 'a', at: '2027-01-02' },
          ],
          headers: merge,
        },
        changed(201, '*/*', merged, [
          { id: 1, kind: 'a', at: '2027-01-01' },
          { id: 5, kind: 'a', at: '2027-01-02' },
        ]),
      )
      await expect(
        { method: 'POST', path: '/events', body: { id: 1, kind: 'a', at: '2027-01-03' }, headers: merge },
        changed(200, '*/*', merged, [{ id: 1, kind: 'a', at: '2027-01-03' }]),
      )
    },
  },
  {
    feature: 'columns with special characters in their names',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/odd%20names?on_conflict="a,b"&select=is_new,"c.d"',
          body: { 'a,b': 1, is_new: 'old' },
          headers: merge,
        },
        changed(200, '*/*', merged, [{ is_new: 'old', 'c.d': 'dot' }]),
      )
    },
  },
  {
    feature: '`missing=default` with an upsert',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/books?select=id,pages&order=id&columns=id,title,pages',
          body: [
            { id: 2, title: 'Lazy dogs' },
            { id: 20, title: 'x', pages: 7 },
          ],
          headers: { prefer: `${merge.prefer}, missing=default` },
        },
        changed(201, '*/*', `${merged}, missing=default`, [
          { id: 2, pages: 100 },
          { id: 20, pages: 7 },
        ]),
      )
    },
  },
  {
    feature: '`on_conflict` of columns that are not unique',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'POST', path: '/shelves?on_conflict=hall', body: { id: 1, label: 'low', hall: 'a' }, headers: merge },
        rejected(400, '42P10', 'there is no unique or exclusion constraint matching the ON CONFLICT specification'),
      )
      await expect(
        { method: 'POST', path: '/shelves?on_conflict=lable', body: { id: 1 }, headers: merge },
        rejected(400, 'PGRST204', "Could not find the 'lable' column of 'shelves' in the schema cache", {
          hint: 'Did you mean "label"?',
        }),
      )
    },
  },
  {
    feature: 'a table without a primary key',
    here: 'same',
    check: async ({ expect }) => {
      for (const headers of [merge, ignore])
        await expect(
          { method: 'POST', path: '/lines', body: { at: 1 }, headers },
          changed(201, '*/*', 'return=representation', [{ entry: null, at: 1 }]),
        )
    },
  },
  {
    feature: 'a record twice in one body',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/shelves',
          body: [
            { id: 30, label: 'a' },
            { id: 30, label: 'b' },
          ],
          headers: merge,
        },
        rejected(400, '21000', 'ON CONFLICT DO UPDATE command cannot affect row a second time', {
          hint: 'Ensure that no rows proposed for insertion within the same command have duplicate constrained values.',
        }),
      )
    },
  },
  {
    feature: 'PUT of one record: 201 when it is new, else 200; 204 without a representation',
    here: 'differs',
    note: 'without `Prefer` and a profile, callers of the specification receive the record',
    check: async ({ expect }) => {
      const headers = { prefer: 'return=representation' }
      await expect(
        { method: 'PUT', path: '/shelves?id=eq.40', body: { id: 40, label: 'forty' }, headers },
        changed(201, '', 'return=representation', [{ id: 40, label: 'forty', hall: null }]),
      )
      await expect(
        { method: 'PUT', path: '/shelves?id=eq.40', body: [{ id: 40, label: 'forty', hall: 'h' }], headers },
        changed(200, '', 'return=representation', [{ id: 40, label: 'forty', hall: 'h' }]),
      )
      await expect(
        {
          method: 'PUT',
          path: '/shelves?id=eq.40',
          body: { id: 40, label: 'forty' },
          headers: { 'content-profile': 'public' },
        },
        changed(204, ''),
      )
      await expect(
        {
          method: 'PUT',
          path: '/shelves?id=eq.41',
          body: { id: 41, label: 'new' },
          headers: { prefer: 'return=minimal' },
        },
        changed(201, '', 'return=minimal'),
      )
      await expect(
        { method: 'PUT', path: '/shelves?id=eq.40&select=hall', body: { id: 40, label: 'forty', hall: 'i' } },
        changed(200, '', '', [{ hall: 'i' }]),
      )
      await expect(
        {
          method: 'PUT',
          path: '/editions?number=eq.9&book_id=eq.1',
          body: { book_id: 1, number: 9, format: 'x' },
          headers,
        },
        changed(201, '', 'return=representation', [{ book_id: 1, number: 9, format: 'x' }]),
      )
    },
  },
  {
    feature: 'PUT compares keys by the rules of their type',
    here: 'same',
    check: async ({ t, request, rows }) => {
      const put = (id: string, body: string) =>
        request('PUT', `/books?id=eq.${id}`, {
          body,
          headers: { 'content-type': 'application/json', prefer: 'return=minimal' },
        })
      t.equal((await put('9007199254740995', '{"id":9007199254740995,"title":"exact"}')).status, 201)
      t.equal((await put('9007199254740996', '{"id":9007199254740997,"title":"another"}')).status, 400)
      t.equal((await put('09007199254740995', '{"id":"9007199254740995","title":"again"}')).status, 204)
      t.same(await rows('select id::text, title from books where id > 9007199254740993'), [
        { id: '9007199254740995', title: 'again' },
      ])
    },
  },
  {
    feature: 'PUT with another key in its body',
    here: 'same',
    check: async ({ expect }) => {
      const other = rejected(400, 'PGRST115', 'Payload values do not match URL in primary key column(s)')
      for (const body of [
        { id: 51, label: 'x' },
        { label: 'x' },
        [
          { id: 51, label: 'x' },
          { id: 52, label: 'y' },
        ],
        [],
      ])
        await expect({ method: 'PUT', path: '/shelves?id=eq.50', body }, other)
    },
  },
  {
    feature: 'PUT with other filters than the key',
    here: 'same',
    check: async ({ expect }) => {
      const wrong = rejected(
        405,
        'PGRST105',
        "Filters must include all and only primary key columns with 'eq' operators",
      )
      for (const filters of [
        '',
        '?id=gt.50',
        '?id=eq.50&label=eq.x',
        '?or=(id.eq.50)',
        '?id=not.eq.50',
        '?id=eq(any).{50}',
      ])
        await expect({ method: 'PUT', path: `/shelves${filters}`, body: { id: 50, label: 'x' } }, wrong)
      await expect({ method: 'PUT', path: '/lines?at=eq.1', body: { at: 1 } }, wrong)
    },
  },
  {
    feature: 'PUT with limit or offset',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        { method: 'PUT', path: '/shelves?id=eq.50&limit=1', body: { id: 50, label: 'x' } },
        rejected(400, 'PGRST114', 'limit/offset querystring parameters are not allowed for PUT'),
      )
    },
  },
]
