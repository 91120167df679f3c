// Random requests give the same rows, or the same error, as SQL of the same query that was written independently.
import fc from 'fast-check'
import pg from 'pg'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { modelQueries, modelTables } from './support/model-queries.ts'

/** Whether it is the code of a value that does not fit its type, or of an operator that the type does not have. */
const isInvalidOperand = (code: unknown) => typeof code === 'string' && (code.startsWith('22') || code === '42883')

t.test('Requests and SQL of the same query', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await query(tenant.home.adminUrl, modelTables)
  const reload = await tenant.request('POST', '/admin/reload-schemas', { as: 'service', body: {} })
  t.equal(reload.status, 200, reload.text)
  const database = new pg.Client({ connectionString: tenant.home.adminUrl })
  await database.connect()
  t.teardown(() => database.end())
  const outcomes = { rows: 0, none: 0, errors: 0 }

  const outcome = await fc.check(
    fc.asyncProperty(modelQueries, async ({ url, sql }) => {
      const wanted = await database.query<{ body: string }>(sql).then(
        ({ rows }) => JSON.parse(rows[0]?.body ?? '') as unknown[],
        (error: unknown) => {
          if (error instanceof pg.DatabaseError) return error.code
          throw error
        },
      )
      const { status, text } = await tenant.request('GET', `/rest/v1${url}`, { as: 'service' })
      const body = JSON.parse(text) as unknown
      const given = status === 200 ? body : (body as { code: unknown }).code
      outcomes[typeof wanted === 'string' ? 'errors' : wanted?.length === 0 ? 'none' : 'rows']++
      // Of several invalid operands, either may be reported.
      if (isInvalidOperand(given) && isInvalidOperand(wanted)) return
      const [one, other] = [JSON.stringify(given), JSON.stringify(wanted)]
      if (one !== other) throw new Error(`${decodeURIComponent(url)}: ${status} ${one}, and ${sql}: ${other}`)
    }),
    { seed, numRuns: effort({ small: 300, full: 20_000 }) },
  )
  t.equal(outcome.failed, false, fc.defaultReportMessage(outcome) ?? 'are the same')
  t.ok(outcomes.rows > 50 && outcomes.none > 10 && outcomes.errors > 10, `seed ${seed}: ${JSON.stringify(outcomes)}`)
  t.same(runtime.errors, [], 'no internal error occurred')
})
