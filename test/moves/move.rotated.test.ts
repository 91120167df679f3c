// Moves a home between two shared databases while it is used, with a real Postgres, runtime, gateway and control plane.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import {
  contentOf,
  createOwner,
  fill,
  first,
  move,
  remains,
  request,
  second,
  sql,
  startMovePlatform,
} from './support/platform.ts'
import { checkStoredOnce, eventFollower, restWriter, sqlWriter } from './support/users.ts'

t.test('A home moves to another database and back', { timeout: 600_000 }, async (t) => {
  const platform = await startMovePlatform(t)
  await platform.startControlPlane()
  const ada = await createOwner(platform, 'ada')
  const ben = await createOwner(platform, 'ben')
  await fill(platform, ada)

  await t.test('with all of its rows, and nothing else', async (t) => {
    const before = await contentOf(platform, first, ada)
    const neighbour = await contentOf(platform, first, ben)
    const operation = await move(platform, ada, second)
    t.match(operation, {
      state: 'succeeded',
      step: 'done',
      error: null,
      move: { from: first, to: second, waits_for: null },
    })
    t.same(await contentOf(platform, second, ada), before, 'has the same rows and positions')
    t.same(await remains(platform, ada, first), [], 'and leaves nothing')
    t.match((await platform.call('GET', `/v1/tenants/${ada.id}`)).body, {
      status: 'ready',
      database_url: new RegExp(`/${second}$`),
    })
    t.equal((await request(platform, ada, 'GET', '/rest/v1/notes')).status, 200)
    t.same(await contentOf(platform, first, ben), neighbour)
    const moved = ada.url.replace(first, second)
    t.match(await sql(moved, 'select count(*)::int as n from facts'), [{ n: 500 }])
    t.match(await sql(moved, `insert into facts (kind) values ('b') returning id, named`), [{ id: 501, named: '<x' }])
    await t.rejects(sql(ada.url, 'select from facts'), /does not exist/, 'the former database has no home')
  })

  await t.test('while users write, and none of their writes is lost or repeated', async (t) => {
    t.match(await move(platform, ada, first), { state: 'succeeded' })
    const follower = await eventFollower(t, platform, ada)
    const writers = [restWriter(t, platform, ada), restWriter(t, platform, ada)]
    const session = sqlWriter(t, ada)
    const isBusy = () => [...writers, session].every(({ acknowledged }) => acknowledged.length > 3)
    await until(isBusy)
    const [{ start = 0 } = {}] = (await sql(ada.url, 'select min(id) as start from large')) as { start?: number }[]
    t.match(await move(platform, ada, second), { state: 'succeeded', error: null })
    const counts = [...writers, session].map(({ acknowledged }) => acknowledged.length)
    await until(() =>
      [...writers, session].every(({ acknowledged }, at) => acknowledged.length > (counts[at] ?? 0) + 1),
    )
    await Promise.all([...writers, session].map((user) => user.stop()))
    const home = platform.postgres.url(second)
    const { written, rows } = await checkStoredOnce(t, home, ada, writers, session)
    const [{ id } = {}] = (await query(home, `select id from "${ada.id}".large`)) as { id?: number }[]
    t.equal(id, 1 + rows.length, `of all transactions since ${start}`)
    await until(() => written.every((one) => follower.ids.has(one)), 'the events of all records')
    t.equal(follower.count(), follower.ids.size, 'each of them once')
    follower.stop()
    t.same(await remains(platform, ada, first), [])
  })
})
