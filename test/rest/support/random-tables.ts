// The tables and functions of the features' scene for random requests: columns, relations, and values of each kind,
// ordinary and strange.

/** A text that would end a quote of any kind, a comment or an escape. */
export const canary = 'cn4ry'
export const canaries = [
  canary,
  `${canary}'`,
  `'${canary}`,
  `"${canary}"`,
  `${canary}";--`,
  `\\${canary}\\`,
  `$1${canary}`,
  `{${canary}}`,
  `${canary}/*`,
  `(${canary})`,
  `%${canary}*`,
]

export type Kind = 'number' | 'text' | 'boolean' | 'date' | 'array' | 'range' | 'json' | 'search' | 'composite' | 'enum'

export interface Table {
  columns: Record<string, Kind>
  /** The relations by the item in `select`, with their tables. */
  relations: readonly (readonly [item: string, name: string, table: string])[]
}

export const tables: Record<string, Table> = {
  books: {
    columns: {
      id: 'number',
      title: 'text',
      author_id: 'number',
      isbn: 'text',
      genre: 'enum',
      price: 'number',
      pages: 'number',
      available: 'boolean',
      tags: 'array',
      years: 'range',
      size: 'composite',
      extra: 'json',
      added: 'date',
      words: 'search',
      gross: 'number',
    },
    relations: [
      ['authors!author_id', 'authors', 'authors'],
      ['editor:authors!editor_id', 'editor', 'authors'],
      ['author_id', 'author_id', 'authors'],
      ['shelves', 'shelves', 'shelves'],
      ['editions', 'editions', 'editions'],
      ['authors', 'authors', 'authors'],
    ],
  },
  authors: {
    columns: { id: 'number', name: 'text', born: 'date', mentor_id: 'number', prefs: 'json' },
    relations: [
      ['books!author_id', 'books', 'books'],
      ['profiles', 'profiles', 'profiles'],
      ['authors', 'authors', 'authors'],
      ['mentor_id', 'mentor_id', 'authors'],
    ],
  },
  profiles: { columns: { author_id: 'number', bio: 'text' }, relations: [['authors', 'authors', 'authors']] },
  shelves: {
    columns: { id: 'number', label: 'text', hall: 'text' },
    relations: [
      ['books', 'books', 'books'],
      ['book_shelves', 'book_shelves', 'book_shelves'],
    ],
  },
  book_shelves: {
    columns: { book_id: 'number', shelf_id: 'number' },
    relations: [
      ['books', 'books', 'books'],
      ['shelves', 'shelves', 'shelves'],
    ],
  },
  editions: {
    columns: { book_id: 'number', number: 'number', format: 'text' },
    relations: [
      ['books', 'books', 'books'],
      ['sales', 'sales', 'sales'],
    ],
  },
  sales: {
    columns: { id: 'number', book_id: 'number', number: 'number', amount: 'number', sold_on: 'date' },
    relations: [['editions', 'editions', 'editions']],
  },
  'odd names': {
    columns: {
      '"a,b"': 'number',
      '"c.d"': 'text',
      '"e\\"f"': 'text',
      '"g h"': 'text',
      '"(i)"': 'text',
      '"j:k"': 'text',
      is_new: 'text',
      '"select"': 'text',
    },
    relations: [],
  },
  events: { columns: { id: 'number', kind: 'text', at: 'date' }, relations: [] },
  cheap_books: { columns: { id: 'number', title: 'text', price: 'number', author_id: 'number' }, relations: [] },
  lines: { columns: { entry: 'text', at: 'number' }, relations: [] },
  notes: { columns: { id: 'text', owner: 'text', text: 'text', rank: 'number' }, relations: [] },
}

const comparing = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'isdistinct', 'eq(any)', 'gt(all)', 'lte(any)']
export const operators: Record<Kind, string[]> = {
  number: [...comparing, 'in', 'is'],
  text: [
    ...comparing,
    'like',
    'ilike',
    'match',
    'imatch',
    'like(any)',
    'ilike(all)',
    'in',
    'fts',
    'plfts(english)',
    'wfts(simple)',
    'is',
  ],
  boolean: ['eq', 'is', 'neq'],
  date: [...comparing, 'in'],
  array: ['cs', 'cd', 'ov', 'eq', 'in', 'is'],
  range: ['cs', 'cd', 'ov', 'sl', 'sr', 'nxl', 'nxr', 'adj', 'eq'],
  json: ['cs', 'cd', 'eq', 'is', 'fts', 'phfts(english)'],
  search: ['fts', 'plfts', 'phfts', 'wfts(english)', 'fts(german)'],
  composite: ['is', 'eq'],
  enum: ['eq', 'in', 'gt', 'like'],
}
export const anyOperator = [...new Set(Object.values(operators).flat()), 'no', 'EQ', 'fts(no)', 'eq(some)', '']
export const good: Record<Kind, string[]> = {
  number: ['1', '2', '-1.5', '9007199254740993', '0', '1e3'],
  text: ['x', 'The*', '*dogs', 'low', 'a b', 'fox', '^F', '[a-z]+'],
  boolean: ['true', 'false', 'null'],
  date: ['2026-01-01', '1900-01-01T00:00:00Z', 'infinity'],
  array: ['{red}', '{}', '{"with, comma",blue}'],
  range: ['[1990,2000)', 'empty', '(,5]'],
  json: ['{"a":1}', '[1]', '1', '"x"'],
  search: ['fox', 'fox & quick', 'lazy or dog'],
  composite: ['null', '(1,2)'],
  enum: ['novel', 'poetry'],
}
export const strange = [
  '',
  'null',
  '()',
  '(',
  '(,)',
  '("',
  '{',
  '}',
  '[',
  '"',
  '\\',
  '%',
  '*',
  "'",
  '..',
  'NaN',
  '1e999',
  '99999999999999999999',
  '{"a":"\\u0000"}',
  '\0',
  '294277-01-01',
  '{{1},{2}}',
  'x'.repeat(2_000),
  '(1',
  '((((',
]
export const sample: Record<Kind, unknown[]> = {
  number: [1, 2, 77, 1.5, '78'],
  text: ['x', ...canaries],
  boolean: [true, null],
  date: ['2026-01-01'],
  array: [['a', canary], '{b}', []],
  range: ['[1,2)'],
  json: [{ a: canary }, [1, canary], { [`${canary}'`]: 1 }],
  search: ['x'],
  composite: [{ width: 1 }, null],
  enum: ['novel'],
}

export const functions: [name: string, args: Record<string, Kind>, rows: string | undefined][] = [
  ['add', { a: 'number', b: 'number' }, undefined],
  ['lengths', {}, undefined],
  ['first_book', {}, 'books'],
  ['books_of', { author: 'number' }, 'books'],
  ['totals', {}, 'sales'],
  ['titles', {}, 'lines'],
  ['pair', { n: 'number' }, 'lines'],
  ['single', {}, undefined],
  ['join_all', { parts: 'array' }, undefined],
  ['area', { side: 'number', width: 'number', height: 'number' }, undefined],
  ['twice', { n: 'number' }, undefined],
  ['whole', {}, undefined],
  ['add_shelf', { id: 'number', label: 'text' }, 'shelves'],
  ['echo_numeric', { v: 'number' }, undefined],
  ['echo_json', { v: 'json' }, undefined],
  ['echo_texts', { v: 'array' }, undefined],
  ['echo_size', { v: 'composite' }, undefined],
  ['untyped_set', {}, undefined],
  ['fail', { code: 'text', what: 'text' }, undefined],
  ['broken', {}, undefined],
  ['touch', {}, undefined],
  ['near', { a: 'number', b: 'number' }, undefined],
  ['nowhere', {}, undefined],
]
