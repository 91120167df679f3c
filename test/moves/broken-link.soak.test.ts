// The control plane's link to Postgres breaks at a failpoint of a move: it is cut, or it falls silent. The tenant is served
// meanwhile, except during a hold, and the move is completed later.
import t from 'tap'
import { moveFailpointNames } from '#control-plane/reconcile/failpoints.ts'
import { effort, seed } from '#test/support/effort.ts'
import { openTcpLink, type TcpLink } from '#test/support/tcp-link.ts'
import { until } from '#test/support/until.ts'
import { checkFiles, checkWrites, homeReader, startWriters } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { databaseOf, remains, startMovePlatform } from './support/platform.ts'
import { stoppingMoves } from './support/stopped-moves.ts'

const renamed = moveFailpointNames.indexOf('move.renamed')
const pairs = (['falls silent', 'is cut'] as const).flatMap((what) =>
  moveFailpointNames.map((name) => ({ name, what })),
)
/** The small run takes one pair of a failpoint and a fault. The seed chooses which. */
const stride = effort({ small: pairs.length, full: 1 })
const cases = pairs.filter((_, at) => at % stride === seed % stride)
const rounds = effort({ small: 1, full: 3 })
/** The logins of runtimes, whose connections do not break. */
const isRuntime = (first: Buffer) => /user\0t_/.test(first.toString('latin1'))

t.test('A move survives a broken link to Postgres', { timeout: 7_200_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  let link: TcpLink | undefined
  const platform = await startMovePlatform(t, {
    hasPostgresProxy: true,
    control: { TENANTRY_MOVE_HOLD_MILLISECONDS: '5000' },
    linkToPostgres: async (port) => {
      link = await openTcpLink(port, (first) => !isRuntime(first))
      return link.port
    },
  })
  t.teardown(() => link?.stop())
  const control = await platform.startControlPlane()
  const tenant = await createBusyTenant(platform, 'ada')
  const users = await startWriters(t, tenant)
  const moveUntil = stoppingMoves(platform, tenant, control)

  await users.untilAllContinue()
  for (let round = 0; round < rounds; round++)
    for (const { name, what } of cases)
      await t.test(`that ${what} at ${name}`, async (t) => {
        t.teardown(() => link?.restore())
        const move = await moveUntil(t, name)
        const { from, to } = move
        if (what === 'falls silent') link?.silence()
        else link?.cut()
        move.resume()
        if (what === 'falls silent') {
          await until(
            () => /did not respond|could not be completed or reverted/.test(move.output()),
            'the end of the attempt',
          )
          // After the switch, only Postgres knows where the home is.
          if (moveFailpointNames.indexOf(name) < renamed) await users.untilAllContinue()
          link?.restore()
        }
        const operation = await move.operation()
        t.match(operation, { state: 'succeeded', error: null })
        t.equal(await databaseOf(platform, tenant), to)
        await users.untilAllContinue()
        await until(
          async () => (await remains(platform, tenant, from)).length === 0,
          'the removal of what the move leaves',
        )
      })

  await t.test('and no write is lost or repeated', async (t) => {
    await users.stop()
    await checkWrites(t, homeReader(platform, tenant, await databaseOf(platform, tenant)), users)
    await checkFiles(t, tenant, users)
  })
})
