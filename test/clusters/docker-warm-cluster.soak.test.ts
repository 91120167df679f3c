// A pool of clusters on a real engine: a new tenant gets one that was created in advance, and the pool is refilled.
import pg from 'pg'
import t from 'tap'
import { clusterImages, startDockerPlatform } from '#test/support/docker-platform.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'

const rounds = effort({ small: 1, full: 10 })

t.test('A new tenant gets a cluster of the pool', { timeout: 3_600_000 }, async (t) => {
  const platform = await startDockerPlatform({
    docker: { clusters: { ...clusterImages, warm_stacks: 1 } },
    deleteGraceSeconds: 0,
  })
  t.teardown(() => platform.stop())
  const warmCluster = async () => {
    const find = () => platform.sql(`select id from tenants where desired = 'warm' and status = 'warm'`)
    await until(async () => (await find()).length === 1, 'a cluster in the pool', 240_000)
    return String((await find())[0]?.['id'])
  }

  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const warm = await warmCluster()
    const beginning = performance.now()
    const name = `acme-${round}`
    const created = await platform.call('POST', '/v1/tenants', { name, plan: 'Enterprise', region: 'local' })
    t.match(created, { status: 201, body: { tenant_id: warm, isolation: 'cluster-per-tenant', generation: 2 } })
    const ready = await platform.until(warm, ({ status }) => status === 'ready', 120)
    times.push(Math.round(performance.now() - beginning))
    t.equal(ready['reason'], null)

    const client = new pg.Client({ connectionString: String(created.body['database_url']) })
    await client.connect()
    await client.query('create table numbers (number int)')
    await client.query('insert into numbers values (1)')
    t.same((await client.query('select number from numbers')).rows, [{ number: 1 }], 'SQL clients reach its primary')
    await client.end()
    const bucket = await platform.tenantCall(name, 'POST', '/storage/v1/bucket', {
      key: String((created.body['keys'] as Record<string, unknown>)['secret_key']),
      type: 'application/json',
      body: JSON.stringify({ name: 'pictures', policy: 'private' }),
    })
    t.equal(bucket.status, 201, 'its runtimes serve requests')
    t.not(await warmCluster(), warm, 'the pool has another cluster')
    t.equal((await platform.call('DELETE', `/v1/tenants/${warm}`)).status, 202)
    await platform.until(warm, ({ error }) => error !== undefined, 120)
  }
  t.comment(`ready after ms: ${times.sort((one, other) => one - other).join(', ')}`)
})
