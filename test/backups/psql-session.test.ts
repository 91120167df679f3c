// A session of psql in a tenant's container returns results of a bounded size.
import t from 'tap'
import { openPsql } from '#control-plane/backups/psql-session.ts'

t.test('A result beyond the limit ends the session with an error', async (t) => {
  const line = Buffer.from(`${'x'.repeat(1_000_000)}\n`)
  let printed = 0
  const endless = async function* (_command: readonly string[], { signal }: { signal?: AbortSignal }) {
    while (signal?.aborted !== true) {
      printed++
      yield line
    }
  }
  const session = openPsql(endless, 'home', undefined, [], new AbortController().signal)
  await t.rejects(session.rows('select 1'), {
    code: 'FAILED',
    message: "A list of the home's objects has more than 33554432 characters.",
  })
  t.ok(printed < 40, `${printed} lines were read`)
  await session.close()
})
