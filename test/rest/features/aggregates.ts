// Features of aggregates: of all rows, by groups, in relations and through them.
import { give, gives, rejected, type Feature } from './scene.ts'

const perDay = [
  { sold_on: '2026-01-01', sum: 10 },
  { sold_on: '2026-01-02', sum: 12.5 },
  { sold_on: '2026-01-03', sum: 20 },
]

export const aggregates: Feature[] = [
  {
    feature: '`sum`, `avg`, `min`, `max`, `count` of a column',
    here: 'same',
    check: give(
      [
        '/sales?select=amount.sum(),amount.avg()::float8,amount.min(),amount.max(),amount.count()',
        [{ sum: 42.5, avg: 10.625, min: 5.5, max: 20, count: 4 }],
      ],
      ['/books?select=isbn.count()', [{ count: 3 }]],
    ),
  },
  {
    feature: '`count()` of rows, and `count` in its older form',
    here: 'same',
    check: give(
      ['/sales?select=count()', [{ count: 4 }]],
      ['/sales?select=count', [{ count: 4 }]],
      ['/books?select=n:count()&id=gt.99&title=eq.none', [{ n: 0 }]],
    ),
  },
  {
    feature: 'renaming',
    here: 'same',
    check: give(['/sales?select=total:amount.sum(),days:sold_on.count()', [{ total: 42.5, days: 4 }]]),
  },
  {
    feature: 'casts of the arguments, and of the result',
    here: 'same',
    check: give(
      ['/authors?select=prefs->>n::int.sum(),prefs->n::numeric.max()::text', [{ sum: 10, max: '10' }]],
      ['/sales?select=amount.avg()::int', [{ avg: 11 }]],
    ),
  },
  {
    feature: 'grouping by the other columns',
    here: 'same',
    check: give(
      ['/sales?select=sold_on,amount.sum()&order=sold_on', perDay],
      [
        '/books?select=available,pages.max()&order=available',
        [
          { available: false, max: 80 },
          { available: true, max: 120 },
          { available: null, max: 300 },
        ],
      ],
    ),
  },
  {
    feature: 'grouping by paths into JSON',
    here: 'same',
    check: give(
      [
        '/authors?select=lang:prefs->>lang,count()&order=prefs->>lang.nullslast',
        [
          { lang: 'de', count: 1 },
          { lang: 'en', count: 1 },
          { lang: null, count: 1 },
        ],
      ],
      ['/books?select=size->width,count()&order=size->width.nullslast&limit=1', [{ width: 1.5, count: 1 }]],
    ),
  },
  {
    feature: 'filters, order, limit of groups',
    here: 'same',
    check: give([
      '/sales?select=sold_on,amount.sum()&order=sold_on.desc&limit=2&amount=gt.6',
      [
        { sold_on: '2026-01-03', sum: 20 },
        { sold_on: '2026-01-02', sum: 7 },
      ],
    ]),
  },
  {
    feature: 'order by a column that is not grouped',
    here: 'same',
    check: gives(
      '/sales?select=sold_on,amount.sum()&order=id',
      rejected(
        400,
        '42803',
        'Invalid query parameter "order": aggregated rows can only be ordered by columns that they are grouped by, ' +
          'and "select" has no "id" of this form.',
      ),
    ),
  },
  {
    feature: 'an embedded relation as a group',
    here: 'same',
    check: give(
      ['/sales?select=amount.sum(),editions(format)&number=eq.2', [{ sum: 7, editions: { format: 'audio' } }]],
      [
        '/books?select=count(),author:authors!author_id(name)&author=not.is.null&author.name=eq.Ada',
        [{ count: 2, author: { name: 'Ada' } }],
      ],
    ),
  },
  {
    feature: 'inside an embedded relation',
    here: 'same',
    check: give(
      [
        '/editions?select=book_id,number,sales(amount.sum(),sold_on)&sales.order=sold_on&order=book_id,number&limit=1',
        [
          {
            book_id: 1,
            number: 1,
            sales: [
              { sum: 10, sold_on: '2026-01-01' },
              { sum: 5.5, sold_on: '2026-01-02' },
            ],
          },
        ],
      ],
      [
        '/authors?select=id,books!author_id(count())&order=id',
        [
          { id: 1, books: [{ count: 2 }] },
          { id: 2, books: [{ count: 1 }] },
          { id: 3, books: [{ count: 0 }] },
        ],
      ],
    ),
  },
  {
    feature: 'grouping by columns of a spread relation',
    here: 'same',
    check: async ({ t, request }) => {
      const groups = (await request('GET', '/sales?select=amount.sum(),...editions(format)')).list()
      t.same(
        groups.sort((a, b) => Number(a['sum']) - Number(b['sum'])),
        [
          { sum: 7, format: 'audio' },
          { sum: 35.5, format: 'paper' },
        ],
      )
    },
  },
  {
    feature: 'order by columns of a spread relation, or by their aliases',
    here: 'same',
    check: give(
      [
        '/sales?select=amount.sum(),...editions(format)&order=editions(format).desc',
        [
          { sum: 35.5, format: 'paper' },
          { sum: 7, format: 'audio' },
        ],
      ],
      [
        '/sales?select=amount.sum(),...editions(kind:format)&order=editions(kind)',
        [
          { sum: 7, kind: 'audio' },
          { sum: 35.5, kind: 'paper' },
        ],
      ],
      [
        '/sales?select=amount.sum(),...editions(...books(what:title))&order=editions(what)',
        [
          { sum: 20, what: 'Lazy dogs' },
          { sum: 22.5, what: 'The quick fox' },
        ],
      ],
    ),
  },
  {
    feature: 'an embedded relation as a group, inside a spread relation',
    here: 'same',
    check: give([
      '/sales?select=amount.sum(),...editions(books(title))&book_id=eq.1',
      [{ sum: 22.5, books: { title: 'The quick fox' } }],
    ]),
  },
  {
    feature: 'of columns of a spread to-one relation: as columns of the record itself',
    here: 'same',
    check: give(
      [
        '/sales?select=sold_on,...editions(number.max(),count())&order=sold_on',
        [
          { sold_on: '2026-01-01', max: 1, count: 1 },
          { sold_on: '2026-01-02', max: 2, count: 2 },
          { sold_on: '2026-01-03', max: 1, count: 1 },
        ],
      ],
      ['/sales?select=...editions(...books(pages:pages.sum()::text))', [{ pages: '440' }]],
    ),
  },
  {
    feature: 'inside a spread to-many relation',
    here: 'same',
    check: gives(
      '/authors?select=id,...books!author_id(pages.sum())&order=id',
      rejected(400, 'PGRST127', 'Feature not implemented', {
        details: 'Aggregates are not implemented for one-to-many or many-to-many spreads.',
      }),
    ),
  },
  {
    feature: 'on the rows of a function',
    here: 'same',
    check: give(
      ['/rpc/books_of?author=1&select=pages.sum(),count()', [{ sum: 200, count: 2 }]],
      ['/rpc/totals?select=total.sum()', [{ sum: 42.5 }]],
    ),
  },
  {
    feature: 'an aggregate that the type does not have',
    here: 'same',
    check: gives(
      '/books?select=available.max()',
      rejected(404, '42883', 'function max(boolean) does not exist', {
        hint: 'No function matches the given name and argument types. You might need to add explicit type casts.',
      }),
    ),
  },
  {
    feature: 'an unknown aggregate',
    here: 'same',
    check: gives(
      '/sales?select=amount.median()',
      rejected(
        400,
        'PGRST100',
        'Invalid query parameter "select": one of count(), sum(), avg(), min(), max() is expected at character 8 of "amount.median()".',
      ),
    ),
  },
]
