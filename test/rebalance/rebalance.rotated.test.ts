// Relieves a shared database of a real server: its size is measured, homes move while they are served, a control plane is killed.
import t from 'tap'
import {
  createOwner,
  first,
  request,
  second,
  sql,
  startMovePlatform,
  type Owner,
} from '#test/moves/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import type { Service } from '#test/support/platform.ts'
import { until } from '#test/support/until.ts'

interface Move {
  tenant_id: string
  from: string
  to: string
  bytes: number
  state: string
  operation_id: string | null
  error: string | null
}

t.test('Shared databases', { timeout: 600_000 }, async (t) => {
  // The moves of a rebalance cannot be reverted, even if others can.
  const platform = await startMovePlatform(t, { control: { TENANTRY_MOVE_REVERSE_SECONDS: '3600' } })
  const { call } = platform
  let plane: Service = await platform.startControlPlane()
  /** Replaces the control plane, which is killed. */
  const replace = async (failpoints = '') => {
    plane.process.kill('SIGKILL')
    await plane.exited
    plane = await platform.startControlPlane({ failpoints })
  }
  const owners: Owner[] = []
  for (const name of ['ada', 'ben', 'cem', 'dan']) owners.push(await createOwner(platform, name))
  const [ada, ben, cem, dan] = owners as [Owner, Owner, Owner, Owner]
  await sql(
    dan.url,
    'create table heavy as select n, repeat(md5(n::text), 100) as text from generate_series(1, 4000) n',
  )
  const databases = '/v1/regions/local/databases'
  const listed = async () => (await call('GET', databases)).body['databases'] as Record<string, unknown>[]
  const rebalance = (body: object) => call('POST', '/v1/regions/local/rebalance', body)
  const read = async (id: string) => (await call('GET', `/v1/regions/local/rebalances/${id}`)).body
  const movesOf = async (id: string) => (await read(id))['moves'] as Move[]
  const statesOf = (moves: readonly Move[]) => moves.map(({ state }) => state).join(' ')
  /** Waits for the end of a rebalance. @returns its state */
  const ended = async (id: string) => {
    await until(async () => (await read(id))['finished'] !== null, 'the end of the rebalance')
    return (await read(id))['state']
  }

  await t.test('are listed with their size and their limits', async (t) => {
    await until(async () => (await listed())[0]?.['bytes'] !== null, 'the first measurement')
    t.match(await listed(), [
      { name: first, homes: 4, max_homes: 1_000, bytes: Number, max_bytes: null, measured_at: /Z$/, exceeds: [] },
    ])
    t.equal((await listed()).length, 1)
    await until(
      async () =>
        /tenantry_shared_database_homes\{region="local",database="tenantry_homes_1"\} 4/.test(
          await (
            await fetch(`${platform.controlUrl}/metrics`, {
              headers: { authorization: `Bearer ${platform.platformKey}` },
            })
          ).text(),
        ),
      'the metric',
    )
  })

  await t.test('have limits that operators change, and reject what is invalid', async (t) => {
    for (const [path, body, status, code] of [
      [`${databases}/${first}`, {}, 400, 'INVALID_FIELD'],
      [`${databases}/${first}`, { max_homes: 0 }, 400, 'INVALID_FIELD'],
      [`${databases}/${first}`, { max_bytes: '1 GB' }, 400, 'INVALID_FIELD'],
      [`${databases}/${first}`, { homes: 1 }, 400, 'UNKNOWN_FIELD'],
      [`${databases}/nowhere`, { max_homes: 1 }, 404, 'DATABASE_NOT_FOUND'],
      ['/v1/regions/mars/databases/x', { max_homes: 1 }, 404, 'NOT_FOUND'],
    ] as const) {
      const response = await call('PATCH', path, body)
      t.match([response.status, response.body], [status, { code }], JSON.stringify([path, body]))
    }
    t.match((await call('PATCH', `${databases}/${first}`, { max_homes: 2 })).body, {
      name: first,
      max_homes: 2,
      exceeds: ['homes'],
    })
    t.match((await call('GET', '/v1/audit')).body['entries'], [
      { action: 'database.limit', detail: { region: 'local', max_homes: 2, max_bytes: null } },
    ])
  })

  await t.test('are relieved by a plan, which changes nothing as a dry run', async (t) => {
    const planned = await rebalance({})
    t.equal(planned.status, 200)
    const { moves } = planned.body as unknown as { moves: Move[] }
    t.same(
      new Set(moves.map(({ tenant_id }) => tenant_id)),
      new Set([ada.id, ben.id, cem.id]),
      'the largest home stays',
    )
    t.match(planned.body['databases_after'], [
      { name: first, homes: 1, max_homes: 2, exceeds: [] },
      { name: second, homes: 3, max_homes: 1_000, max_bytes: null, exceeds: [] },
    ])
    t.equal((await listed()).length, 1)
    t.match(await call('GET', '/v1/regions/local/rebalances'), { status: 200, body: { rebalances: [] } })
    t.match(await rebalance({ dry_run: 'no' }), { status: 400, body: { code: 'INVALID_FIELD' } })
  })

  await t.test('are relieved two homes at a time, also after a kill of the control plane', async (t) => {
    // What a kill leaves that interrupts the creation of a database.
    await query(
      platform.postgres.url('postgres'),
      `create database ${second} template template0 allow_connections false`,
    )
    await replace('move.caught-up=hang')
    const started = await rebalance({ dry_run: false })
    t.equal(started.status, 202)
    const id = String(started.body['id'])
    t.match(await rebalance({ dry_run: false }), {
      status: 409,
      body: { code: 'REBALANCE_IN_PROGRESS', rebalance_id: id },
    })
    await until(async () => statesOf(await movesOf(id)).startsWith('moving moving'), 'two moves in progress')
    t.equal(statesOf(await movesOf(id)), 'moving moving waiting')
    const third = (await movesOf(id))[2]?.tenant_id ?? ''
    t.equal((await call('PATCH', `/v1/tenants/${third}`, { suspended: true }, { prefer: 'wait=30' })).status, 200)
    await replace()
    t.equal(await ended(id), 'done')
    const moves = await movesOf(id)
    t.equal(statesOf(moves), 'moved moved skipped')
    t.match(moves[2]?.error, /Only a ready tenant can be moved/)
    t.match(await listed(), [
      { name: first, homes: 2, exceeds: [] },
      { name: second, homes: 2, exceeds: [] },
    ])
    await call('PATCH', `/v1/tenants/${third}`, { suspended: false }, { prefer: 'wait=30' })
    for (const owner of owners) t.equal((await request(platform, owner, 'GET', '/rest/v1/schemas')).status, 200)
    for (const { tenant_id, operation_id } of moves.slice(0, 2)) {
      t.match((await call('GET', `/v1/operations/${operation_id ?? ''}`)).body, {
        kind: 'move',
        state: 'succeeded',
        move: { revertible_until: null, not_revertible_reason: 'The moves of a rebalance cannot be reverted.' },
      })
      t.match((await call('GET', `/v1/tenants/${tenant_id}`)).body, { database_url: new RegExp(`/${second}$`) })
    }
  })

  await t.test('that are too large are relieved of the largest home', async (t) => {
    const before = (await rebalance({})).body as unknown as { databases_after: { name: string; bytes: number }[] }
    const bytes = before.databases_after[0]?.bytes ?? 0
    await call('PATCH', `${databases}/${first}`, { max_bytes: bytes - 1_000_000, max_homes: 1_000 })
    const planned = (await rebalance({})).body as unknown as { moves: Move[] }
    t.match(planned.moves, [{ tenant_id: dan.id, from: first, to: second }])
    t.ok((planned.moves[0]?.bytes ?? 0) > 400_000, `${planned.moves[0]?.bytes ?? 0} bytes, large values included`)
    await call('PATCH', `${databases}/${first}`, { max_bytes: 1 })
    await until(async () => {
      const [one] = await listed()
      return JSON.stringify(one?.['exceeds']) === '["bytes"]'
    })
    // A database that is too large gets no new homes.
    const eve = await createOwner(platform, 'eve')
    t.match((await call('GET', `/v1/tenants/${eve.id}`)).body, { database_url: new RegExp(`/${second}$`) })
  })

  await t.test('keep what has not moved when the rebalance is canceled', async (t) => {
    await call('PATCH', `${databases}/${first}`, { max_bytes: null })
    await call('PATCH', `${databases}/${second}`, { max_homes: 1 })
    await replace('move.caught-up=hang')
    const id = String((await rebalance({ dry_run: false })).body['id'])
    await until(async () => statesOf(await movesOf(id)) === 'moving moving waiting', 'two moves in progress')
    const path = `/v1/regions/local/rebalances/${id}`
    t.match(await call('POST', `${path}/cancel`), { status: 202, body: { state: 'canceling' } })
    await replace()
    t.equal(await ended(id), 'canceled')
    t.equal(statesOf(await movesOf(id)), 'moved moved skipped')
    t.match((await movesOf(id))[2], { error: 'An operator has canceled the rebalance.', operation_id: null })
    t.match(await call('POST', `${path}/cancel`), { status: 409, body: { code: 'REBALANCE_FINISHED' } })
    t.match(await call('GET', '/v1/regions/local/rebalances/x'), {
      status: 404,
      body: { code: 'REBALANCE_NOT_FOUND' },
    })
    t.match((await call('GET', '/v1/regions/local/rebalances?limit=1')).body, {
      rebalances: [{ id }],
      next_cursor: String,
    })
  })

  plane.process.kill('SIGTERM')
  await plane.exited
})
