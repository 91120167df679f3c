// Random changes of two tables, applied to a copy in a real Postgres: it has the same rows, in far fewer statements.
import fc from 'fast-check'
import pg from 'pg'
import t from 'tap'
import { Applier } from '#control-plane/moves/apply-changes.ts'
import type { Cell, Relation } from '#control-plane/moves/pgoutput.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startPostgres } from '#test/support/postgres.ts'

const tenantId = 't_0123456789abcdef0123'
const relation = (id: number, name: string): Relation => ({
  id,
  name,
  isFull: false,
  columns: [
    { name: 'id', isKey: true },
    { name: 'text', isKey: false },
  ],
})
const [ours, theirs] = [relation(1, 'ours'), relation(2, 'theirs')]

t.test('The copy has what the changes make', async (t) => {
  t.comment(`seed ${seed}`)
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const sessions = [new pg.Client(postgres.url('homes')), new pg.Client(postgres.url('homes'))] as const
  for (const session of sessions) await session.connect()
  t.teardown(() => Promise.all(sessions.map((session) => session.end())))
  const [admin, tenant] = sessions
  await admin.query(
    `create schema ${tenantId};
     create table ${tenantId}.ours (id int primary key, text text);
     create table ${tenantId}.theirs (id int primary key, text text)`,
  )
  let statements = 0
  const observed = (client: pg.Client) =>
    new Proxy(client, {
      get: (target, name) => {
        if (name === 'query') statements++
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  const newApplier = async () => {
    const applier = new Applier({
      tenantId,
      admin: observed(admin),
      tenant: observed(tenant),
      serviceTables: new Set([ours.name]),
    })
    for (const one of [ours, theirs]) await applier.describe(one)
    return applier
  }
  const rowsOf = async ({ name }: Relation) =>
    (await admin.query<{ id: number; text: string | null }>(`select id, text from ${tenantId}.${name} order by id`))
      .rows

  const change = fc.record({
    table: fc.constantFrom(ours, theirs),
    // Inserts are the most frequent.
    kind: fc.constantFrom('insert', 'insert', 'insert', 'insert', 'update', 'rename', 'delete', 'truncate'),
    id: fc.integer({ min: 0, max: 9 }),
    text: fc.option(fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0'))),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 60 }), async (changes) => {
      await admin.query(`truncate ${tenantId}.ours, ${tenantId}.theirs`)
      const applier = await newApplier()
      const model = new Map([ours, theirs].map((one) => [one, new Map<number, string | null>()]))
      let changed = 0
      for (const { table, kind, id, text } of changes) {
        const rows = model.get(table) ?? new Map<number, string | null>()
        const key = (one: number): Cell[] => [String(one), null]
        const relationId = table.id
        if (kind === 'insert' && !rows.has(id)) {
          await applier.apply({ type: 'insert', relationId, row: [String(id), text] })
          rows.set(id, text)
        } else if (kind === 'update' && rows.has(id)) {
          await applier.apply({ type: 'update', relationId, old: undefined, row: [String(id), text] })
          rows.set(id, text)
        } else if (kind === 'rename' && rows.has(id) && !rows.has(id + 10)) {
          await applier.apply({ type: 'update', relationId, old: key(id), row: [String(id + 10), undefined] })
          rows.set(id + 10, rows.get(id) ?? null)
          rows.delete(id)
        } else if (kind === 'delete' && rows.has(id)) {
          await applier.apply({ type: 'delete', relationId, old: key(id) })
          rows.delete(id)
        } else if (kind === 'truncate' && id === 0) {
          await applier.apply({ type: 'truncate', relationIds: [relationId], restartsIdentity: false })
          rows.clear()
          continue
        } else continue
        changed++
      }
      await applier.flush()
      for (const [table, rows] of model)
        t.same(
          await rowsOf(table),
          [...rows].map(([id, text]) => ({ id, text })).sort((a, b) => a.id - b.id),
        )
      t.ok(applier.rows <= changed)
    }),
    { seed, numRuns: effort({ small: 40, full: 4_000 }) },
  )

  await admin.query(`truncate ${tenantId}.ours, ${tenantId}.theirs`)
  const applier = await newApplier()
  statements = 0
  for (let id = 0; id < 2_500; id++)
    for (const { id: relationId } of [ours, theirs])
      await applier.apply({ type: 'insert', relationId, row: [String(id), 'x'] })
  await applier.flush()
  t.equal(statements, 6, 'a statement for 1,000 rows of a table')
  t.equal((await rowsOf(theirs)).length, 2_500)
  await applier.apply({ type: 'insert', relationId: ours.id, row: ['0', 'x'] })
  await t.rejects(applier.flush(), { message: 'A change of the table "ours" could not be applied to the copy.' })
  await t.rejects(applier.apply({ type: 'delete', relationId: ours.id, old: ['-1', null] }), {
    message: 'A change of a row of the table "ours" concerns 0 rows of the copy.',
  })
})
