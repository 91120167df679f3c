// Examples whose response differs from the documented one. Each has the reason, and a variant of the example that holds
// here, which is tested as well.
import type { CompleteExample } from './read-examples.ts'

export interface Exception {
  /** A clause that completes `except that` in the name of the test. docs/rest.md shows it as well. */
  readonly reason: string
  readonly instead: (example: CompleteExample) => CompleteExample
}

/** The exceptions by the names that `nameOf` returns. */
export const exceptions: ReadonlyMap<string, Exception> = new Map<string, Exception>([
  [
    'PostgrestQueryBuilder.select: Querying referenced table with count',
    {
      reason:
        'its SQL fills a table that it does not create, and calls an extension function in a schema that no home has',
      // The documented response contains an ID that was generated when it was written.
      instead: (example) => ({
        ...example,
        sql: inHome(example.sql.replace('create table characters', 'create table instruments')).replace(
          'gen_random_uuid()',
          `'${idOf(example.response)}'`,
        ),
      }),
    },
  ],
  [
    'PostgrestQueryBuilder.select: Querying referenced table with inner join',
    {
      reason: 'its SQL calls an extension function in a schema that no home has, and names the home `public`',
      instead: (example) => ({ ...example, sql: inHome(example.sql) }),
    },
  ],
  [
    'PostgrestQueryBuilder.select: Switching schemas per query',
    {
      reason: 'its SQL creates a Postgres schema; here, a schema of the interface is the first part of names',
      instead: (example) => ({ ...example, sql: '', response: { status: 406, error: { code: 'PGRST106' } } }),
    },
  ],
  ...[
    'PostgrestQueryBuilder.insert: Bulk create',
    'PostgrestQueryBuilder.upsert: Upserting into tables with constraints',
  ].map(
    (name) =>
      [
        name,
        {
          reason:
            "the message is this interface's own, and Postgres reports no key values to roles under row-level security",
          instead: (example) => ({
            ...example,
            response: { status: 409, error: { code: '23505', details: null, hint: null } },
          }),
        },
      ] satisfies [string, Exception],
  ),
  ...['PostgrestQueryBuilder.upsert: Upsert your data', 'PostgrestTransformBuilder.select: With upsert()'].map(
    (name) =>
      [
        name,
        {
          reason:
            'no record is new, so the status is 200, in PostgREST too since version 12; the documented status is 201',
          instead: (example) => ({
            ...example,
            response: { ...membersOf(example.response), status: 200, statusText: 'OK' },
          }),
        },
      ] satisfies [string, Exception],
  ),
  [
    'PostgrestFilterBuilder.is: Checking for nullness, true or false',
    {
      reason: 'the documented response shows the text `null`, but its SQL has inserted a null',
      instead: (example) => ({
        ...example,
        response: { ...membersOf(example.response), data: [{ id: 2, name: null }] },
      }),
    },
  ],
  [
    'PostgrestFilterBuilder.contains: On array columns',
    {
      reason: 'the documented response shows one of the three columns, but the call selects all',
      instead: (example) => ({ ...example, call: example.call.replace('.select()', ".select('title')") }),
    },
  ],
  [
    'PostgrestTransformBuilder.order: Order parent table by a referenced table',
    {
      reason: 'the documented response does not have the alias that the call requests',
      instead: (example) => ({
        ...example,
        call: example.call
          .replace('section:orchestral_sections', 'orchestral_sections')
          .replace('section(name)', 'orchestral_sections(name)'),
      }),
    },
  ],
  [
    'PostgrestTransformBuilder.limit: On a referenced table',
    {
      reason: 'the documented response shows the second row, but the call requests no order',
      instead: (example) => ({
        ...example,
        call: `${example.call}.order('name', { referencedTable: 'instruments', ascending: false })`,
      }),
    },
  ],
  ...['', ' with analyze and verbose'].map(
    (how) =>
      [
        `PostgrestTransformBuilder.explain: Get the execution plan${how}`,
        {
          reason: 'only the service role receives query plans, and the examples use the publishable key',
          instead: (example) => ({ ...example, response: { status: 406, error: { code: 'PGRST107' } } }),
        },
      ] satisfies [string, Exception],
  ),
])

/** Adapts the SQL of an example to the home. */
function inHome(sql: string): string {
  return sql.replaceAll('"extensions"."uuid_generate_v4"()', 'gen_random_uuid()').replaceAll('public.', '')
}

function idOf(response: unknown): string {
  const rows: unknown[] = Array.isArray(response) ? response : []
  return String(membersOf(rows[0])['id'])
}

function membersOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new Error('the documented response is not an object')
  return { ...value }
}
