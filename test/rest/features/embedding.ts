// Features of resource embedding: rows of related tables with each row, by foreign keys.
import { give, gives, rejected, type Feature } from './scene.ts'

const ways = [
  {
    cardinality: 'many-to-one',
    embedding: 'books with authors',
    relationship: 'books_author_id_fkey using books(author_id) and authors(id)',
  },
  {
    cardinality: 'many-to-one',
    embedding: 'books with authors',
    relationship: 'books_editor_id_fkey using books(editor_id) and authors(id)',
  },
]
const ambiguous = rejected(
  300,
  'PGRST201',
  "Could not embed because more than one relationship was found for 'books' and 'authors'",
  {
    details: ways,
    hint:
      "Try changing 'authors' to one of the following: 'authors!books_author_id_fkey', 'authors!books_editor_id_fkey'. " +
      "Find the desired relationship in the 'details' key.",
  },
)
export const few = 'id=lt.9&order=id'
const byAuthor = (item: string) => `/books?${few}&select=id,${item}`

export const embedding: Feature[] = [
  {
    feature: 'many-to-one',
    here: 'same',
    check: give(
      ['/sales?select=amount,editions(format)&order=id&limit=1', [{ amount: 10, editions: { format: 'paper' } }]],
      ['/books?id=eq.9007199254740993&select=title,authors!author_id(name)', [{ title: 'Big', authors: null }]],
    ),
  },
  {
    feature: 'one-to-many',
    here: 'same',
    check: give([
      '/authors?select=name,books!author_id(title)&books.order=id&order=id',
      [
        { name: 'Ada', books: [{ title: 'The quick fox' }, { title: 'Lazy dogs' }] },
        { name: 'Ben', books: [{ title: 'Foxes and dogs' }] },
        { name: 'Cyd', books: [] },
      ],
    ]),
  },
  {
    feature: 'one-to-one, in both directions',
    here: 'same',
    check: give(
      [
        '/authors?select=name,profiles(bio)&order=id',
        [
          { name: 'Ada', profiles: { bio: 'first' } },
          { name: 'Ben', profiles: { bio: 'second' } },
          { name: 'Cyd', profiles: null },
        ],
      ],
      [
        '/profiles?select=bio,authors(name)&order=author_id',
        [
          { bio: 'first', authors: { name: 'Ada' } },
          { bio: 'second', authors: { name: 'Ben' } },
        ],
      ],
    ),
  },
  {
    feature: 'many-to-many',
    here: 'same',
    check: give([
      '/books?select=id,shelves(label)&shelves.order=id&id=lt.9&order=id',
      [
        { id: 1, shelves: [{ label: 'low' }, { label: 'high' }] },
        { id: 2, shelves: [{ label: 'high' }] },
        { id: 3, shelves: [{ label: 'low' }] },
      ],
    ]),
  },
  {
    feature: 'foreign keys of several columns',
    here: 'same',
    check: give([
      '/editions?select=number,sales(amount),books(title)&sales.order=amount&book_id=eq.1&order=number',
      [
        { number: 1, sales: [{ amount: 5.5 }, { amount: 10 }], books: { title: 'The quick fox' } },
        { number: 2, sales: [{ amount: 7 }], books: { title: 'The quick fox' } },
      ],
    ]),
  },
  {
    feature: 'a table that refers to itself: by its name to-many, by the column to-one',
    here: 'same',
    check: give(
      [
        '/authors?select=name,authors(name)&authors.order=id&order=id&limit=2',
        [
          { name: 'Ada', authors: [{ name: 'Ben' }, { name: 'Cyd' }] },
          { name: 'Ben', authors: [] },
        ],
      ],
      [
        '/authors?select=name,mentor_id(name)&order=id&limit=2',
        [
          { name: 'Ada', mentor_id: null },
          { name: 'Ben', mentor_id: { name: 'Ada' } },
        ],
      ],
      [
        '/authors?select=name,mentor:mentor_id(name,pupils:authors(name))&id=eq.2',
        [{ name: 'Ben', mentor: { name: 'Ada', pupils: [{ name: 'Ben' }, { name: 'Cyd' }] } }],
      ],
    ),
  },
  {
    feature: 'several foreign keys to one table: a hint is needed',
    here: 'same',
    check: gives('/books?select=id,authors(name)', ambiguous),
  },
  {
    feature: 'hints: the foreign key, its column',
    here: 'same',
    check: give(
      ...['authors!books_editor_id_fkey(name)', 'authors!editor_id(name)'].map(
        (item) =>
          [
            byAuthor(item),
            [
              { id: 1, authors: { name: 'Ben' } },
              { id: 2, authors: { name: 'Cyd' } },
              { id: 3, authors: { name: 'Ada' } },
            ],
          ] as const,
      ),
    ),
  },
  {
    feature: 'hints: the junction table',
    here: 'same',
    check: give([
      '/shelves?select=id,books!book_shelves(id)&books.order=id&id=eq.2',
      [{ id: 2, books: [{ id: 1 }, { id: 2 }] }],
    ]),
  },
  {
    feature: 'the foreign key or its column as the target',
    here: 'same',
    check: give(
      [
        byAuthor('books_editor_id_fkey(name)'),
        [
          { id: 1, books_editor_id_fkey: { name: 'Ben' } },
          { id: 2, books_editor_id_fkey: { name: 'Cyd' } },
          { id: 3, books_editor_id_fkey: { name: 'Ada' } },
        ],
      ],
      [
        byAuthor('editor:editor_id(name)'),
        [
          { id: 1, editor: { name: 'Ben' } },
          { id: 2, editor: { name: 'Cyd' } },
          { id: 3, editor: { name: 'Ada' } },
        ],
      ],
      [
        '/books?id=eq.1&select=id,e:editions_book_id_fkey(number)&e.order=number',
        [{ id: 1, e: [{ number: 1 }, { number: 2 }] }],
      ],
      [
        '/shelves?id=eq.1&select=label,id(book_id)&id.order=book_id',
        [{ label: 'low', id: [{ book_id: 1 }, { book_id: 3 }] }],
      ],
    ),
  },
  {
    feature: 'aliases, the same table twice',
    here: 'same',
    check: give([
      '/books?id=eq.1&select=author:authors!author_id(name),editor:authors!editor_id(name)',
      [{ author: { name: 'Ada' }, editor: { name: 'Ben' } }],
    ]),
  },
  {
    feature: 'the same table twice without an alias',
    here: 'same',
    check: async (scene) => {
      const twice = rejected(400, '42712', 'table name "books_shelves_1" specified more than once')
      await gives('/books?select=id,shelves(id),shelves(label)', twice)(scene)
      await gives('/books?select=id,shelves(id),...shelves(label)', twice)(scene)
    },
  },
  {
    feature: 'nested embedding',
    here: 'same',
    check: give([
      '/authors?id=eq.1&select=name,books!author_id(title,shelves(label),editor:authors!editor_id(name,profiles(bio)))' +
        '&books.order=id&books.shelves.order=id',
      [
        {
          name: 'Ada',
          books: [
            {
              title: 'The quick fox',
              shelves: [{ label: 'low' }, { label: 'high' }],
              editor: { name: 'Ben', profiles: { bio: 'second' } },
            },
            { title: 'Lazy dogs', shelves: [{ label: 'high' }], editor: { name: 'Cyd', profiles: null } },
          ],
        },
      ],
    ]),
  },
]
