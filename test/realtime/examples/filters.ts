// Documented examples: each operator of the filters of changes, as text and from the client's builder.
import type * as library from '@supabase/supabase-js'
import { sources, type Example } from './example.ts'

type Builder = ReturnType<typeof library.postgresChangesFilter>

interface FilterExample {
  source: Example['source']
  event: 'INSERT' | 'UPDATE' | '*'
  table: string
  filter: string
  /** Builds the same filter with the client's builder. */
  build?: (builder: Builder) => Builder
  /** Records that are inserted, or updated for the event UPDATE, of which only the last one matches. */
  records: object[]
}

const { changes, readme, reference, migrating } = sources

const documented: FilterExample[] = [
  { source: changes, event: 'INSERT', table: 'todos', filter: 'id=eq.1', records: [{ id: 2 }, { id: 1 }] },
  { source: reference, event: 'UPDATE', table: 'countries', filter: 'id=eq.200', records: [{ id: 2 }, { id: 200 }] },
  {
    source: migrating,
    event: 'INSERT',
    table: 'moves',
    filter: 'game_id=eq.4a8bbe89-f601-4414-bd47-8d0f7ab2a31a',
    records: [{ game_id: 'another' }, { game_id: '4a8bbe89-f601-4414-bd47-8d0f7ab2a31a' }],
  },
  ...of(changes, 'UPDATE', 'messages', 'body', { 'eq.hey': ['bye', 'hey'] }),
  ...of(changes, 'INSERT', 'messages', 'body', { 'neq.bye': ['bye', 'hey'] }),
  ...of(changes, 'INSERT', 'profiles', 'age', { 'lt.65': [65, 64] }),
  ...of(changes, 'UPDATE', 'profiles', 'age', { 'lte.65': [66, 65] }),
  ...of(changes, 'INSERT', 'products', 'quantity', { 'gt.10': [10, 11], 'gte.10': [9, 10] }),
  ...of(changes, 'INSERT', 'colors', 'name', { 'in.(red, blue, yellow)': ['green', 'blue'] }),
  {
    source: readme,
    event: 'UPDATE',
    table: 'users',
    filter: 'id=eq.1',
    build: (builder) => builder.eq('id', 1),
    records: [{ id: 2 }, { id: 1 }],
  },
  {
    source: readme,
    event: '*',
    table: 'users',
    filter: 'id=eq.1,age=lt.30',
    build: (builder) => builder.eq('id', 1).lt('age', 30),
    records: [
      { id: 2, age: 20 },
      { id: 1, age: 20 },
    ],
  },
  built('id', (builder) => builder.neq('id', 1), 'neq.1', [1, 2]),
  built('value', (builder) => builder.gte('value', 18), 'gte.18', [17, 18]),
  built('status', (builder) => builder.in('status', ['active', 'pending']), 'in.(active,pending)', ['new', 'pending']),
  built('title', (builder) => builder.like('title', '%foo%'), 'like.%foo%', ['a Foo b', 'a foo b']),
  built('title', (builder) => builder.ilike('title', '%foo%'), 'ilike.%foo%', ['a b', 'a Foo b']),
  built('deleted_at', (builder) => builder.is('deleted_at', null), 'is.null', ['2026-01-02T03:04:05+00:00', null]),
  built('title', (builder) => builder.match('title', '^foo'), 'match.^foo', ['a foo', 'foo']),
  built('title', (builder) => builder.imatch('title', '^foo'), 'imatch.^foo', ['a foo', 'FOO']),
  built('value', (builder) => builder.isDistinct('value', 1), 'isdistinct.1', [1, null]),
  built('deleted_at', (builder) => builder.not('deleted_at', 'is', null), 'not.is.null', [
    null,
    '2026-01-02T03:04:05+00:00',
  ]),
  built('status', (builder) => builder.not('status', 'in', ['draft', 'archived']), 'not.in.(draft,archived)', [
    'draft',
    'open',
  ]),
  {
    source: readme,
    event: 'UPDATE',
    table: 'orders',
    filter: 'amount=gt.100,status=in.(open,pending)',
    build: (builder) => builder.gt('amount', 100).in('status', ['open', 'pending']),
    records: [
      { amount: 100, status: 'open' },
      { amount: 101, status: 'sent' },
      { amount: 101, status: 'open' },
    ],
  },
  {
    source: readme,
    event: 'UPDATE',
    table: 'orders',
    filter: 'amount=gt.100,status=not.in.(draft,archived)',
    build: (builder) => builder.gt('amount', 100).not('status', 'in', ['draft', 'archived']),
    records: [
      { amount: 101, status: 'draft' },
      { amount: 101, status: 'open' },
    ],
  },
  // The builder quotes what the server would read as its own characters.
  built('title', (builder) => builder.eq('title', 'a,(b) "c"\\'), 'eq."a,(b) \\"c\\"\\\\"', ['a', 'a,(b) "c"\\']),
]

/** Examples that differ in the operator and its values. */
function of(
  source: Example['source'],
  event: FilterExample['event'],
  table: string,
  column: string,
  values: Record<string, unknown[]>,
): FilterExample[] {
  return Object.entries(values).map(([condition, list]) => ({
    source,
    event,
    table,
    filter: `${column}=${condition}`,
    records: list.map((value) => ({ [column]: value })),
  }))
}

/** An example of the README's table of operators. */
function built(
  column: string,
  build: FilterExample['build'] & object,
  condition: string,
  values: unknown[],
): FilterExample {
  const [example] = of(readme, 'INSERT', 'posts', column, { [condition]: values })
  if (example === undefined) throw new Error('there is no example')
  return { ...example, build }
}

const toExamples = ({ source, event, table, filter, build, records }: FilterExample): Example[] => {
  const all = records.map((record, at) => ({ id: at + 1, ...record }))
  const example = (name: string, filterOf: (client: typeof library) => string | Builder): Example => ({
    name,
    source,
    before: async (run) => {
      if (event === 'UPDATE') for (const { id } of all) await run.insert(table, { id })
    },
    code: ({ supabase, library: client, log }) =>
      supabase
        .channel('changes')
        // The type of the client has one event for each call.
        .on('postgres_changes', { event: event as '*', schema: 'public', table, filter: filterOf(client) }, (payload) =>
          log(payload.new),
        )
        .subscribe(),
    effect: async (run) => {
      await run.joined()
      for (const { id, ...record } of all)
        if (event === 'UPDATE') await run.update(table, id, Object.keys(record).length === 0 ? { id } : record)
        else await run.insert(table, { id, ...record })
      const [first] = await run.firsts(1)
      const wanted = Object.keys(all.at(-1) ?? {})
      return Object.fromEntries(Object.entries(first as object).filter(([name]) => wanted.includes(name)))
    },
    expected: all.at(-1),
  })
  return [
    example(`Filter ${table} by ${filter}`, () => filter),
    ...(build === undefined
      ? []
      : [example(`Build the filter ${filter} of ${table}`, (client) => build(client.postgresChangesFilter()))]),
  ]
}

export const filters: Example[] = documented.flatMap(toExamples)
