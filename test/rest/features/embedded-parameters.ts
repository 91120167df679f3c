// Features of resource embedding: filters, order and pages of embedded rows, spreads, and rejected requests.
import { few } from './embedding.ts'
import { give, gives, rejected, rows, type Feature } from './scene.ts'

export const embeddedParameters: Feature[] = [
  {
    feature: 'embedded filters',
    here: 'same',
    check: give(
      [
        '/authors?select=id,books!author_id(id)&books.price=gt.10&order=id',
        [
          { id: 1, books: [{ id: 2 }] },
          { id: 2, books: [] },
          { id: 3, books: [] },
        ],
      ],
      [
        `/books?${few}&select=id,author:authors!author_id(name)&author.name=eq.Ben`,
        [
          { id: 1, author: null },
          { id: 2, author: null },
          { id: 3, author: { name: 'Ben' } },
        ],
      ],
    ),
  },
  {
    feature: 'embedded `or`, `not.and`',
    here: 'same',
    check: give(
      [
        '/authors?select=id,books!author_id(id)&books.or=(price.gt.10,pages.gt.200)&order=id',
        [
          { id: 1, books: [{ id: 2 }] },
          { id: 2, books: [{ id: 3 }] },
          { id: 3, books: [] },
        ],
      ],
      [
        '/authors?select=id,books!author_id(id)&books.not.and=(price.gt.10,pages.lt.200)&order=id',
        [
          { id: 1, books: [{ id: 1 }] },
          { id: 2, books: [{ id: 3 }] },
          { id: 3, books: [] },
        ],
      ],
    ),
  },
  {
    feature: 'embedded order, limit and offset',
    here: 'same',
    check: give(
      [
        '/authors?id=eq.1&select=id,books!author_id(id)&books.order=price.desc&books.limit=1',
        [{ id: 1, books: [{ id: 2 }] }],
      ],
      [
        '/authors?id=eq.1&select=id,books!author_id(id)&books.order=price.desc&books.offset=1',
        [{ id: 1, books: [{ id: 1 }] }],
      ],
      [
        '/authors?id=eq.1&select=id,books!author_id(id,shelves(id))&books.order=id&books.shelves.order=id.desc&books.shelves.limit=1',
        [
          {
            id: 1,
            books: [
              { id: 1, shelves: [{ id: 2 }] },
              { id: 2, shelves: [{ id: 2 }] },
            ],
          },
        ],
      ],
    ),
  },
  {
    feature: 'parameters by the alias, or by the relation',
    here: 'same',
    check: give(
      [
        '/authors?id=eq.1&select=id,long:books!author_id(id),short:books!author_id(id)&long.pages=gte.100&short.pages=lt.100',
        [{ id: 1, long: [{ id: 1 }], short: [{ id: 2 }] }],
      ],
      ['/authors?id=eq.1&select=mine:books!author_id(id)&books.pages=gte.100', [{ mine: [{ id: 1 }] }]],
    ),
  },
  {
    feature: '`!inner`: top-level filtering',
    here: 'same',
    check: give(
      ['/authors?select=id,books!author_id!inner(id)&books.price=gt.10', [{ id: 1, books: [{ id: 2 }] }]],
      ['/books?select=id,authors!inner!author_id(name)&authors.name=eq.Ben', [{ id: 3, authors: { name: 'Ben' } }]],
      [
        '/shelves?select=id,books!inner(id,editions!inner(number))&books.editions.number=eq.2',
        [
          { id: 1, books: [{ id: 1, editions: [{ number: 2 }] }] },
          { id: 2, books: [{ id: 1, editions: [{ number: 2 }] }] },
        ],
      ],
    ),
  },
  {
    feature: '`!left`',
    here: 'same',
    check: give([
      `/books?${few}&select=id,authors!author_id!left(name)&authors.name=eq.Ben`,
      [
        { id: 1, authors: null },
        { id: 2, authors: null },
        { id: 3, authors: { name: 'Ben' } },
      ],
    ]),
  },
  {
    feature: 'null filtering: `relation=is.null`, `not.is.null`',
    here: 'same',
    check: give(
      ['/authors?select=id,books!author_id(id)&books=is.null', [{ id: 3, books: [] }]],
      [
        '/authors?select=id,profiles(bio)&profiles=not.is.null&order=id',
        [
          { id: 1, profiles: { bio: 'first' } },
          { id: 2, profiles: { bio: 'second' } },
        ],
      ],
      ['/shelves?select=id,books(id)&books.id=eq.3&books=not.is.null', [{ id: 1, books: [{ id: 3 }] }]],
    ),
  },
  {
    feature: 'null filtering inside `or`',
    here: 'same',
    check: give(
      ['/authors?select=id,books!author_id(),profiles()&or=(books.is.null,profiles.is.null)', [{ id: 3 }]],
      [
        '/authors?select=id,books!author_id(),profiles()&books.price=gt.10&profiles.bio=eq.second' +
          '&or=(books.not.is.null,profiles.not.is.null)&order=id',
        [{ id: 1 }, { id: 2 }],
      ],
      ['/authors?select=id,books!author_id()&or=(books.is.null,name.eq.Ada)&order=id', [{ id: 1 }, { id: 3 }]],
    ),
  },
  {
    feature: 'empty embed: `relation()`',
    here: 'same',
    check: give(
      ['/authors?select=id,books!author_id()&books.price=gt.10&books=not.is.null', [{ id: 1 }]],
      ['/shelves?select=id,books!inner()&order=id', [{ id: 1 }, { id: 2 }]],
      ['/authors?select=name,books!author_id(shelves())&order=id&limit=1', [{ name: 'Ada' }]],
      [
        '/authors?select=id,books!author_id(shelves())&books.shelves.label=eq.high' +
          '&books.shelves=not.is.null&books=not.is.null',
        [{ id: 1 }],
      ],
    ),
  },
  {
    feature: 'spread of a to-one relation',
    here: 'same',
    check: give(
      [
        `/books?${few}&select=id,...authors!author_id(author:name,lang:prefs->>lang)`,
        [
          { id: 1, author: 'Ada', lang: 'en' },
          { id: 2, author: 'Ada', lang: 'en' },
          { id: 3, author: 'Ben', lang: 'de' },
        ],
      ],
      ['/books?id=eq.9007199254740993&select=title,...authors!author_id(name)', [{ title: 'Big', name: null }]],
      [
        '/sales?select=amount,...editions(format,...books(title,authors!author_id(name)))&order=id&limit=1',
        [{ amount: 10, format: 'paper', title: 'The quick fox', authors: { name: 'Ada' } }],
      ],
      [
        '/books?id=eq.1&select=id,shelves:book_shelves(shelf_id,...shelves(label))&shelves.order=shelf_id',
        [
          {
            id: 1,
            shelves: [
              { shelf_id: 1, label: 'low' },
              { shelf_id: 2, label: 'high' },
            ],
          },
        ],
      ],
    ),
  },
  {
    feature: 'spread of a to-many relation: arrays',
    here: 'same',
    check: give(
      [
        '/shelves?select=label,...books(id,title)&books.order=id&order=id',
        [
          { label: 'low', id: [1, 3], title: ['The quick fox', 'Foxes and dogs'] },
          { label: 'high', id: [1, 2], title: ['The quick fox', 'Lazy dogs'] },
          { label: 'empty', id: [], title: [] },
        ],
      ],
      [
        '/shelves?select=label,...books(titles:title)&books.order=id.desc&id=eq.1',
        [{ label: 'low', titles: ['Foxes and dogs', 'The quick fox'] }],
      ],
    ),
  },
  {
    feature: 'on the rows of a function',
    here: 'same',
    check: give([
      '/rpc/books_of?author=1&select=id,shelves(label)&shelves.order=id&order=id.desc',
      [
        { id: 2, shelves: [{ label: 'high' }] },
        { id: 1, shelves: [{ label: 'low' }, { label: 'high' }] },
      ],
    ]),
  },
  {
    feature: 'an unknown relation',
    here: 'same',
    check: gives(
      '/books?select=id,edition(number)',
      rejected(400, 'PGRST200', "Could not find a relationship between 'books' and 'edition' in the schema cache", {
        details:
          "Searched for a foreign key relationship between 'books' and 'edition' in the schema 'public', but no matches were found.",
        hint: "Perhaps you meant 'editions' instead of 'edition'.",
      }),
    ),
  },
  {
    feature: 'a hint that matches no relationship',
    here: 'same',
    check: gives(
      '/books?select=id,authors!title(name)',
      rejected(400, 'PGRST200', "Could not find a relationship between 'books' and 'authors' in the schema cache", {
        details:
          "Searched for a foreign key relationship between 'books' and 'authors' using the hint 'title'" +
          " in the schema 'public', but no matches were found.",
      }),
    ),
  },
  {
    feature: 'parameters of a relation that is not embedded',
    here: 'same',
    check: gives(
      '/books?shelves.id=eq.1',
      rejected(400, 'PGRST108', "'shelves' is not an embedded resource in this request", {
        hint: "Verify that 'shelves' is included in the 'select' query parameter.",
      }),
    ),
  },
  {
    feature: "relations through views' columns",
    here: 'same',
    check: give(
      [
        '/cheap_books?select=id,authors(name),shelves(id)&shelves.order=id&order=id',
        [
          { id: 1, authors: { name: 'Ada' }, shelves: [{ id: 1 }, { id: 2 }] },
          { id: 3, authors: { name: 'Ben' }, shelves: [{ id: 1 }] },
        ],
      ],
      [
        '/authors?select=id,cheap_books(id)&cheap_books=not.is.null&order=id',
        [
          { id: 1, cheap_books: [{ id: 1 }] },
          { id: 2, cheap_books: [{ id: 3 }] },
        ],
      ],
      [
        '/author_list?select=name,cheap_books!inner(title)&name=eq.Ben',
        [{ name: 'Ben', cheap_books: [{ title: 'Foxes and dogs' }] }],
      ],
      [
        '/shelves?select=cheap_books(id,author_list(number))&id=eq.2',
        [{ cheap_books: [{ id: 1, author_list: { number: 1 } }] }],
      ],
    ),
  },
  {
    feature: 'relations through views of several tables, with renamed and computed columns',
    here: 'same',
    check: give(
      [
        '/book_list?select=letters,authors(name),editions(number)&editions.order=number&book=lt.3&order=letters',
        [
          { letters: 9, authors: { name: 'Ada' }, editions: [{ number: 1 }] },
          { letters: 13, authors: { name: 'Ada' }, editions: [{ number: 1 }, { number: 2 }] },
        ],
      ],
      [
        '/profiles?select=bio,authors(book_list(title))&order=author_id.desc&limit=1',
        [{ bio: 'second', authors: { book_list: [{ title: 'Foxes and dogs' }] } }],
      ],
      ['/editions?book_id=eq.2&select=...book_list(name)', [{ name: 'Ada' }]],
    ),
  },
  {
    feature: 'a view of one table has its key',
    here: 'same',
    check: async ({ t, request }) => {
      t.equal((await request('GET', '/cheap_books/3?select=title')).text, '{"title":"Foxes and dogs"}')
      t.match(await request('GET', '/book_list/3'), { status: 404, text: /PGRST125/ })
    },
  },
  {
    feature: 'computed relationships',
    here: 'same',
    check: async (scene) => {
      const { t, request, expect } = scene
      await give(
        [
          '/authors?select=id,latest_book(title),mine:works(id)&mine.order=id&order=latest_book(title).desc.nullslast&limit=2',
          [
            { id: 1, latest_book: { title: 'Lazy dogs' }, mine: [{ id: 1 }, { id: 2 }] },
            { id: 2, latest_book: { title: 'Foxes and dogs' }, mine: [{ id: 3 }] },
          ],
        ],
        ['/authors?select=id,works!inner()&works.pages=gt.200', [{ id: 2 }]],
        [
          '/authors?select=id,...latest_book(title,upper_title)&latest_book=is.null',
          [{ id: 3, title: null, upper_title: null }],
        ],
        [
          '/cheap_books?id=eq.1&select=authors(latest_book(shelves(label)))',
          [{ authors: { latest_book: { shelves: [{ label: 'high' }] } } }],
        ],
      )(scene)
      const changed = {
        method: 'PATCH',
        path: '/authors?id=eq.2&select=id,latest_book(id)',
        body: { born: '1900-01-01' },
      }
      await expect(
        { ...changed, headers: { prefer: 'return=representation' } },
        rows([{ id: 2, latest_book: { id: 3 } }], { 'preference-applied': 'return=representation' }),
      )
      t.match(await request('GET', '/authors?select=works(id)&order=works(id)'), { status: 400, text: /PGRST118/ })
      t.match(await request('GET', '/authors?select=secret_works(id)'), { status: 400, text: /PGRST200/ })
    },
  },
]
