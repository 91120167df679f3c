// Descriptions of large interfaces: made in parts, kept, and limited.
import t from 'tap'
import { Descriptions } from '#tenant-runtime/rest/openapi/descriptions.ts'
import type { Catalog, Column, Reference, Relation } from '#tenant-runtime/rest/registry/catalog.ts'
import { defaultSettings, firstSchema } from '#tenant-runtime/rest/registry/rest-settings.ts'
import { RuntimeError } from '#tenant-runtime/errors.ts'

/** Returns a catalog of tables with 1,000 columns each, many of which are foreign keys. */
function catalogOf(tables: number, comment = 'A column'): Catalog {
  const names = Array.from({ length: 1_000 }, (_, n) => `column_${n}`)
  const relationOf = (name: string): Relation => ({
    name,
    table: name,
    kind: 'table',
    columns: new Map(
      names.map((column): [string, Column] => [
        column,
        {
          name: column,
          type: 'text',
          base: 'text',
          nullable: true,
          default: undefined,
          writable: true,
          field: undefined,
          comment,
        },
      ]),
    ),
    computed: new Map(),
    computedRelationships: new Map(),
    key: ['column_0'],
    unique: [],
    writable: 'yes',
    ownerField: undefined,
    isOwnersOnly: false,
    changes: { insert: true, update: true, delete: true },
    comment: undefined,
  })
  const relations = Array.from({ length: tables }, (_, n) => relationOf(`wide_${n}`))
  const references = relations.flatMap(({ name: from }) =>
    names.slice(1, 200).map((column): Reference => ({
      name: `${from}_${column}`,
      from,
      to: 'wide_0',
      pairs: [[column, 'column_0']],
      isUnique: false,
    })),
  )
  return {
    schema: firstSchema,
    settings: defaultSettings,
    relations: new Map(relations.map((relation) => [relation.name, relation])),
    references,
    views: new Map(),
    routines: new Map(),
    types: new Set(),
    unserved: new Set(),
    handlers: new Map(),
    mentions: { request: false, response: false },
  }
}

t.test('Others are served while a large description is made, and it is made once', async (t) => {
  const catalog = catalogOf(50)
  const descriptions = new Descriptions()
  let rounds = 0
  let isOver = false
  const count = () => {
    rounds++
    if (!isOver) setImmediate(count)
  }
  count()
  const [made, same] = await Promise.all([descriptions.of(catalog, '/rest/v1'), descriptions.of(catalog, '/rest/v1')])
  isOver = true
  t.ok(made === same)
  t.ok((await descriptions.of(catalog, '/rest/v1')) === made)
  // A part of 64 KiB is made in a round.
  t.ok(rounds >= made.length / (3 * 64 * 1024), `${rounds} rounds, ${made.length} bytes`)
  const { definitions } = JSON.parse(made.toString()) as {
    definitions: Record<string, { properties: Record<string, { description: string }> }>
  }
  t.equal(Object.keys(definitions).length, 50)
  t.match(definitions['wide_49']?.properties['column_0']?.description, /^A column\n\nNote:\nThis is a Primary Key/)
  t.match(definitions['wide_49']?.properties['column_199']?.description, /Foreign Key to `wide_0\.column_0`/)
  t.equal(definitions['wide_49']?.properties['column_200']?.description, 'A column')
})

t.test('A description has at most 64 MiB, and those that were made first are removed', async (t) => {
  const descriptions = new Descriptions()
  const large = catalogOf(90, 'x'.repeat(700))
  const error = await descriptions.of(large, '').catch((thrown: unknown) => thrown)
  t.equal(error instanceof RuntimeError && error.code, 'ANSWER_TOO_LARGE')
  const catalogs = [catalogOf(40, 'x'.repeat(700)), catalogOf(40, 'y'.repeat(700))] as const
  const first = await descriptions.of(catalogs[0], '')
  const second = await descriptions.of(catalogs[1], '')
  t.ok(first.length + second.length > 64 * 2 ** 20)
  t.ok((await descriptions.of(catalogs[1], '')) === second)
  t.ok((await descriptions.of(catalogs[0], '')) !== first)
})
