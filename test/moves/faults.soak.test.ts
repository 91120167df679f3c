// Moves that end early: a kill of the control plane at any failpoint, a cancellation, a difference, a busy home, and requests
// that are rejected. The source serves on, and nothing of the move is left.
import pg from 'pg'
import t from 'tap'
import { moveFailpointNames } from '#control-plane/reconcile/failpoints.ts'
import { effort, seed } from '#test/support/effort.ts'
import type { Service } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import {
  contentOf,
  createOwner,
  databaseOf,
  ended,
  fill,
  first,
  move,
  remains,
  request,
  second,
  sql,
  startMovePlatform,
} from './support/platform.ts'

/** The small run takes every eighth failpoint. The seed chooses which. */
const stride = effort({ small: 8, full: 1 })
const killed = moveFailpointNames.filter((_, at) => at % stride === seed % stride)

t.test('A move that ends early', { timeout: 900_000 }, async (t) => {
  const platform = await startMovePlatform(t)
  let control: Service = await platform.startControlPlane()
  const stop = async () => {
    control.process.kill('SIGTERM')
    await control.exited
  }
  const ada = await createOwner(platform, 'ada')
  await fill(platform, ada)
  const other = (database: string) => (database === first ? second : first)
  const urlIn = (database: string) => ada.url.replace(/tenantry_homes_\d+/, database)
  const requestMove = async (database: string) => {
    const { status, body } = await platform.call('POST', `/v1/tenants/${ada.id}/move`, { database })
    if (status !== 202) throw new Error(JSON.stringify(body))
    return String((body['operation'] as Record<string, unknown>)['id'])
  }
  const serves = async (t: Tap, database: string, content: string[]) => {
    t.same(await contentOf(platform, database, ada), content, 'with the same content')
    await until(async () => (await request(platform, ada, 'GET', '/rest/v1/notes')).status === 200, 'a response')
    t.same(await remains(platform, ada, other(database)), [], 'and nothing of the move is left')
  }
  type Tap = typeof t

  await t.test('rejects requests that name what is not possible', async (t) => {
    const path = `/v1/tenants/${ada.id}/move`
    for (const [body, status, code] of [
      [{ database: first }, 409, 'SAME_DATABASE'],
      [{ database: 'tenantry_homes_9' }, 400, 'UNKNOWN_DATABASE'],
      [{ database: '' }, 400, 'UNKNOWN_DATABASE'],
      [{ database: 7 }, 400, 'INVALID_FIELD'],
      [{}, 400, 'MISSING_FIELD'],
      [{ database: second, host: 'b' }, 400, 'UNKNOWN_FIELD'],
    ] as const)
      t.match(await platform.call('POST', path, body), { status, body: { code } }, JSON.stringify(body))
    t.match(await platform.call('POST', '/v1/tenants/t_00000000000000000000/move', { database: second }), {
      status: 404,
    })
    const unknown = '00000000-0000-4000-8000-000000000000'
    t.match(await platform.call('POST', `/v1/operations/${unknown}/cancel`), { status: 404 })
    t.match(await platform.call('POST', `/v1/operations/x/cancel`), { status: 404 })
    const { body } = await platform.call('GET', `/v1/operations?tenant_id=${ada.id}`)
    const [created] = body['operations'] as { id: string }[]
    t.match(await platform.call('POST', `/v1/operations/${created?.id}/cancel`), {
      status: 409,
      body: { code: 'NOT_CANCELABLE' },
    })
  })

  await t.test('because an operator cancels it', async (t) => {
    const content = await contentOf(platform, first, ada)
    await stop()
    control = await platform.startControlPlane({ failpoints: 'move.caught-up=hang' })
    const id = await requestMove(second)
    await until(async () => {
      const { body } = await platform.call('GET', `/v1/operations/${id}`)
      return body['step'] === 'catch up'
    })
    const busy = { status: 423, body: { code: 'OPERATION_IN_PROGRESS', operation_id: id } }
    t.match(await platform.call('POST', `/v1/tenants/${ada.id}/move`, { database: second }), busy)
    t.match(await platform.call('PATCH', `/v1/tenants/${ada.id}`, { suspended: true }), busy)
    t.match(await platform.call('POST', `/v1/operations/${id}/cancel`), { status: 202, body: { state: 'running' } })
    control.process.kill('SIGKILL')
    await control.exited
    control = await platform.startControlPlane()
    t.match(await ended(platform, id), { state: 'failed', error: 'An operator has canceled the move.' })
    await serves(t, first, content)
    t.match(await platform.call('POST', `/v1/operations/${id}/cancel`), { status: 409 })
  })

  await t.test('because the copy differs', async (t) => {
    const content = await contentOf(platform, first, ada)
    const id = await requestMove(second)
    const change = `set session_replication_role = replica; update "${ada.id}".large set body = 'changed'`
    const isOver = async () => (await platform.call('GET', `/v1/operations/${id}`)).body['finished'] != null
    await until(async () => {
      // The table does not exist yet, or does not exist any more, at some of the attempts.
      await query(platform.postgres.url(second), `${change} where body <> 'changed'`).catch(() => undefined)
      return isOver()
    })
    const operation = await ended(platform, id)
    t.match(operation, { state: 'failed', error: /table "large"/ })
    await serves(t, first, content)
  })

  await t.test('because the home has what a move does not support', async (t) => {
    await sql(ada.url, 'create unlogged table quick (n int)')
    t.match(await move(platform, ada, second), { state: 'failed', error: /The table "quick" is unlogged/ })
    await sql(ada.url, 'drop table quick')
    await serves(t, first, await contentOf(platform, first, ada))
  })

  await t.test('because a transaction holds the home for longer than requests may wait', async (t) => {
    await stop()
    control = await platform.startControlPlane({ failpoints: 'move.held=throw' })
    const content = await contentOf(platform, first, ada)
    t.match(await move(platform, ada, second), { state: 'failed' })
    await serves(t, first, content)
    await stop()
    control = await platform.startControlPlane()
    const client = new pg.Client({ connectionString: ada.url })
    await client.connect()
    const id = await requestMove(second)
    await until(async () => (await platform.call('GET', `/v1/operations/${id}`)).body['step'] === 'compare')
    await client.query(`begin; insert into large values (-1, 'late')`)
    await until(async () => (await platform.call('GET', `/v1/operations/${id}`)).body['step'] === 'hold')
    await client.query('commit')
    await client.end()
    t.match(await ended(platform, id), { state: 'succeeded' })
    t.match(await sql(urlIn(second), 'select body from large where id = -1'), [{ body: 'late' }], 'waits for its end')
  })

  for (const name of killed)
    await t.test(`because the control plane is killed at ${name}`, async (t) => {
      const from = await databaseOf(platform, ada)
      const content = await contentOf(platform, from, ada)
      await stop()
      const armed = await platform.startControlPlane({ failpoints: `${name}=kill` })
      const id = await requestMove(other(from))
      await armed.exited
      t.equal(armed.process.signalCode, 'SIGKILL')
      control = await platform.startControlPlane()
      t.match(await ended(platform, id), { state: 'succeeded' }, 'is completed by the next one')
      t.equal(await databaseOf(platform, ada), other(from))
      await serves(t, other(from), content)
    })
})
