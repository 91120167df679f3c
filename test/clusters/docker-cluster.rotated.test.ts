// A tenant with a cluster of its own on a real engine: it is created, loses its primary, keeps every acknowledged row, and leaves
// nothing behind.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { clusterImages, startDockerPlatform } from '#test/support/docker-platform.ts'
import { docker } from '#test/reconcile/support/docker-client.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { startHttpClient } from './http-client.ts'
import {
  completeCluster,
  containerOf as containerOfService,
  crashPostgres,
  etcdList,
  memoryOf,
  regionStackOf,
  type Member,
} from './platform-parts.ts'
import { idleSession, lostNothing, startWriter } from './writer.ts'

/** Writes that must be acknowledged before the first fault and after each. */
const writes = 20
/** Number of times that each fault occurs. */
const rounds = effort({ small: 1, full: 20 })
/** Number of restarts, which replace the same members as a new image. */
const restarts = effort({ small: 0, full: 5 })

t.test('A cluster survives the loss of its primary', { timeout: 3_600_000 }, async (t) => {
  const platform = await startDockerPlatform({ docker: { clusters: clusterImages }, deleteGraceSeconds: 0 })
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
  const containerOf = (service: string) => containerOfService(platform, { id }, service, signal)
  const complete = (seconds: number) => completeCluster(platform, { id }, seconds)
  const before = await complete(30)

  const { memory, services } = await memoryOf(platform, id, signal)
  t.comment(`idle stack: ${Math.round(memory / 1e6)} MB: ${services}`)
  t.ok(memory <= 450e6, 'an idle cluster takes at most 450 MB')
  const etcd = await memoryOf(platform, await regionStackOf(platform, signal), signal, 'etcd-')
  t.comment(`etcd: ${Math.round(etcd.memory / 1e6)} MB: ${etcd.services}`)
  t.ok(etcd.memory <= 300e6, "the region's etcd takes at most 300 MB")

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

  await t.test('Sizes are changed while the members run, and logs and sessions are read', async (t) => {
    const session = new pg.Client({ connectionString: databaseUrl, application_name: 'observed' })
    await session.connect()
    const resources = { postgres: { memory_bytes: 768 * 2 ** 20 }, runtime: { cpu_millis: 900 } }
    const path = `/v1/tenants/${id}`
    t.match(await platform.call('PATCH', path, { resources }, { prefer: 'wait=60' }), {
      status: 200,
      body: { operation: { kind: 'resize', state: 'succeeded' } },
    })
    const { containers } = await objects()
    const limits = containers.filter(({ labels }) => labels.service?.startsWith('postgres-'))
    t.same(
      limits.map(({ resources }) => resources.memoryBytes),
      // Patroni's own memory is added.
      Array(3).fill((768 + 128) * 2 ** 20),
    )
    t.equal((await session.query('select 1 as one')).rows.length, 1, 'the session is still open')
    const { body } = await platform.call('GET', `${path}/sessions`)
    const sessions = body['sessions'] as { login: string; application_name: string }[]
    t.match(
      sessions.find((one) => one.application_name === 'observed'),
      { login: 'admin' },
    )
    await session.end()
    const disks = async () => {
      const { body } = await platform.call('GET', `${path}/usage`)
      const components = body['components'] as Record<string, { disk_bytes: number | null }>
      return ['postgres-1', 'postgres-2', 'postgres-3'].map((member) => components[member]?.disk_bytes ?? 0)
    }
    await until(async () => (await disks()).every((bytes) => bytes > 10e6), 'the disk of each member', 30_000)
    for (const service of ['postgres-2', 'router-1', 'runtime-2'])
      t.match(await platform.call('GET', `${path}/logs?component=${service}&tail=5`), { status: 200 }, service)
    t.match(await platform.call('GET', `${path}/logs?component=postgres`), {
      status: 400,
      body: { code: 'INVALID_PARAMETER', message: /postgres-1, postgres-2, postgres-3, router-1, router-2, runtime-1/ },
    })
  })

  const writer = startWriter(databaseUrl)
  t.teardown(() => writer.stop())
  const client = await startHttpClient(t, (method, path, body) =>
    platform.tenantCall('acme', method, path, {
      key: secretKey,
      ...(body === undefined ? {} : { type: path.endsWith('bucket') ? 'application/json' : 'text/plain', body }),
    }),
  )
  t.teardown(() => client.stop())
  await writer.acknowledged(writes)
  const faults: Record<string, (container: string) => Promise<unknown>> = {
    "the primary's container is killed": (container) => platform.kill(container),
    "the primary's Postgres crashes": (container) => platform.host.exec(container, crashPostgres, { signal }),
    'a switchover is requested': async () => {
      const switched = await platform.call('POST', `/v1/tenants/${id}/switchover`, undefined, { prefer: 'wait=60' })
      t.match(switched, {
        status: 202,
        body: { status: 'ready', operation: { kind: 'switchover', state: 'succeeded' } },
      })
    },
  }
  const newImage = `tenantry/cluster-member:test-${randomBytes(4).toString('hex')}`
  const imagesOf = async (service: string) =>
    (await objects()).containers
      .filter(({ labels }) => labels.service?.startsWith(service))
      .map(({ imageId }) => imageId)
  /** Moves all members to a new image. The control plane is killed once the first member has it. */
  const rollOut = async (container: string) => {
    await docker('commit', '--pause=false', '--change', `LABEL test=${newImage}`, container, newImage)
    const digest = await docker('image', 'inspect', newImage, '--format', '{{.Id}}')
    const rollout = { region: 'local', component: 'cluster-member', image: newImage, soak_seconds: 0 }
    const { status, body } = await platform.call('POST', '/v1/rollouts', rollout)
    t.equal(status, 202, JSON.stringify(body))
    const moved = async () => (await imagesOf('postgres-')).filter((image) => image === digest).length
    await until(async () => (await moved()) > 0, 'the first member with the new image', 60_000)
    await platform.controlPlane.kill()
    await platform.startControlPlane()
    const read = async () => (await platform.call('GET', `/v1/rollouts/${String(body['id'])}`)).body
    await until(async () => (await read())['finished'] !== null, 'the end of the rollout', 180_000)
    t.match(await read(), { state: 'succeeded', moved: 1 })
    t.same([...new Set([...(await imagesOf('postgres-')), ...(await imagesOf('router-'))])], [digest])
  }
  t.teardown(() => docker('rmi', '-f', newImage).catch(() => undefined))
  faults['all members get a new image'] = rollOut
  if (restarts > 0)
    faults['all services are restarted'] = async () => {
      const restarted = await platform.call('POST', `/v1/tenants/${id}/restart`, undefined, { prefer: 'wait=60' })
      t.equal(restarted.status, 202)
      await platform.until(id, (tenant) => tenant['observed_generation'] === tenant['generation'], 180)
    }
  /** Faults that replace all containers occur less often. */
  const roundsOf = (fault: string) =>
    fault === 'all members get a new image' ? 1 : fault === 'all services are restarted' ? restarts : rounds
  const pauses = new Map<string, number[]>(Object.keys(faults).map((fault) => [fault, []]))
  let after = before
  for (let round = 0; round < rounds; round++) {
    for (const [fault, inflict] of Object.entries(faults)) {
      if (round >= roundsOf(fault)) continue
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
  const { wrong, ...http } = await client.stop()
  t.comment(`HTTP: ${JSON.stringify(http)}`)
  t.same(wrong.slice(0, 5), [], 'each request succeeded, or may be repeated')
  // Without the wait for the next primary, it would be a quarter of them.
  t.ok(http.retryableReads < http.reads / 20, 'reads waited for the next primary')
  t.ok(
    http.reads > rounds * writes && http.uploads - http.retryableUploads > rounds * writes,
    'requests were sent all the time',
  )
  const timelineOf = (all: Member[]) => all.find(({ role }) => role === 'primary')?.timeline ?? 0
  t.ok(timelineOf(after) > timelineOf(before), 'another timeline: a member was promoted')
  const written = await writer.stop()
  lostNothing(t, written)
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

  await t.test('A replica whose part of the log is lost is copied again from the primary', async (t) => {
    const members = await complete(30)
    const nameOf = (role: string) => members.find((member) => member.role === role)?.name ?? ''
    const replica = await containerOf(nameOf('replica'))
    const primary = await containerOf(nameOf('primary'))
    const inPrimary = async (...statements: string[]) => {
      const options = ['-X', '-q', '-h', '/run/postgresql', '-U', 'postgres', '-d', 'postgres', '-v', 'ON_ERROR_STOP=1']
      const commands = statements.flatMap((statement) => ['-c', statement])
      const { code, stderr } = await platform.host.exec(primary, ['psql', ...options, ...commands], { signal })
      t.equal(code, 0, stderr)
    }
    await platform.stopControlPlanes()
    await docker('stop', replica)
    const nextFile = ["select pg_logical_emit_message(true, 'file', '')", 'select pg_switch_wal()']
    const reload = 'select pg_reload_conf()'
    await inPrimary('alter system set max_slot_wal_keep_size = 1', 'alter system set wal_keep_size = 0', reload)
    await inPrimary(...Array<string[]>(4).fill(nextFile).flat(), 'checkpoint')
    await inPrimary('alter system reset all', reload)
    await docker('start', replica)
    await platform.startControlPlane()
    const copied = await complete(150)
    t.equal(copied.find(({ name }) => name === nameOf('replica'))?.role, 'replica')
    const log = await Array.fromAsync(platform.host.logs(replica, { follow: false, tail: 2_000 }, signal))
    t.ok(log.some(({ text }) => text.includes('Removing data directory')))
  })

  await t.test('A paused cluster stops, and serves the same rows after its wake', async (t) => {
    t.equal((await platform.call('POST', `/v1/tenants/${id}/pause`)).status, 202)
    await platform.until(id, ({ status }) => status === 'paused', 120)
    t.same(
      (await objects()).containers.filter(({ state }) => state === 'running'),
      [],
    )
    const waking = performance.now()
    t.equal((await platform.call('POST', `/v1/tenants/${id}/wake`)).status, 202)
    await platform.until(id, ({ status }) => status === 'ready', 120)
    t.comment(`awake after ${Math.round((performance.now() - waking) / 1000)} s`)
    const client = new pg.Client({ connectionString: databaseUrl })
    await client.connect()
    const { rows } = await client.query<{ count: number }>('select count(*)::int as count from numbers')
    await client.end()
    t.equal(rows[0]?.count, written.stored.length)
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
