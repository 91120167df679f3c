// Moves that are reverted after the tenant has used the new database, with a real Postgres, runtime, gateway and control plane.
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import {
  contentOf,
  createOwner,
  fill,
  first,
  move,
  remains,
  request,
  revert,
  second,
  sql,
  startMovePlatform,
} from './support/platform.ts'
import { checkStoredOnce, eventFollower, restWriter, sqlWriter } from './support/users.ts'

const rounds = effort({ small: 1, full: 20 })

t.test('A move is reverted', { timeout: 1_800_000 }, async (t) => {
  const platform = await startMovePlatform(t, { control: { TENANTRY_MOVE_REVERSE_SECONDS: '3600' } })
  await platform.startControlPlane()
  const ada = await createOwner(platform, 'ada')
  await fill(platform, ada)
  const moved = ada.url.replace(first, second)
  const path = `/v1/tenants/${ada.id}/move/revert`
  const none = { status: 409, body: { code: 'NO_MOVE_TO_REVERT' } }

  await t.test('with all rows and positions that the new database has', async (t) => {
    t.match(await platform.call('POST', path), none, 'there is nothing to revert before a move')
    const operation = await move(platform, ada, second)
    t.match(operation, { state: 'succeeded', move: { revertible_until: /^\d{4}-/, not_revertible_reason: null } })
    await t.rejects(sql(ada.url, 'select from facts'), /does not exist/, 'the tenant does not see its old home')
    await t.rejects(sql(ada.url, `insert into "${ada.id}".facts (kind) values ('b')`), /permission denied for schema/)
    t.match((await platform.call('GET', `/v1/tenants/${ada.id}`)).body, { status: 'ready' })
    t.equal((await request(platform, ada, 'POST', '/rest/v1/notes', { text: 'second' })).status, 201)
    await sql(
      moved,
      `insert into facts (kind) values ('b'), ('b');
       delete from facts where id = 3;
       update facts set kind = 'b' where id = 4;
       delete from keyless where ctid = (select ctid from keyless limit 1);
       update large set id = 7`,
    )
    const content = await contentOf(platform, second, ada)
    const reverted = await revert(platform, ada)
    t.match(reverted, {
      state: 'succeeded',
      step: 'done',
      error: null,
      move: { from: second, to: first, reverts: operation['id'], revertible_until: null },
    })
    t.same(await contentOf(platform, first, ada), content)
    t.same(await remains(platform, ada, second), [], 'and nothing is left')
    t.match((await platform.call('GET', `/v1/tenants/${ada.id}`)).body, {
      status: 'ready',
      database_url: new RegExp(`/${first}$`),
    })
    t.match(await sql(ada.url, `insert into facts (kind) values ('b') returning id`), [{ id: 503 }])
    await t.rejects(sql(moved, 'select from facts'), /does not exist/)
    t.match(await platform.call('POST', path), none)
    t.match((await platform.call('GET', `/v1/operations/${String(operation['id'])}`)).body, {
      move: { revertible_until: null, not_revertible_reason: 'The move was reverted.' },
    })
  })

  await t.test('while users write, and none of their writes is lost or repeated', async (t) => {
    const follower = await eventFollower(t, platform, ada)
    const writers = [restWriter(t, platform, ada), restWriter(t, platform, ada)]
    const session = sqlWriter(t, ada)
    const users = [...writers, session]
    /** Waits until each user has written more. */
    const more = async () => {
      const counts = users.map(({ acknowledged }) => acknowledged.length)
      await until(() => users.every(({ acknowledged }, at) => acknowledged.length > (counts[at] ?? 0) + 3))
    }
    for (let round = 1; round <= rounds; round++) {
      await more()
      t.match(await move(platform, ada, second), { state: 'succeeded', error: null })
      await more()
      t.match(await revert(platform, ada), { state: 'succeeded', error: null }, `revert ${round}`)
    }
    await more()
    await Promise.all(users.map((user) => user.stop()))
    const home = platform.postgres.url(first)
    const { written } = await checkStoredOnce(t, home, ada, writers, session)
    await until(() => written.every((one) => follower.ids.has(one)), 'the events of all records')
    t.equal(follower.count(), follower.ids.size, 'each of them once')
    follower.stop()
    t.same(await remains(platform, ada, second), [])
  })
})
