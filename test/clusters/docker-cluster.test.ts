// A tenant with a cluster of its own on a real engine: it is created, loses its primary, keeps every acknowledged row, and leaves
// nothing behind.
import pg from 'pg'
import t from 'tap'
import { startDockerPlatform } from '#test/support/docker-platform.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'

const clusters = { member_image: 'tenantry/cluster-member:latest', etcd_image: 'tenantry/etcd:latest' }
/** Writes that must be acknowledged before the first fault and after each. */
const writes = 20
/** Number of times that each fault occurs. */
const rounds = effort({ small: 1, full: 20 })

interface Member {
  name: string
  role: string
  state: string
  timeline: number
  synchronous: boolean
}

t.test('A cluster survives the loss of its primary', { timeout: 3_600_000 }, async (t) => {
  const platform = await startDockerPlatform({ docker: { clusters }, deleteGraceSeconds: 0 })
  t.teardown(() => platform.stop())
  const signal = AbortSignal.timeout(3_590_000)

  const beginning = performance.now()
  const created = await platform.call('POST', '/v1/tenants', { name: 'acme', plan: 'Enterprise', region: 'local' })
  t.equal(created.status, 201)
  t.equal(created.body['isolation'], 'cluster-per-tenant', 'the model of the plan')
  const id = String(created.body['tenant_id'])
  const databaseUrl = String(created.body['database_url'])
  const secretKey = String((created.body['keys'] as Record<string, unknown>)['secret_key'])
  const ready = await platform.until(id, ({ status }) => status === 'ready', 240)
  t.comment(`ready after ${Math.round((performance.now() - beginning) / 1000)} s`)
  const conditions = (tenant: Record<string, unknown>) =>
    new Map((tenant['conditions'] as { type: string; status: string }[]).map(({ type, status }) => [type, status]))
  for (const type of ['Services', 'Database', 'Home', 'Quorum', 'Replicating', 'Runtime', 'Route'])
    t.equal(conditions(ready).get(type), 'True', type)

  const objects = () => platform.host.observe({ installation: platform.installation, stack: id }, signal)
  const containerOf = async (service: string) => {
    const { containers } = await objects()
    const found = containers.find(({ labels }) => labels.service === service)
    if (found === undefined) throw new Error(`no container of ${service}`)
    return found.name
  }
  const members = async (): Promise<Member[]> => {
    const { body } = await platform.call('GET', `/v1/tenants/${id}/health`)
    return (body['members'] ?? []) as Member[]
  }
  /** Waits until one member is the primary, and the others follow it on its timeline and may confirm its commits. */
  const complete = async (seconds: number): Promise<Member[]> => {
    const deadline = performance.now() + seconds * 1000
    for (;;) {
      const all = await members()
      const primary = all.find(({ role, state }) => role === 'primary' && state === 'running')
      const following = all.filter(
        ({ role, state, timeline, synchronous }) =>
          role === 'replica' && state === 'streaming' && timeline === primary?.timeline && synchronous,
      )
      if (following.length === 2) return all
      if (performance.now() > deadline) throw new Error(`not complete in ${seconds} s: ${JSON.stringify(all)}`)
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  }
  const before = await complete(30)

  const { memory, services } = await memoryOf(platform, id, signal)
  t.comment(`idle stack: ${Math.round(memory / 1e6)} MB: ${services}`)
  t.ok(memory <= 450e6, 'an idle cluster takes at most 450 MB')
  const etcd = await memoryOf(platform, await regionStackOf(platform, signal), signal, 'etcd-')
  t.comment(`etcd: ${Math.round(etcd.memory / 1e6)} MB: ${etcd.services}`)
  t.ok(etcd.memory <= 300e6, "the region's etcd takes at most 300 MB")

  await t.test('What is not available for clusters is rejected with the reason', async (t) => {
    const path = `/v1/tenants/${id}`
    for (const [method, route, body] of [
      ['POST', `${path}/restart`],
      ['POST', `${path}/pause`],
      ['GET', `${path}/sessions`],
      ['GET', `${path}/logs?component=postgres`],
      ['PATCH', path, { resources: { postgres: { memory_bytes: 2 ** 30, cpu_millis: 1000 } } }],
      ['PATCH', path, { pause_after_seconds: 600 }],
      ['PATCH', path, { archive_days: 7 }],
      ['PATCH', path, { backup_schedule: '5 3 * * *' }],
    ] as const) {
      const rejected = await platform.call(method, route, body)
      t.match(
        rejected,
        {
          status: 422,
          body: {
            code: 'UNSUPPORTED_ISOLATION',
            message: /is not available for a tenant with the isolation cluster-per-tenant\.$/,
          },
        },
        `${method} ${route} ${JSON.stringify(body)}`,
      )
    }
  })

  await t.test("A member's user of etcd opens its own cluster's keys only", async (t) => {
    const member = await containerOf('postgres-1')
    const { stdout, stderr } = await platform.host.exec(member, ['python3', '-c', etcdCalls, id], { signal })
    const [own, other, write, anonymous] = JSON.parse(stdout === '' ? `["${stderr}"]` : stdout) as unknown[]
    t.match(own, { count: '1' })
    for (const denied of [other, write]) t.match(JSON.stringify(denied), /permission denied/)
    t.match(JSON.stringify(anonymous), /user name is empty/)
  })

  await t.test('The read-only URL leads to replicas, where a write fails', async (t) => {
    const readOnlyUrl = String(created.body['read_only_database_url'])
    t.match(readOnlyUrl, /_admin:.+\/home_read_only$/)
    const writing = new pg.Client({ connectionString: databaseUrl })
    const reading = new pg.Client({ connectionString: readOnlyUrl })
    await writing.connect()
    await reading.connect()
    t.teardown(() => Promise.all([writing.end(), reading.end()]))
    await writing.query('create table shared (number int)')
    await writing.query('insert into shared values (7)')
    const isRead = async () => {
      const { rows } = await reading.query('select number from shared').catch(() => ({ rows: [] }))
      return rows.length === 1
    }
    await until(isRead, 'the row at a replica', 10_000)
    t.same((await reading.query('select pg_is_in_recovery() as is_replica, current_database() as name')).rows, [
      { is_replica: true, name: 'home' },
    ])
    await t.rejects(reading.query('insert into shared values (8)'), { code: '25006' })
    t.same((await writing.query('select pg_is_in_recovery() as is_replica')).rows, [{ is_replica: false }])
  })

  const writer = startWriter(databaseUrl)
  t.teardown(() => writer.stop())
  await writer.acknowledged(writes)
  const crash = ['bash', '-c', 'kill -9 "$(head -1 "$PGDATA/postmaster.pid")"']
  const faults: Record<string, (container: string) => Promise<unknown>> = {
    "the primary's container is killed": (container) => platform.kill(container),
    "the primary's Postgres crashes": (container) => platform.host.exec(container, crash, { signal }),
    'a switchover is requested': async () => {
      const switched = await platform.call('POST', `/v1/tenants/${id}/switchover`, undefined, { prefer: 'wait=60' })
      t.match(switched, {
        status: 202,
        body: { status: 'ready', operation: { kind: 'switchover', state: 'succeeded' } },
      })
    },
  }
  const pauses = new Map<string, number[]>(Object.keys(faults).map((fault) => [fault, []]))
  let after = before
  for (let round = 0; round < rounds; round++) {
    for (const [fault, inflict] of Object.entries(faults)) {
      const primary = after.find(({ role }) => role === 'primary')?.name ?? ''
      const container = await containerOf(primary)
      const session = await idleSession(databaseUrl)
      writer.takeMaxPause()
      const confirmed = writer.count()
      await inflict(container)
      await writer.acknowledged(confirmed + writes)
      await session.ended(`the session at the former primary, when ${fault}`)
      after = await complete(120)
      pauses.get(fault)?.push(writer.takeMaxPause())
    }
  }
  for (const [fault, times] of pauses)
    t.comment(`${fault}: ms without writes: ${times.sort((one, other) => one - other).join(', ')}`)
  const timelineOf = (all: Member[]) => all.find(({ role }) => role === 'primary')?.timeline ?? 0
  t.ok(timelineOf(after) > timelineOf(before), 'another timeline: a member was promoted')
  const { acknowledged, stored } = await writer.stop()
  const counts = new Map<number, number>()
  for (const number of stored) counts.set(number, (counts.get(number) ?? 0) + 1)
  t.same(
    acknowledged.filter((number) => !counts.has(number)),
    [],
    `none of ${acknowledged.length} acknowledged rows is lost`,
  )
  t.same(
    [...counts].filter(([, count]) => count > 1),
    [],
    'no row occurs twice',
  )
  const settled = await platform.until(id, (tenant) => conditions(tenant).get('Replicating') === 'True', 60)
  t.equal(settled['status'], 'ready')

  await t.test('A replica whose volume is lost is copied again from the primary', async (t) => {
    const replica = after.find(({ role }) => role === 'replica')?.name ?? ''
    const owner = { installation: platform.installation, stack: id }
    const volume = `tenantry-${id}-data-${replica.slice(-1)}`
    await platform.stopControlPlanes()
    await platform.host.removeContainer(await containerOf(replica), owner, signal)
    await platform.host.removeVolume(volume, owner, signal)
    await platform.startControlPlane()
    await platform.until(id, ({ status }) => status === 'ready', 60)
    const copied = await complete(90)
    t.equal(copied.find(({ name }) => name === replica)?.role, 'replica')
    t.ok((await objects()).volumes.some(({ name }) => name === volume))
  })

  await t.test('A suspended cluster stops, and serves the same rows when it runs again', async (t) => {
    const change = (suspended: boolean) => platform.call('PATCH', `/v1/tenants/${id}`, { suspended })
    t.equal((await change(true)).status, 200)
    await platform.until(id, ({ status }) => status === 'suspended', 120)
    t.same(
      (await objects()).containers.filter(({ state }) => state === 'running'),
      [],
    )
    t.equal((await change(false)).status, 200)
    await platform.until(id, ({ status }) => status === 'ready', 120)
    const client = new pg.Client({ connectionString: databaseUrl })
    await client.connect()
    const { rows } = await client.query<{ count: number }>('select count(*)::int as count from numbers')
    await client.end()
    t.equal(rows[0]?.count, stored.length)
  })

  await t.test('Both runtimes serve requests, and each continues without the other', async (t) => {
    const bucket = await platform.tenantCall('acme', 'POST', '/storage/v1/bucket', {
      key: secretKey,
      type: 'application/json',
      body: JSON.stringify({ name: 'pictures', policy: 'private' }),
    })
    t.equal(bucket.status, 201, await bucket.text())
    await platform.kill(await containerOf('runtime-2'))
    for (let request = 0; request < 4; request++) {
      const response = await platform.tenantCall('acme', 'GET', '/storage/v1/bucket', { key: secretKey })
      t.equal(response.status, 200)
      t.match(await response.text(), /pictures/)
    }
  })

  await t.test('A deletion leaves no container, network, volume, key or user', async (t) => {
    t.ok((await etcdList(platform, signal)).includes(id), 'etcd has the keys before')
    t.equal((await platform.call('DELETE', `/v1/tenants/${id}`)).status, 202)
    await platform.until(id, ({ error }) => error !== undefined, 120)
    const { containers, networks, volumes, unlabelledVolumes } = await objects()
    t.same([containers, networks, volumes, unlabelledVolumes], [[], [], [], []])
    const left = await etcdList(platform, signal)
    t.notOk(left.includes(id), left)
    t.match(left, /\broot\b/, 'etcd responds')
  })
})

type Platform = Awaited<ReturnType<typeof startDockerPlatform>>

/** Reads the leader's key of its own cluster, reads and writes one of another cluster, and reads its own without a login. */
const etcdCalls = `
import base64, json, ssl, sys, urllib.error, urllib.request
settings = json.load(open('/run/secrets/patroni.yml'))['etcd3']
context = ssl.create_default_context(cafile='/run/secrets/etcd-ca.pem')
def call(path, body, token=None):
    headers = {} if token is None else {'Authorization': token}
    request = urllib.request.Request('https://etcd-1:2379' + path, json.dumps(body).encode(), headers)
    try:
        return json.load(urllib.request.urlopen(request, context=context, timeout=10))
    except urllib.error.HTTPError as error:
        return json.load(error)
encoded = lambda text: base64.b64encode(text.encode()).decode()
key = lambda tenant: encoded('/tenantry/' + tenant + '/leader')
token = call('/v3/auth/authenticate', {'name': settings['username'], 'password': settings['password']})['token']
own, other = sys.argv[1], 't_ffffffffffffffffffff'
print(json.dumps([
    call('/v3/kv/range', {'key': key(own)}, token),
    call('/v3/kv/range', {'key': key(other)}, token),
    call('/v3/kv/put', {'key': key(other), 'value': encoded('me')}, token),
    call('/v3/kv/range', {'key': key(own)}),
]))
`

/** Returns all keys and users of the region's etcd. */
async function etcdList({ host, installation }: Platform, signal: AbortSignal): Promise<string> {
  const { containers } = await host.observe({ installation }, signal)
  const member = containers.find(({ labels }) => labels.service === 'etcd-1')
  if (member === undefined) throw new Error('etcd-1 does not exist')
  const { code, stdout, stderr } = await host.exec(member.name, ['/usr/local/bin/etcd-access', 'list'], { signal })
  if (code !== 0) throw new Error(stderr)
  return stdout
}

/** Returns the ID of the region's own stack. */
async function regionStackOf({ host, installation }: Platform, signal: AbortSignal): Promise<string> {
  const { containers } = await host.observe({ installation }, signal)
  const found = containers.find(({ labels }) => labels.stack.startsWith('region-'))
  if (found === undefined) throw new Error('the region has no containers')
  return found.labels.stack
}

/** Returns the memory of a stack's containers in bytes, and its parts as text. */
async function memoryOf({ host, installation }: Platform, stack: string, signal: AbortSignal, prefix = '') {
  const observed = await host.observe({ installation, stack }, signal)
  const containers = observed.containers.filter(({ labels }) => labels.service?.startsWith(prefix))
  const parts = await Promise.all(
    containers.map(async ({ name, labels }) => ({
      service: labels.service ?? '',
      bytes: (await host.stats(name, signal)).memoryBytes,
    })),
  )
  return {
    memory: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    services: parts.map(({ service, bytes }) => `${service} ${Math.round(bytes / 1e6)}`).join(', '),
  }
}

/** Opens a session that sends nothing, and returns how to wait for its end. */
async function idleSession(url: string) {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  let hasEnded = false
  client.on('end', () => (hasEnded = true))
  await client.connect()
  return { ended: (what: string) => until(() => hasEnded, what, 30_000) }
}

/** Inserts consecutive numbers, each once, through the tenant's URL, and connects again after each error. */
function startWriter(url: string) {
  const acknowledged: number[] = []
  let isStopped = false
  let maxPause = 0
  const connect = async () => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 30_000 })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  const run = async () => {
    let number = 0
    let last = performance.now()
    let client: pg.Client | undefined
    while (!isStopped) {
      number++
      try {
        client ??= await connect()
        if (number === 1) await client.query('create table if not exists numbers (number int)')
        await client.query('insert into numbers values ($1)', [number])
        acknowledged.push(number)
        maxPause = Math.max(maxPause, performance.now() - last)
        last = performance.now()
      } catch {
        // Whether the row was stored is unknown. The next number is another row.
        if (acknowledged.length === 0) number = 0
        await client?.end().catch(() => undefined)
        client = undefined
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await client?.end().catch(() => undefined)
  }
  const ended = run()
  let result: Promise<{ acknowledged: number[]; stored: number[] }> | undefined
  const finish = async () => {
    isStopped = true
    await ended
    const client = await connect()
    try {
      const { rows } = await client.query<{ number: number }>('select number from numbers order by number')
      return { acknowledged, stored: rows.map(({ number }) => number) }
    } finally {
      await client.end()
    }
  }
  return {
    count: () => acknowledged.length,
    /** Returns the longest time without an acknowledged write since the last call, in milliseconds. */
    takeMaxPause(): number {
      const pause = Math.round(maxPause)
      maxPause = 0
      return pause
    },
    async acknowledged(total: number, seconds = 90): Promise<void> {
      const deadline = performance.now() + seconds * 1000
      while (acknowledged.length < total) {
        if (performance.now() > deadline) throw new Error(`${acknowledged.length} of ${total} writes in ${seconds} s`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    stop: () => (result ??= finish()),
  }
}
