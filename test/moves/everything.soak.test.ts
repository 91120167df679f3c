// A tenant that uses everything moves to another database and back, through a gateway, while all of its users are active.
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { checkFiles, checkWrites, homeReader, runsOf, startUsers } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { first, move, remains, second, startMovePlatform } from './support/platform.ts'

const roundTrips = effort({ small: 1, full: 20 })

interface Usage {
  api_requests: { by_group: Record<string, number> }
  storage: { files_count: number; files_bytes: number }
}

t.test('A tenant that uses everything moves there and back', { timeout: 3_600_000 }, async (t) => {
  const platform = await startMovePlatform(t, { hasPostgresProxy: true })
  await platform.startControlPlane()
  const tenant = await createBusyTenant(platform, 'ada')
  const home = homeReader(platform, tenant, first)
  const countersOf = async () => {
    const [row] = await home('select books::text, books_began::text from {home}.storage_usage')
    return row
  }
  const before = await countersOf()
  const users = await startUsers(t, tenant)
  const { channel, transfers, orders, calls, messages } = users

  await users.untilAllContinue()
  for (let done = 0; done < roundTrips; done++)
    for (const [to, from] of [
      [second, first],
      [first, second],
    ] as const) {
      const logins = transfers.logins()
      t.match(await move(platform, tenant, to), { state: 'succeeded', error: null }, `to ${to}`)
      await users.untilAllContinue()
      t.same(await remains(platform, tenant, from), [], 'nothing of the move is left')
      t.ok(transfers.logins() > logins, 'the SQL session has logged in again')
      const changes = channel.changes.length
      await until(() => channel.changes.length > changes, 'a change on the channel')
    }
  await users.stop()

  await t.test('with every write that was acknowledged, once', async (t) => {
    const ids = await checkWrites(t, home, users)
    t.equal(channel.joins(), 1, 'the connection of the channel stays open')
    await until(() => channel.changes.length === ids.length, 'all changes on the channel')
    t.equal(channel.changes.length, new Set(channel.changes).size, 'no change arrives twice on the channel')
    const unknown = channel.changes.filter((id) => !ids.includes(id))
    t.same(unknown, [], 'and none that was not made')
  })

  await t.test('with every function that was called or triggered, once', async (t) => {
    const runs = await runsOf(t, home)
    const isUnique = (name: string, values: readonly unknown[]) =>
      t.equal(values.length, new Set(values).size, `none of ${values.length} ${name} has run twice`)
    isUnique('deliveries', runs.subjects('database'))
    const stored = await home('select id::text from {home}.notes')
    t.same(
      runs.notes.sort(),
      stored.map(({ id }) => String(id)).sort(),
      `${stored.length} notes have run their function`,
    )
    isUnique('changes of the order', runs.orders)
    const sorted = [...runs.orders].sort((a, b) => a - b)
    t.same(runs.orders, sorted, 'in the order of the changes')
    const isIncluded = <T>(all: readonly T[], some: readonly T[]) =>
      t.same(
        some.filter((one) => !all.includes(one)),
        [],
        `all ${some.length} have run`,
      )
    isIncluded(runs.orders, orders.acknowledged)
    const called = runs.of('http').map(({ input }) => (input as { number: number }).number)
    isUnique('calls', called)
    isIncluded(called, calls.acknowledged)
    isUnique('messages', runs.subjects('webhook'))
    isIncluded(runs.subjects('webhook'), messages.acknowledged)
    const planned = await home('select planned_at, skipped from {home}.function_schedule_runs')
    const times = planned.map((row) => (row['planned_at'] as Date).toISOString())
    t.same(runs.subjects('schedule').sort(), times.sort(), 'each planned time has run once')
  })

  await t.test('with its files, and the usage of its requests and files', async (t) => {
    await checkFiles(t, tenant, users)
    t.same(users.reader.wrong, [], 'a URL from before the moves is valid')
    const [objects] = await home(
      'select count(*)::int as count, coalesce(sum(size), 0)::float8 as bytes from {home}.storage_objects',
    )
    t.match(await countersOf(), before, 'the counters of its files are the same ones')
    const { acknowledged, uncertain } = tenant.requests
    let usage: Usage | undefined
    const requests = () => {
      const { rest = 0, storage = 0, functions = 0 } = usage?.api_requests.by_group ?? {}
      return rest + storage + functions
    }
    // Gateways push their counts each second.
    await until(async () => {
      usage = (await platform.call('GET', `/v1/tenants/${tenant.id}/usage`)).body['resources'] as Usage
      return requests() >= acknowledged
    }, 'the usage')
    t.ok(requests() <= acknowledged + uncertain, `${acknowledged} ≤ ${requests()} ≤ ${acknowledged + uncertain}`)
    t.match(usage?.storage, { files_count: objects?.['count'], files_bytes: objects?.['bytes'] })
  })
})
