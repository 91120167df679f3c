// Faults of other services at every failpoint of a move: a runtime is killed, Postgres crashes, all connections to it break. The
// move is completed or reverted, and no write of the tenant's users is lost or repeated.
import t from 'tap'
import { moveFailpointNames } from '#control-plane/reconcile/failpoints.ts'
import { effort, seed } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { checkFiles, checkWrites, homeReader, runsOf, startWriters } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { databaseOf, first, remains, second, startMovePlatform } from './support/platform.ts'
import { stoppingMoves } from './support/stopped-moves.ts'

const rounds = effort({ small: 1, full: 4 })
/** The small run takes one of thirteen pairs of a failpoint and a fault. The seed chooses which. */
const stride = effort({ small: 13, full: 1 })

t.test('A move completes or is reverted when another service fails', { timeout: 7_200_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const platform = await startMovePlatform(t, { hasPostgresProxy: true })
  const control = await platform.startControlPlane()
  const tenant = await createBusyTenant(platform, 'ada')
  const users = await startWriters(t, tenant)

  const faults = {
    'the runtime is killed': () => platform.restartRuntime(),
    'Postgres crashes': () => platform.postgres.crash(),
    'all connections to Postgres break': () =>
      query(
        platform.postgres.url('postgres'),
        `select pg_terminate_backend(pid) from pg_stat_activity
         where pid <> pg_backend_pid() and backend_type in ('client backend', 'walsender')`,
      ),
  }
  const cases = moveFailpointNames
    .flatMap((name) => Object.entries(faults).map(([what, fault]) => ({ name, what, fault })))
    .filter((_, at) => at % stride === seed % stride)
  const moveUntil = stoppingMoves(platform, tenant, control)

  await users.untilAllContinue()
  for (let round = 0; round < rounds; round++)
    for (const { name, what, fault } of cases)
      await t.test(`${what} at ${name}`, async (t) => {
        const move = await moveUntil(t, name)
        const { from, to } = move
        await fault()
        move.resume()
        const operation = await move.operation()
        const isMoved = operation['state'] === 'succeeded'
        t.match(operation, { state: /^(succeeded|failed)$/, error: isMoved ? null : String })
        if (!isMoved) t.comment(String(operation['error']))
        if (what === 'the runtime is killed') t.ok(isMoved, 'a move needs no runtime')
        const now = await databaseOf(platform, tenant)
        t.equal(now, isMoved ? to : from, 'the tenant is where its operation states')
        await users.untilAllContinue()
        t.same(await remains(platform, tenant, now === first ? second : first), [], 'nothing of the move is left')
      })

  await t.test('and no write is lost or repeated', async (t) => {
    await users.stop()
    const home = homeReader(platform, tenant, await databaseOf(platform, tenant))
    const ids = await checkWrites(t, home, users)
    await checkFiles(t, tenant, users)
    const runs = await runsOf(t, home)
    const missing = ids.filter((id) => !runs.notes.includes(id))
    t.same(missing, [], 'the function has run for each note, more than once at most for those of kills')
    t.same(
      users.orders.acknowledged.filter((number) => !runs.orders.includes(number)),
      [],
      'and for each change of the order',
    )
  })
})
