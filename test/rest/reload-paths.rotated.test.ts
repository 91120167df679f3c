// After any sequence of schemas, the tables of a home equal those of a new home with the last schemas. A rejected
// reload changes nothing, and no change of schemas is an internal error.
import fc from 'fast-check'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { reload, rest } from './support/schemas.ts'

const names = ['a', 'b', 'c'] as const
const types = ['uuid', 'string', 'number', 'boolean', 'datetime', 'json'] as const

interface Field {
  name: string
  type: (typeof types)[number]
  primary?: boolean
  required?: boolean | undefined
  unique?: boolean | undefined
  references?: { collection: string; field?: string; on_delete?: string } | undefined
}

type Home = Partial<Record<(typeof names)[number], { fields: Field[] }>>

const sometimes = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { freq: 2, nil: undefined })
const bounds = {
  uuid: fc.constantFrom({}, { default: 'gen_random_uuid()' }, { default: '0b1c2d3e-4f5a-4b6c-8d7e-9f0a1b2c3d4e' }),
  string: fc.constantFrom(
    {},
    { max_length: 5 },
    { max_length: 6, default: "it's \\" },
    { enum: ['x', "it's \\"] },
    { enum: ['x', 'y'], default: 'y', max_length: 1 },
  ),
  number: fc.constantFrom(
    {},
    { minimum: 0 },
    { minimum: 1, maximum: 5 },
    { maximum: 10, default: 2.5 },
    { enum: [1, 2.5, 4] },
    { enum: [1, 4], minimum: 0, default: 1 },
  ),
  boolean: fc.constantFrom({}, { default: true }),
  datetime: fc.constantFrom({}, { default: 'now()' }, { default: '2024-02-29T12:00:00Z' }),
  json: fc.constantFrom({}, { default: { a: ["'"] } }),
}
const reference = fc.constantFrom(
  { collection: 'a' },
  { collection: 'b', on_delete: 'cascade' },
  { collection: 'c', on_delete: 'set null' },
  { collection: 'a', field: 'f1' },
  { collection: 'b', field: 'f2' },
)
// Most references are of type uuid.
const field = fc.constantFrom<Field['type']>(...types, 'uuid', 'uuid', 'uuid').chain((type) =>
  fc
    .tuple(
      fc.record({
        type: fc.constant(type),
        required: sometimes(fc.boolean()),
        index: sometimes(fc.boolean()),
        unique: sometimes(fc.boolean()),
        references: sometimes(reference),
      }),
      bounds[type],
    )
    .map(([attributes, more]) => ({ ...attributes, ...more })),
)
const schema = fc
  .record({
    fields: fc.record({
      f1: sometimes(field),
      f2: field,
      f3: sometimes(field),
      owner: sometimes(fc.constantFrom({ type: 'string' as const }, { type: 'uuid' as const })),
    }),
    primary: fc.constantFrom(undefined, undefined, 'f1', 'f2'),
    policy: fc.constantFrom(
      { type: 'ownership', owner_field: 'owner' },
      { type: 'public_read', owner_field: 'owner' },
      { type: 'ownership', owner_field: 'by' },
      { type: 'authenticated' },
      { type: 'service' },
    ),
    events: fc.boolean(),
  })
  .map(({ fields, primary, policy, events }) => ({
    rls_policy: policy,
    events,
    fields: Object.entries(fields).flatMap(([name, attributes]): Field[] =>
      attributes === undefined ? [] : [{ name, ...attributes, ...(name === primary ? { primary: true } : {}) }],
    ),
  }))
const home = fc.record({ a: sometimes(schema), b: schema, c: sometimes(schema) }).map((drawn) => {
  const wanted: Home = Object.fromEntries(Object.entries(drawn).filter(([, one]) => one !== undefined))
  for (const one of Object.values(wanted)) one.fields = one.fields.map((drawn) => soundKey(drawn))
  for (const one of Object.values(wanted)) one.fields = one.fields.map((drawn) => soundReference(wanted, drawn))
  return wanted
})

function soundKey(field: Field): Field {
  if (field.type !== 'json' && field.type !== 'boolean') return field
  return { ...field, primary: false, unique: false, references: undefined }
}

function soundReference(home: Home, field: Field): Field {
  const { collection, field: name, on_delete: onDelete } = field.references ?? {}
  const to = names.map((known) => (known === collection ? home[known] : undefined)).find((one) => one !== undefined)
  const primary = to?.fields.find((one) => one.primary) ?? { name: 'id', type: 'uuid', primary: true }
  const referred =
    name === undefined
      ? primary
      : to?.fields.find((one) => one.name === name && (one.primary === true || one.unique === true))
  if (to === undefined || referred?.type !== field.type) return { ...field, references: undefined }
  return onDelete === 'set null' ? { ...field, required: false, primary: false } : field
}

const record = fc.record(
  {
    f1: sometimes(fc.constantFrom<unknown>(1, 'x', true)),
    f2: sometimes(fc.constantFrom<unknown>(1, 2.5, 'x', '0b1c2d3e-4f5a-4b6c-8d7e-9f0a1b2c3d4e', {})),
  },
  { requiredKeys: [] },
)

/**
 * Returns everything in the tables that a reload is responsible for, in a form that is equal for two homes with equal
 * tables.
 */
async function tables(tenant: TestTenant): Promise<unknown[][]> {
  const own = new RegExp(tenant.id, 'g')
  const { schema } = tenant.home
  const found = [
    await tenant.rows(
      `select c.relname, a.attname, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull,
       pg_get_expr(d.adbin, d.adrelid) as initial, c.relrowsecurity, c.relforcerowsecurity
      from pg_class c join pg_attribute a on a.attrelid = c.oid left join pg_attrdef d on (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
      where c.relnamespace = $1::regnamespace and c.relname = any($2) and a.attnum > 0 and not a.attisdropped order by 1, 2`,
      [schema, names],
    ),
    await tenant.rows(
      `select conname, pg_get_constraintdef(k.oid) as definition from pg_constraint k join pg_class c on c.oid = conrelid
      where connamespace = $1::regnamespace and c.relname = any($2) and contype <> 'n' order by 1, 2`,
      [schema, names],
    ),
    await tenant.rows('select indexdef from pg_indexes where schemaname = $1 and tablename = any($2) order by 1', [
      schema,
      names,
    ]),
    await tenant.rows(
      `select tablename, policyname, permissive, cmd, qual, with_check from pg_policies
        where schemaname = $1 and tablename = any($2) order by 1, 2`,
      [schema, names],
    ),
    await tenant.rows(
      `select pg_get_triggerdef(g.oid) as definition from pg_trigger g join pg_class c on c.oid = tgrelid
        where c.relnamespace = $1::regnamespace and c.relname = any($2) and not tgisinternal order by 1`,
      [schema, names],
    ),
    await tenant.rows(
      "select proname, prosrc, proconfig from pg_proc where pronamespace = $1::regnamespace and proname like '%.events' order by 1",
      [schema],
    ),
  ]
  return JSON.parse(JSON.stringify(found).replaceAll(own, 'HOME')) as unknown[][]
}

async function store(tenant: TestTenant, wanted: Home): Promise<void> {
  await tenant.request('DELETE', `${rest}/schemas?id=not.is.null`, { as: 'service' })
  const schemas = Object.entries(wanted).map(([name, one]) => ({ name, ...one }))
  const { status, text } = await tenant.request('POST', `${rest}/schemas`, { as: 'service', body: schemas })
  if (status !== 201) throw new Error(text)
}

t.test('Reloads in sequence', async (t) => {
  const runtime = await startRuntime(t)
  const outcomes = new Map<string, number>()
  const count = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)

  const property = fc.asyncProperty(
    fc.array(fc.tuple(home, fc.array(record, { maxLength: 3 })), { minLength: 2, maxLength: 5 }),
    async (steps) => {
      const tenant = await runtime.addTenant()
      for (const [wanted, records] of steps) {
        const before = await tables(tenant)
        await store(tenant, wanted)
        let response = await reload(tenant)
        if (response.json()['code'] === 'DESTRUCTIVE_SCHEMA_CHANGE') {
          if (JSON.stringify(await tables(tenant)) !== JSON.stringify(before))
            throw new Error('a rejected reload has changed something')
          response = await reload(tenant, response.json()['changes'])
        }
        if (Object.values(wanted).some(({ fields }) => fields.some(({ references }) => references !== undefined)))
          count('with references')
        count(response.status === 200 ? 'applied' : String(response.json()['code']))
        if (response.status !== 200) {
          if (!['INVALID_SCHEMA', 'SCHEMA_NOT_MET'].includes(String(response.json()['code'])))
            throw new Error(response.text)
          if (JSON.stringify(await tables(tenant)) !== JSON.stringify(before))
            throw new Error(`a failed reload has changed something: ${response.text}`)
          continue
        }
        const again = (await reload(tenant)).json()
        if (JSON.stringify(again['actions']) !== '[]') throw new Error(`not done: ${JSON.stringify(again)}`)
        const dropped = await reload(tenant, again['droppable'])
        if (dropped.status !== 200) throw new Error(dropped.text)
        const fresh = await runtime.addTenant()
        await store(fresh, wanted)
        if ((await reload(fresh)).status !== 200)
          throw new Error('a new home rejects schemas that the old one accepted')
        assertSame(await tables(tenant), await tables(fresh))
        for (const name of Object.keys(wanted)) {
          for (const body of records) {
            const { status, text } = await tenant.request('POST', `${rest}/${name}`, { as: 'service', body })
            if (status >= 500) throw new Error(text)
            count(`record ${status}`)
          }
        }
      }
    },
  )
  const outcome = await fc.check(property, { seed, numRuns: effort({ small: 5, full: 400 }), endOnFailure: true })
  if (outcome.failed) throw new Error(fc.defaultReportMessage(outcome), { cause: outcome.errorInstance })
  t.comment(`seed ${seed}: ${[...outcomes].map(([what, n]) => `${what} ${n}`).join(', ')}`)
  t.ok((outcomes.get('applied') ?? 0) > 3, 'some reloads succeeded')
  t.same(runtime.errors, [], 'no internal error occurred')
})

function assertSame(one: unknown[][], other: unknown[][]): void {
  const only = (these: unknown[][], those: unknown[][]) => {
    const known = new Set(those.flat().map((part) => JSON.stringify(part)))
    return these
      .flat()
      .map((part) => JSON.stringify(part))
      .filter((part) => !known.has(part))
  }
  const [more, less] = [only(one, other), only(other, one)]
  if (more.length > 0 || less.length > 0)
    throw new Error(`missing in the new home: ${more.join(', ')}; only in the new home: ${less.join(', ')}`)
}
