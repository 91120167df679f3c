// The rows of a round trip that are held in memory: bounded together, however many they are.
import t from 'tap'
import { createHome } from '#test/support/home.ts'
import { startPostgres } from '#test/support/postgres.ts'
import { Connections, defaultConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { databaseError } from '#tenant-runtime/database/database-error.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import { sql } from '#tenant-runtime/database/statement.ts'
import { RuntimeError } from '#tenant-runtime/errors.ts'

const postgres = await startPostgres()
const connections = new Connections(defaultConnectionLimits)
t.teardown(async () => {
  await connections.close()
  await postgres.stop()
})
const home = await createHome(postgres)
const database = new ScopedDatabase(connections, { tenantId: home.tenantId, url: home.url, ddlUrl: home.ddl_url })
const service = { role: 'service', reason: 'test' } as const
const rows = (count: number) => sql(`select repeat('x', 1000000) as text from generate_series(1, ${count})`)

t.test('Rows of more than 64 MiB together end the round trip with an error', async (t) => {
  for (const run of [
    () => database.read(service, rows(600)),
    () => database.run(service, rows(40), rows(40)),
    () => database.lookUp(service, rows(600)),
  ]) {
    const error = databaseError(await run().catch((thrown: unknown) => thrown))
    t.equal(error instanceof RuntimeError && error.code, 'ANSWER_TOO_LARGE')
  }
  const [result] = await database.read(service, rows(60))
  t.equal(result?.rows.length, 60)
})
