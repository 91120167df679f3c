// Moves that cannot be reverted any more: the time is over, the structure has changed, the home moves again, or the tenant is
// deleted. Nothing of the old home is left.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import {
  contentOf,
  createOwner,
  ended,
  fill,
  first,
  move,
  remains,
  request,
  revert,
  reverseEnded,
  second,
  sql,
  startMovePlatform,
} from './support/platform.ts'

const noMove = { status: 409, body: { code: 'NO_MOVE_TO_REVERT' } }

t.test('The time for a revert ends by itself', { timeout: 300_000 }, async (t) => {
  const platform = await startMovePlatform(t, { control: { TENANTRY_MOVE_REVERSE_SECONDS: '4' } })
  await platform.startControlPlane()
  const ada = await createOwner(platform, 'ada')
  await fill(platform, ada)
  const { id } = await move(platform, ada, second)
  t.not((await remains(platform, ada, first)).length, 0, 'the old home stays after the move')
  t.equal(await reverseEnded(platform, ada, String(id), first), 'The time for a revert is over.')
  t.match(await platform.call('POST', `/v1/tenants/${ada.id}/move/revert`), noMove)
  t.equal((await request(platform, ada, 'GET', '/rest/v1/notes')).status, 200, 'the new home is served')
  t.match((await move(platform, ada, first))['state'], 'succeeded')
})

t.test('A move that can be reverted', { timeout: 600_000 }, async (t) => {
  const platform = await startMovePlatform(t, {
    deleteGraceSeconds: 0,
    control: { TENANTRY_MOVE_REVERSE_SECONDS: '3600' },
  })
  let control = await platform.startControlPlane()
  const restart = async (failpoints = '') => {
    control.process.kill('SIGKILL')
    await control.exited
    control = await platform.startControlPlane({ failpoints })
  }
  const ada = await createOwner(platform, 'ada')
  await fill(platform, ada)
  const urlIn = (database: string) => ada.url.replace(/tenantry_homes_\d+/, database)
  const requestRevert = () => platform.call('POST', `/v1/tenants/${ada.id}/move/revert`)

  await t.test('can be so no more once the tenant changes the structure of its home', async (t) => {
    const { id } = await move(platform, ada, second)
    await sql(urlIn(second), `alter table large add column more int; insert into large values (-2, 'b', 3)`)
    const reason = 'The structure of the home has changed since the move.'
    t.equal(await reverseEnded(platform, ada, String(id), first), reason)
    const { status, body } = await requestRevert()
    t.match({ status, body }, noMove)
    t.match(body['message'], reason)
    t.match(await sql(urlIn(second), 'select more from large where id = -2'), [{ more: 3 }], 'the new home is in use')
  })

  await t.test('can be so no more once it has a new table', async (t) => {
    const { id } = await move(platform, ada, first)
    await sql(urlIn(first), 'create table later (n int)')
    t.match(await reverseEnded(platform, ada, String(id), second), /The structure/)
  })

  await t.test('ends before the next move, also of one to the old database', async (t) => {
    const { id } = await move(platform, ada, second)
    await sql(urlIn(second), `insert into later values (1)`)
    const content = await contentOf(platform, second, ada)
    t.match(await move(platform, ada, first), { state: 'succeeded', move: { reverts: null } })
    t.same(await contentOf(platform, first, ada), content)
    t.match((await platform.call('GET', `/v1/operations/${String(id)}`)).body, {
      move: { not_revertible_reason: 'Another move of the tenant has begun.' },
    })
  })

  await t.test('stays so after a canceled revert, but not after one that has found a difference', async (t) => {
    t.match(await revert(platform, ada), { state: 'succeeded' })
    t.same(await remains(platform, ada, first), [])
    const { id } = await move(platform, ada, first)
    await restart('move.agreed=hang')
    const busy = await requestRevert()
    const { id: operation } = busy.body['operation'] as { id: string }
    t.match(busy, { status: 202 })
    t.match(await requestRevert(), { status: 423, body: { code: 'OPERATION_IN_PROGRESS' } })
    const stepOf = async () => (await platform.call('GET', `/v1/operations/${operation}`)).body['step']
    await until(async () => (await stepOf()) === 'hold')
    t.match(await platform.call('POST', `/v1/operations/${operation}/cancel`), { status: 202 })
    await restart()
    t.match(await ended(platform, operation), { state: 'failed', error: 'An operator has canceled the move.' })
    await t.rejects(sql(urlIn(second), 'select from facts'), /does not exist/, 'the old home is closed again')
    t.equal((await request(platform, ada, 'POST', '/rest/v1/notes', { text: 'on' })).status, 201)
    await query(
      platform.postgres.url(second),
      `set session_replication_role = replica; update "${ada.id}".large set body = 'changed'`,
    )
    t.match(await revert(platform, ada), { state: 'failed', error: /the content of the table "large" is not the same/ })
    t.match(await reverseEnded(platform, ada, String(id), second), /the table "large"/)
    t.equal((await request(platform, ada, 'GET', '/rest/v1/notes')).status, 200)
  })

  await t.test('can be so no more once the server has lost the slot', async (t) => {
    const { id } = await move(platform, ada, second)
    const slot = `tenantry_reverse_${ada.id.slice(2)}`
    const dropped = () => query(platform.postgres.url('postgres'), 'select pg_drop_replication_slot($1)', [slot])
    // The control plane reads it at some moments.
    await until(() =>
      dropped().then(
        () => true,
        () => false,
      ),
    )
    t.match(await reverseEnded(platform, ada, String(id), first), /The server has removed changes/)
    t.match(await move(platform, ada, first), { state: 'succeeded' })
  })

  await t.test('ends with the tenant', async (t) => {
    const { id } = await move(platform, ada, second)
    t.match(await platform.call('DELETE', `/v1/tenants/${ada.id}`), { status: 202 })
    t.equal(await reverseEnded(platform, ada, String(id), first), 'The tenant is deleted.')
    await until(async () => (await platform.call('GET', `/v1/tenants/${ada.id}`)).status === 404, 'the purge')
    t.same(await remains(platform, ada, first), [])
    const home = await query(platform.postgres.url(second), 'select 1 from pg_namespace where nspname = $1', [ada.id])
    t.same(home, [])
  })
})
