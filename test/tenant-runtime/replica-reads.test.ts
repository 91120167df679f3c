// Reads while a cluster has no primary: they continue at a replica, and see every acknowledged change.
import t from 'tap'
import { startPostgresCluster, type ClusterMember } from '#test/support/postgres-cluster.ts'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'

const service = { as: 'service' } as const

t.test('Reads during a failover', async (t) => {
  const cluster = await startPostgresCluster(t)
  const [first, one, other] = cluster.members
  // No wait of a request ends before the test.
  const runtime = await startRuntime(t, { cluster, connections: { failoverMilliseconds: 120_000 } })
  const tenant = await runtime.addTenant()
  const fields = [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'title', type: 'string' },
  ]
  const schema = { name: 'notes', fields, rls_policy: { type: 'service' } }
  t.equal((await tenant.request('POST', '/rest/v1/schemas', { ...service, body: schema })).status, 201)
  t.equal((await tenant.request('POST', '/admin/reload-schemas', service)).status, 200)

  const write = (title: string) => tenant.request('POST', '/rest/v1/notes', { ...service, body: { title } })
  const titles = async (prefix: string) => {
    const response = await tenant.request('GET', `/rest/v1/notes?title=like.${prefix}*&order=title`, service)
    t.equal(response.status, 200, response.text)
    return response.list().map(({ title }) => title)
  }
  /** Begins a read. `isOver` becomes true with its response. */
  const beginRead = (prefix: string) => {
    const reading = { isOver: false, titles: titles(prefix).finally(() => (reading.isOver = true)) }
    return reading
  }
  /** Ends the primary. The router leads to no member until one is the primary again. */
  const lose = async (member: ClusterMember) => {
    await member.postgres.halt()
    cluster.route(undefined)
  }
  const recover = async () => {
    await first.postgres.resume()
    cluster.route(first)
  }
  const replay = (member: ClusterMember, does: 'pause' | 'resume') =>
    query(member.postgres.url('postgres'), `select pg_wal_replay_${does}()`)

  await t.test('A replica that has not replayed an acknowledged change is not read', async (t) => {
    await replay(one, 'pause')
    t.equal((await write('replay 1')).status, 201)
    await replay(other, 'pause')
    t.equal((await write('replay 2')).status, 201)
    await lose(first)
    const reading = beginRead('replay')
    // Several comparisons find no replica that has replayed everything.
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    t.notOk(reading.isOver)
    await replay(other, 'resume')
    t.same(await reading.titles, ['replay 1', 'replay 2'])
    for (let n = 0; n < 10; n++) t.same(await titles('replay'), ['replay 1', 'replay 2'])
    await replay(one, 'resume')
    await recover()
  })

  await t.test('A replica that has not received an acknowledged change is not read', async (t) => {
    other.upstream?.silence()
    t.equal((await write('receipt')).status, 201)
    await lose(first)
    for (let n = 0; n < 10; n++) t.same(await titles('receipt'), ['receipt'])

    // From the other one alone, the runtime cannot know what it lacks.
    one.link.silence()
    const reading = beginRead('receipt')
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    t.notOk(reading.isOver)
    one.link.restore()
    t.same(await reading.titles, ['receipt'])
    other.upstream?.restore()
    await recover()
  })

  await t.test(
    'A primary that only this runtime does not reach continues, and each of its changes is read',
    async (t) => {
      t.equal((await write('cut 0')).status, 201)
      first.link.silence()
      const titlesSoFar = ['cut 0']
      for (let n = 1; n <= 9; n++) {
        titlesSoFar.push(`cut ${n}`)
        const copy = "jsonb_populate_record(one, jsonb_build_object('id', gen_random_uuid(), 'title', $1::text))"
        await tenant.rows(`insert into notes select (${copy}).* from notes one where title = 'cut 0'`, [`cut ${n}`])
        t.same(await titles('cut'), titlesSoFar)
      }
      first.link.restore()
    },
  )

  await t.test('All reads continue, writes wait, and everything returns to the next primary', async (t) => {
    await write('all 1')
    const bucket = { name: 'pictures', policy: 'public' }
    t.equal((await tenant.request('POST', '/storage/v1/bucket', { ...service, body: bucket })).status, 201)
    const file = '/storage/v1/object/pictures/a.txt'
    const upload = { ...service, headers: { 'content-type': 'text/plain' }, body: Buffer.from('hello') }
    t.equal((await tenant.request('POST', file, upload)).status, 200)
    await lose(first)

    t.same(await titles('all'), ['all 1'])
    const headers = { prefer: 'count=exact' }
    const head = await tenant.request('HEAD', '/rest/v1/notes?title=like.all*', { ...service, headers })
    t.equal(head.headers['content-range'], '0-0/1')
    const long = await tenant.request('GET', '/rest/v1/notes?title=like.all*&limit=5000', service)
    t.equal(long.list().length, 1, 'a response that is sent row by row')
    t.equal((await tenant.request('GET', file, service)).text, 'hello')
    t.equal((await tenant.request('GET', '/storage/v1/object/info/pictures/a.txt', service)).status, 200)
    const listed = await tenant.request('POST', '/storage/v1/object/list/pictures', { ...service, body: {} })
    t.equal(listed.list().length, 1)
    t.ok((await tenant.request('GET', '/storage/v1/bucket', service)).list().some(({ name }) => name === 'pictures'))
    t.equal((await tenant.request('GET', '/rest/v1/absent', service)).status, 404)

    let isWritten = false
    const writing = write('all 2').finally(() => (isWritten = true))
    for (let n = 0; n < 20; n++) t.same(await titles('all'), ['all 1'])
    t.notOk(isWritten, 'the write waits')
    t.ok(runtime.replicas.open > 0)
    await cluster.promote(one)
    t.equal((await writing).status, 201)
    t.same(await titles('all'), ['all 1', 'all 2'])
    await until(async () => {
      await titles('all')
      return runtime.connections.load.open > 0 && runtime.replicas.open === 0
    }, 'no connection leads to a replica')
  })

  await t.test('Reads do not wait for a connection whose router is lost', async (t) => {
    t.equal((await write('router')).status, 201)
    cluster.loseRouter()
    t.same(await titles('router'), ['router'])
    const long = await tenant.request('GET', '/rest/v1/notes?title=like.router*&limit=5000', service)
    t.equal(long.list().length, 1)
  })

  await t.test('A former primary and a replica of its successor do not suffice', async (t) => {
    await other.postgres.halt()
    await other.postgres.resume({ port: one.postgres.port, name: 'b' })
    await query(one.postgres.url('postgres'), "alter system set synchronous_standby_names = 'ANY 1 (b)'")
    await query(one.postgres.url('postgres'), 'select pg_reload_conf()')
    t.equal((await write('timeline')).status, 201)
    await lose(one)
    await first.postgres.resume({ port: one.postgres.port, name: 'a' })
    const reading = beginRead('timeline')
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    t.notOk(reading.isOver)
    await cluster.promote(other)
    t.same(await reading.titles, ['timeline'])
  })
})

t.test('A member whose host is lost has no address, and counts as one that does not respond', async (t) => {
  const cluster = await startPostgresCluster(t)
  const [first, one, other] = cluster.members
  const addresses = ['lost.invalid:5432', ...cluster.addresses.slice(1)]
  const runtime = await startRuntime(t, {
    cluster: { ...cluster, addresses },
    connections: { failoverMilliseconds: 120_000 },
  })
  const tenant = await runtime.addTenant()
  const bucket = { name: 'pictures', policy: 'public' }
  t.equal((await tenant.request('POST', '/storage/v1/bucket', { ...service, body: bucket })).status, 201)
  const names = async () => {
    const response = await tenant.request('GET', '/storage/v1/bucket', service)
    return response.list().map(({ name }) => name)
  }
  const before = await names()
  await first.postgres.halt()
  cluster.route(undefined)
  t.same(await names(), before, 'two of three members suffice')

  other.link.silence()
  let isOver = false
  const reading = names().finally(() => (isOver = true))
  await new Promise((resolve) => setTimeout(resolve, 2_500))
  t.notOk(isOver, 'one of three does not')
  other.link.restore()
  t.same(await reading, before)
  t.ok(runtime.replicas.open > 0)
  await cluster.promote(one)
})
