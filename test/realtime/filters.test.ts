// Filters of subscriptions give the same result as Postgres, for random values, patterns and conditions.
import fc from 'fast-check'
import t from 'tap'
import { parseRecord } from '#tenant-runtime/realtime/changes/compare-values.ts'
import { meetsConditions, openMatches } from '#tenant-runtime/realtime/changes/match-filter.ts'
import { readFilter } from '#tenant-runtime/realtime/changes/read-filter.ts'
import { effort, seed } from '#test/support/effort.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

t.test('A filter is read into its conditions', async (t) => {
  t.same(readFilter(''), [])
  t.same(readFilter('a=eq.1,b=not.in.(x,"y,z",""),c=like."a,\\"b"'), [
    { column: 'a', isNegated: false, operator: 'eq', values: ['1'] },
    { column: 'b', isNegated: true, operator: 'in', values: ['x', 'y,z', ''] },
    { column: 'c', isNegated: false, operator: 'like', values: ['a,"b'] },
  ])
  t.same(readFilter('a=in.( red, blue ,"x, (y) ", "z")')[0]?.values, ['red', 'blue', 'x, (y) ', 'z'])
  t.same(readFilter('at=gte.2026-01-01T00:00:00+00:00')[0]?.values, ['2026-01-01T00:00:00+00:00'])
  t.same(readFilter('a=is.NULL')[0]?.values, ['null'])
  for (const wrong of ['a', 'a=1', 'a=eq', '=eq.1', 'a=or.1', 'a=eq.1,', 'a=is.maybe', 'a=in.1,2', 'a=like.b\\'])
    t.throws(() => readFilter(wrong), { message: /^(Invalid|Unknown)/ }, wrong)
  t.throws(() => readFilter(Array(33).fill('a=eq.1').join(',')), { message: /at most 32 conditions, not 33/ })
})

t.test('A pattern is left to Postgres, except where the column is null or too long', async (t) => {
  const [condition] = readFilter('a=not.imatch.^x')
  if (condition === undefined) throw new Error('there is no condition')
  const filter = { conditions: [], patterns: [condition] }
  t.same(openMatches({ a: 'Xy' }, filter), [{ text: 'Xy', operator: 'imatch', pattern: '^x', isNegated: true }])
  t.equal(openMatches({ a: null }, filter), undefined)
  t.equal(openMatches({ a: 'x'.repeat(65_537) }, filter), undefined)
})

const types: { type: string; values: fc.Arbitrary<string> }[] = [
  {
    type: 'text',
    values: fc.string({ unit: fc.constantFrom('a', 'b', 'B', '%', '_', '\\', 'é', '😀', ' '), maxLength: 5 }),
  },
  { type: 'int8', values: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String) },
  {
    type: 'numeric',
    values: fc.tuple(fc.integer(), fc.constantFrom('', '.5', '.50', '.4999999999999999999')).map((n) => n.join('')),
  },
  { type: 'float8', values: fc.double({ noNaN: true, noDefaultInfinity: true }).map(String) },
  { type: 'bool', values: fc.constantFrom('true', 'false') },
  {
    type: 'timestamptz',
    values: fc
      .date({ min: new Date('1970-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString()),
  },
  {
    type: 'date',
    values: fc
      .date({ min: new Date('1970-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString().slice(0, 10)),
  },
  { type: 'uuid', values: fc.uuid() },
]
const compared = {
  eq: '=',
  neq: '<>',
  lt: '<',
  lte: '<=',
  gt: '>',
  gte: '>=',
  isdistinct: 'is distinct from',
}

t.test('Conditions give the same result as in Postgres', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const url = postgres.url('homes')
  const numRuns = effort({ small: 60, full: 5_000 })
  for (const { type, values } of types) {
    const condition = fc.record({
      value: fc.option(values, { freq: 5 }),
      wanted: values,
      operator: fc.constantFrom('eq', 'neq', 'lt', 'lte', 'gt', 'gte', 'isdistinct', 'in'),
      isNegated: fc.boolean(),
      isSame: fc.boolean(),
    })
    // One query checks all conditions of a run.
    const property = fc.asyncProperty(fc.array(condition, { minLength: 1, maxLength: 50 }), async (conditions) => {
      const cases = conditions.map(({ isSame, value, ...rest }) => ({ ...rest, value: isSame ? rest.wanted : value }))
      const rows = (await query(
        url,
        cases
          .map(({ operator, isNegated }, at) => {
            const [value, wanted] = [`($1::jsonb->${at}->>0)::${type}`, `($1::jsonb->${at}->>1)::${type}`]
            const sql = operator === 'in' ? `${value} in (${wanted})` : `${value} ${compared[operator]} ${wanted}`
            const expected = `coalesce(${isNegated ? `not (${sql})` : sql}, false)`
            const shown = (text: string) => `to_jsonb(${text})::text`
            return `select ${at} as n, ${expected} as expected, ${shown(value)} as value, ${shown(wanted)} as wanted`
          })
          .join(' union all ') + ' order by n',
        [JSON.stringify(cases.map(({ value, wanted }) => [value, wanted]))],
      )) as { value: string | null; wanted: string; expected: boolean }[]
      for (const [at, row] of rows.entries()) {
        const { operator, isNegated } = cases[at] ?? { operator: '', isNegated: false }
        const record = parseRecord(`{"a":${row.value ?? 'null'}}`)
        const typed = parseRecord(`{"a":${row.wanted}}`)['a']
        const filter = {
          conditions: [
            {
              column: 'a',
              isNegated,
              operator: operator as 'eq',
              values: [typed],
            },
          ],
          patterns: [],
        }
        if (meetsConditions(record, filter) !== row.expected)
          throw new Error(`${type}: ${JSON.stringify(row)} ${isNegated ? 'not ' : ''}${operator}`)
      }
    })
    await fc.assert(property, { numRuns, seed })
    t.pass(`${type}, ${numRuns} runs with seed ${seed}`)
  }
})
