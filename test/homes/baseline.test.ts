// The baseline of migrations: it describes the home that the migrations create, and creates the same.
import t from 'tap'
import { loadHomeMigrations, migrationsFingerprint } from '#control-plane/homes/home-migrations.ts'
import { baselineSql } from '#scripts/home-baseline/baseline-sql.ts'
import { createHome, migrationsDirectory } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

const migrations = await loadHomeMigrations(migrationsDirectory)
const until = migrations.findLastIndex(({ baseline }) => baseline !== undefined) + 1
const covered = migrations.slice(0, until)
const baseline = covered.at(-1)?.baseline ?? ''
const postgres = await startPostgres()
t.teardown(() => postgres.stop())
const superuser = postgres.url('homes')
const single = covered.map(({ version, name, sql }) => ({ version, name, sql }))
const [migrated, based] = [await createHome(postgres, single), await createHome(postgres, covered)]

t.test('The file describes the home that the migrations create', async (t) => {
  const text = await baselineSql(superuser, migrated.tenantId)
  t.ok(text === baseline, 'After a change of its program, run: npm run update:baseline')
})

t.test('A home from the baseline has the same description and the same structure', async (t) => {
  // Printing and parsing an expression again changes its parentheses.
  const withoutParentheses = (text: string) => text.replaceAll(/[()]/g, '')
  const text = await baselineSql(superuser, based.tenantId)
  t.ok(withoutParentheses(text) === withoutParentheses(baseline), 'the same description')
  const structure = (id: string) =>
    query(superuser, `select * from "${id}".home_structure where kind <> 'store' order by kind, name`)
  t.same(await structure(based.tenantId), await structure(migrated.tenantId))
  t.same(await query(superuser, `select * from "${based.tenantId}".home_problems()`), [])
})

t.test('It has the same rows, except for what is random or a time', async (t) => {
  const tables = (id: string) =>
    query(
      superuser,
      `select relname as name from pg_class where relnamespace = '"${id}"'::regnamespace and relkind = 'r' order by 1`,
    )
  const rows = async (id: string) => {
    const found: unknown[] = []
    for (const { name } of await tables(id)) {
      const [row] = await query(
        superuser,
        `select json_agg(to_jsonb(r) order by r::text)::text as rows from "${id}"."${String(name)}" r`,
      )
      const text = String(row?.['rows']).replaceAll(id, 'ID')
      found.push([
        name,
        text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UUID').replaceAll(/\d{4}-\d\d-\d\dT[\d:.+]+/g, 'TIME'),
      ])
    }
    return found
  }
  t.same(await rows(based.tenantId), await rows(migrated.tenantId))
})

t.test('It does not change which homes must be migrated', async (t) => {
  t.equal(migrationsFingerprint(covered), migrationsFingerprint(single))
})
