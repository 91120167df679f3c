// The Postgres door on real sockets: who comes in and where to, against a real server and against stand-ins.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { Activity, type Route } from '@tenantry/contract'
import pg from 'pg'
import t, { type Test } from 'tap'
import { Value } from 'typebox/value'
import type { GatewayOptions } from '#gateway/gateway.ts'
import { query, startPostgres, type TestPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { selfSigned } from './support/certificate.ts'
import { startFrontedSetting } from './support/control-front.ts'
import { ask, newTenantId, startSetting, token, type Setting } from './support/gateway.ts'
import {
  cancelRequest,
  errorFields,
  exchange,
  gssRequest,
  knock,
  letIn,
  message,
  openSession,
  packet,
  sslRequest,
  startFakePostgres,
  startup,
} from './support/sql-wire.ts'

const withDoor = { postgres: { port: 0 } }

function doorOf({ gateway }: Setting): number {
  if (gateway.postgresPort === undefined) throw new Error('there is no door')
  return gateway.postgresPort
}

async function activityOf({ gateway }: Setting, tenantId: string): Promise<Activity['tenants'][string] | undefined> {
  const { body } = await ask(gateway.internalPort, {
    path: '/internal/v1/activity',
    headers: { 'x-tenantry-internal': token },
  })
  const activity: unknown = JSON.parse(body)
  if (!Value.Check(Activity, activity)) throw new Error(body)
  return activity.tenants[tenantId]
}

/** A tenant whose Postgres is the stand-in or a real one. */
function addTenant(setting: Setting, name: string, postgres: string, more: Partial<Route> = {}): Promise<Route> {
  return setting.add(name, { dedicated: true, postgres, ...more })
}

t.test('with a real Postgres', async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  const setting = await startSetting(t, withDoor)
  const { route, login } = await addRealTenant(setting, server, 'acme')
  const other = await addRealTenant(setting, server, 'other')

  t.test("a tenant's admin works in its database", async (t) => {
    const client = await connected(t, login)
    t.same((await client.query<{ current_user: string }>('select current_user')).rows, [
      { current_user: `${route.tenant_id}_admin` },
    ])
    await client.query('create temporary table notes (n int, text text)')
    await client.query('insert into notes select n, repeat($1, 1000) from generate_series(1, 5000) n', ['é'])
    const { rows } = await client.query<{ n: number; text: string }>('select * from notes order by n')
    t.equal(rows.length, 5000)
    t.equal(rows[4999]?.text, 'é'.repeat(1000))
    await t.rejects(client.query('select nonsense'), { code: '42703' }, 'errors pass')
    t.same((await client.query('select 1 as one')).rows, [{ one: 1 }])
  })

  t.test("a wrong password is Postgres' to refuse", async (t) => {
    await t.rejects(connected(t, { ...login, password: 'wrong' }), { code: '28P01' })
    await t.rejects(connected(t, { ...login, password: other.login.password }), { code: '28P01' })
  })

  t.test('a query is cancelled by its own key alone', async (t) => {
    const client = await connected(t, login)
    const bystander = await connected(t, other.login)
    const key = keyOf(client)
    const sleeping = bystander.query('select pg_sleep(60)')
    const cancelled = t.rejects(client.query('select pg_sleep(60)'), { code: '57014' })
    await untilSleeping(server, 2)
    t.equal(
      (await exchange(doorOf(setting), cancelRequest(Buffer.concat([key.subarray(0, 4), randomBytes(4)])))).length,
      0,
    )
    t.equal(await sleepers(server), 2, 'a wrong secret does nothing')
    t.equal((await exchange(doorOf(setting), cancelRequest(key))).length, 0)
    await cancelled
    t.equal(await sleepers(server), 1)
    const bystanderKey = keyOf(bystander)
    const ended = t.rejects(sleeping, { code: '57014' })
    await exchange(doorOf(setting), cancelRequest(bystanderKey))
    await ended
    await client.end()
    await until(async () => (await activityOf(setting, route.tenant_id))?.open === 0)
    t.equal((await exchange(doorOf(setting), cancelRequest(key))).length, 0, 'a key of a session that is over')
  })

  t.test('sessions count as connections, as activity, and their bytes as egress', async (t) => {
    const { route, login } = await addRealTenant(setting, server, 'counted')
    const count = (meter: string) =>
      setting.control.total((counter) => counter.meter === meter && counter.tenant_id === route.tenant_id)
    const first = await connected(t, login)
    await connected(t, login)
    t.equal((await activityOf(setting, route.tenant_id))?.open, 2)
    await first.query('select repeat($1, 100000)', ['x'])
    await until(() => count('connections_peak') === 2 && count('egress_bytes') > 100_000)
    t.equal(count('requests'), 0)
    await first.end()
    await until(async () => (await activityOf(setting, route.tenant_id))?.open === 1)
  })

  t.test('one session too many is told so after its password, as a client expects it', async (t) => {
    const narrow = await startSetting(t, { ...withDoor, limits: { sqlSessionsPerTenant: 1 } })
    const { login } = await addRealTenant(narrow, server, 'narrow')
    const client = await connected(t, login)
    await t.rejects(connected(t, login), { code: '53300', message: 'Too many sessions are open already.' })
    await t.rejects(connected(t, { ...login, password: 'wrong' }), { code: '28P01' })
    t.same((await client.query('select 1 as one')).rows, [{ one: 1 }])
    await until(
      async () =>
        (await query(server.url('postgres'), 'select 1 from pg_stat_activity where usename = $1', [login.user]))
          .length === 1,
      'no session is left behind',
    )
  })

  t.test("a suspended or deleted tenant's sessions end, and no others", async (t) => {
    const { route, login } = await addRealTenant(setting, server, 'ending')
    const bystander = await connected(t, other.login)
    for (const [generation, phase] of [
      [2, 'suspended'],
      [4, 'deleted'],
    ] as const) {
      await setting.put({ ...route, generation: generation - 1 })
      const client = await connected(t, login)
      const ended = endOf(client)
      await setting.put({ ...route, generation, phase, reason: 'unpaid' })
      await ended
      await t.rejects(
        connected(t, login),
        phase === 'suspended' ? { code: '28000', message: 'The tenant is suspended: unpaid' } : { code: '28000' },
      )
    }
    t.same((await bystander.query('select 1 as one')).rows, [{ one: 1 }])
    await until(
      async () =>
        (await query(server.url('postgres'), 'select 1 from pg_stat_activity where usename = $1', [login.user]))
          .length === 0,
    )
  })

  t.test('TLS where the door has a certificate, and then nothing else', async (t) => {
    const secure = await startSetting(t, { postgres: { port: 0, tls: selfSigned() } })
    const { login } = await addRealTenant(secure, server, 'secure')
    const client = await connected(t, { ...login, ssl: { rejectUnauthorized: false } })
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
    t.ok(stream instanceof TLSSocket && stream.encrypted)
    const { rows } = await client.query<{ text: string }>('select repeat($1, 1000000) as text', ['s'])
    t.equal(rows[0]?.text.length, 1_000_000)
    await t.rejects(connected(t, login), { code: '28000', message: /sslmode=require/ })
    const key = keyOf(client)
    const cancelled = t.rejects(client.query('select pg_sleep(60)'), { code: '57014' })
    await untilSleeping(server, 1)
    await exchange(doorOf(secure), cancelRequest(key))
    await cancelled
    const early = await exchange(doorOf(secure), Buffer.concat([sslRequest, startup(['user', login.user])]))
    t.equal(errorFields(early)['C'], '08P01', 'what is sent ahead of the answer to an SSLRequest is not taken')
    const ended = endOf(client)
    await secure.gateway.stop()
    await ended
  })
})

t.test("nobody but a tenant's admin comes in, and all others are told the same", async (t) => {
  const setting = await startSetting(t, withDoor)
  const fake = await startFakePostgres(t)
  const acme = await addTenant(setting, 'acme', fake.address)
  const deleted = await addTenant(setting, 'deleted', fake.address, { phase: 'deleted' })
  const shared = await setting.add('shared')
  const hex = acme.tenant_id.slice(2)
  const users = [
    'postgres',
    '',
    'admin',
    '_admin',
    acme.tenant_id,
    `${acme.tenant_id}_owner`,
    `${acme.tenant_id}_admin_admin`,
    `${acme.tenant_id}_ADMIN`,
    ` ${acme.tenant_id}_admin`,
    `${acme.tenant_id}_admin `,
    `t_${hex.toUpperCase()}_admin`,
    `t_${hex}0_admin`,
    `x${acme.tenant_id}_admin`,
    `${newTenantId()}_admin`,
    `${shared.tenant_id}_admin`,
    `${deleted.tenant_id}_admin`,
  ].filter((user) => user !== `${acme.tenant_id}_admin`)
  const answers = await Promise.all(
    users.map((user) => exchange(doorOf(setting), startup(['user', user, 'database', 'x']))),
  )
  for (const [n, answer] of answers.entries()) {
    t.same(
      errorFields(answer),
      { S: 'FATAL', V: 'FATAL', C: '28000', M: 'No database is served to this user.' },
      users[n] ?? '',
    )
  }
  const admin = `${acme.tenant_id}_admin`
  for (const parameters of [
    ['user', admin, 'user', 'postgres'],
    ['user', 'postgres', 'user', admin],
    ['database', admin],
  ]) {
    t.equal(errorFields(await exchange(doorOf(setting), startup(parameters)))['C'], '08P01', parameters.join(' '))
  }
  t.equal(fake.sockets.length, 0, 'nothing reached the server')
  const packets = startup(['user', admin, 'database', 'd', 'options', '-c x=y'])
  const client = connect(doorOf(setting), '127.0.0.1')
  t.teardown(() => client.destroy())
  client.write(Buffer.concat([packets, Buffer.from('more')]))
  await until(() => fake.received(0).equals(Buffer.concat([packets, Buffer.from('more')])), 'the packet, byte for byte')
})

t.test('every phase has its answer, and a paused tenant is woken', async (t) => {
  const setting = await startFrontedSetting(t, { ...withDoor, limits: { waitingPerTenant: 1 } })
  const fake = await startFakePostgres(t)
  const route = await addTenant(setting, 'acme', fake.address, { phase: 'pending' })
  const user = `${route.tenant_id}_admin`
  t.equal(errorFields(await exchange(doorOf(setting), startup(['user', user])))['C'], '57P03')
  await setting.put({ ...route, generation: 2, phase: 'paused' })
  const waiting = openSession(t, doorOf(setting), fake, user)
  await until(() => setting.front.wakes.includes(route.tenant_id), 'the wake')
  t.equal(errorFields(await exchange(doorOf(setting), startup(['user', user])))['C'], '57P03', 'too many wait')
  t.equal(fake.sockets.length, 0)
  await setting.put({ ...route, generation: 3, phase: 'ready' })
  await waiting
  await until(() => fake.received(0).equals(startup(['user', user])), 'the packet')
  await setting.put({ ...route, generation: 4, phase: 'paused' })
  const leaving = connect(doorOf(setting), '127.0.0.1')
  leaving.write(startup(['user', user]))
  await until(async () => (await activityOf(setting, route.tenant_id))?.open === 2)
  leaving.destroy()
  await until(async () => (await activityOf(setting, route.tenant_id))?.open === 1, 'the place')
  setting.front.wakeAnswer = () => 409
  t.match(errorFields(await exchange(doorOf(setting), startup(['user', user]))), { C: '57P03', M: /cannot be woken/ })
  const { postgres, ...without } = route
  t.type(postgres, 'string')
  setting.front.wakeAnswer = () => 202
  const moved = exchange(doorOf(setting), startup(['user', user]))
  await until(async () => (await activityOf(setting, route.tenant_id))?.open === 2)
  await setting.put({ ...without, generation: 5, phase: 'ready' })
  t.equal(errorFields(await moved)['C'], '28000', 'awake, but with no database of its own')
})

t.test('SSLRequest and GSSENCRequest are answered no without a certificate, each once', async (t) => {
  const setting = await startSetting(t, withDoor)
  const fake = await startFakePostgres(t, (socket) => socket.once('data', () => socket.end('hello')))
  const { tenant_id } = await addTenant(setting, 'acme', fake.address)
  const whole = Buffer.concat([gssRequest, sslRequest, startup(['user', `${tenant_id}_admin`])])
  t.equal((await exchange(doorOf(setting), whole)).toString(), 'NNhello')
  t.equal(
    fake.received(0).length,
    startup(['user', `${tenant_id}_admin`]).length,
    'the server sees the startup packet alone',
  )
  const twice = await exchange(doorOf(setting), Buffer.concat([sslRequest, sslRequest]))
  t.equal(twice.toString('latin1', 0, 1), 'N')
  t.equal(errorFields(twice.subarray(1))['C'], '08P01')
})

t.test('packets that are too long, too short, unreadable or too late end the connection', async (t) => {
  const setting = await startSetting(t, { ...withDoor, limits: { loginTimeout: 200 } })
  const fake = await startFakePostgres(t)
  const { tenant_id } = await addTenant(setting, 'acme', fake.address)
  const user = `${tenant_id}_admin`
  const bad = [
    startup(['user', user, 'options', 'x'.repeat(10_000)]),
    packet(0x20000, 'x'),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.from('160301020001', 'hex'),
    Buffer.from('00000007000300', 'hex'),
  ]
  for (const bytes of bad)
    t.equal(errorFields(await exchange(doorOf(setting), bytes))['C'], '08P01', bytes.toString('latin1', 0, 12))
  for (const late of ['', '\0', startup(['user', user]).subarray(0, 20), sslRequest]) {
    const answer = await exchange(doorOf(setting), Buffer.from(late))
    t.equal(answer.length, late === sslRequest ? 1 : 0, 'cut without a word')
  }
  const half = connect(doorOf(setting), '127.0.0.1')
  half.end(startup(['user', user]).subarray(0, 20))
  half.resume()
  await once(half, 'close')
  t.equal(fake.sockets.length, 0)
  await openSession(t, doorOf(setting), fake, user)
})

t.test('sessions are bounded for one tenant and for all, and a session that ends frees its place', async (t) => {
  const setting = await startSetting(t, { ...withDoor, limits: { sqlSessionsPerTenant: 2, sqlSessions: 3 } })
  const fake = await startFakePostgres(t)
  const [a, b] = [await addTenant(setting, 'acme', fake.address), await addTenant(setting, 'beta', fake.address)]
  const open = (route: Route) => openSession(t, doorOf(setting), fake, `${route.tenant_id}_admin`)
  const refusal = async (route: Route) => {
    const answer = await exchange(doorOf(setting), startup(['user', `${route.tenant_id}_admin`]))
    t.same(answer.subarray(0, letIn.length), letIn, 'the password was good')
    return errorFields(answer.subarray(letIn.length))['C']
  }
  const first = await open(a)
  await open(a)
  t.equal(await refusal(a), '53300')
  await open(b)
  t.equal(await refusal(b), '53300', 'all places are taken')
  first.destroy()
  await until(async () => (await activityOf(setting, a.tenant_id))?.open === 1)
  await open(b)
  t.equal(await refusal(a), '53300')
  fake.sockets[1]?.destroy()
  await until(async () => (await activityOf(setting, a.tenant_id))?.open === 0, 'the server ended it')
  await open(a)
})

t.test(
  "a session waits for its place among the tenant's connections: it loses nothing, and one that leaves takes none",
  async (t) => {
    const setting = await startSetting(t, withDoor)
    setting.control.connections = 3
    const fake = await startFakePostgres(t)
    const limits = { requests_per_month: null, connections: 3, rate: null }
    const { tenant_id } = await addTenant(setting, 'acme', fake.address, { limits })
    const user = `${tenant_id}_admin`
    await setting.control.stop()
    // The slot that came with the route.
    await openSession(t, doorOf(setting), fake, user)
    const pieces: Buffer[] = []
    const first = await knock(t, doorOf(setting), fake, user)
    first.on('data', (piece: Buffer) => pieces.push(piece))
    const leaving = await knock(t, doorOf(setting), fake, user)
    leaving.resume()
    await until(
      () => fake.sockets.every((socket) => socket.bytesRead > 0 && socket.bytesWritten >= letIn.length),
      'both let in by the server',
    )
    fake.sockets[1]?.write('and more')
    leaving.destroy()
    await until(() => fake.sockets[2]?.destroyed === true, 'its end at the server')
    t.same(pieces, [])
    await setting.control.start()
    await until(
      () => Buffer.concat(pieces).equals(Buffer.concat([letIn, Buffer.from('and more')])),
      'all that was said, in order',
    )
    first.write('a query')
    await until(() => fake.received(1).toString('latin1').endsWith('a query'))
    await openSession(t, doorOf(setting), fake, user)
    const answer = await exchange(doorOf(setting), startup(['user', user]))
    t.same(answer.subarray(0, letIn.length), letIn, 'the password was good')
    t.match(errorFields(answer.subarray(letIn.length)), { C: '53300', M: /allows no more connections/ })
  },
)

t.test('a server that cannot be reached is said so', async (t) => {
  const setting = await startSetting(t, withDoor)
  for (const [n, address] of ['127.0.0.1:1', 'no-such-host.invalid:5432', '[::1]:1'].entries()) {
    const { tenant_id } = await addTenant(setting, `acme-${n}`, address)
    t.equal(
      errorFields(await exchange(doorOf(setting), startup(['user', `${tenant_id}_admin`])))['C'],
      '57P03',
      address,
    )
    await until(async () => (await activityOf(setting, tenant_id))?.open === 0)
  }
})

t.test('the slower side sets the pace, in both directions', async (t) => {
  const setting = await startSetting(t, withDoor)
  const most = 128 * 1024 * 1024
  const flow = { toClient: 0, toServer: 0 }
  const fake = await startFakePostgres(t, (socket) => {
    socket.pause()
    socket.write(letIn)
    pour(socket, most, (bytes) => (flow.toClient += bytes))
  })
  const { tenant_id } = await addTenant(setting, 'acme', fake.address)
  const client = await knock(t, doorOf(setting), fake, `${tenant_id}_admin`)
  pour(client, most, (bytes) => (flow.toServer += bytes))
  let before = { toClient: -1, toServer: -1 }
  await until(async () => {
    const isStill = before.toClient === flow.toClient && before.toServer === flow.toServer
    before = { ...flow }
    await new Promise((resolve) => setTimeout(resolve, 100))
    return isStill && flow.toClient > 0 && flow.toServer > 0
  }, 'a standstill')
  t.ok(flow.toClient < most / 2, `${flow.toClient} bytes on their way to the client`)
  t.ok(flow.toServer < most / 2, `${flow.toServer} bytes on their way to the server`)
  client.resume()
  fake.sockets[0]?.resume()
  await until(() => flow.toClient === most && flow.toServer === most, 'all of it')
})

t.test("a server that claims another session's cancel key gets none of its cancellations", async (t) => {
  const setting = await startSetting(t, withDoor)
  const key = randomBytes(8)
  const greeting = Buffer.concat([message('R', Buffer.alloc(4)), message('K', key), message('Z', 'I')])
  const honest = await startFakePostgres(t, (socket) => socket.write(greeting))
  const thief = await startFakePostgres(t, (socket) => socket.write(greeting))
  const [a, b] = [await addTenant(setting, 'acme', honest.address), await addTenant(setting, 'beta', thief.address)]
  for (const [fake, route] of [
    [honest, a],
    [thief, b],
  ] as const)
    await openSession(t, doorOf(setting), fake, `${route.tenant_id}_admin`)
  const cancel = connect(doorOf(setting), '127.0.0.1')
  // As clients do that don't wait for anything.
  cancel.end(cancelRequest(key))
  await until(() => honest.received(1).equals(cancelRequest(key)), 'the cancellation')
  t.equal(thief.sockets.length, 1)
})

t.test('without the port there is no door, and a stop ends every session', async (t) => {
  const closed = await startSetting(t)
  t.equal(closed.gateway.postgresPort, undefined)
  const setting = await startSetting(t, withDoor)
  const fake = await startFakePostgres(t)
  const { tenant_id } = await addTenant(setting, 'acme', fake.address)
  const client = await openSession(t, doorOf(setting), fake, `${tenant_id}_admin`)
  const silent = connect(doorOf(setting), '127.0.0.1')
  await once(silent, 'connect')
  const port = doorOf(setting)
  const ends = [client, silent].map((socket) => once(socket.on('error', () => undefined).resume(), 'close'))
  await setting.gateway.stop()
  await Promise.all(ends)
  await t.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
})

t.test('a certificate that is none, or a taken port, ends the start', async (t) => {
  const { cert } = selfSigned()
  const start = (postgres: GatewayOptions['postgres'] & object) => startSetting(t, { postgres })
  await t.rejects(start({ port: 0, tls: { cert, key: selfSigned().key } }), 'of another key')
  await t.rejects(start({ port: 0, tls: { cert: 'x', key: 'y' } }))
  const setting = await startSetting(t, withDoor)
  await t.rejects(start({ port: doorOf(setting) }), { code: 'EADDRINUSE' })
})

interface Login extends pg.ClientConfig {
  user: string
  password: string
}

/** A role named like a tenant's admin, on a server that both tenants share here as none would in earnest. */
async function addRealTenant(
  setting: Setting,
  server: TestPostgres,
  name: string,
): Promise<{ route: Route; login: Login }> {
  const route = await addTenant(setting, name, `127.0.0.1:${server.port}`)
  const login = {
    host: '127.0.0.1',
    port: doorOf(setting),
    user: `${route.tenant_id}_admin`,
    password: newTenantId(),
    database: 'postgres',
  }
  await query(server.url('postgres'), `create role ${login.user} login password '${login.password}'`)
  return { route, login }
}

async function connected(t: Test, login: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(login)
  client.on('error', () => undefined)
  t.teardown(() => client.end())
  await client.connect()
  return client
}

/** Also when the connection is lost, which the client reports as an error besides. */
function endOf(client: pg.Client): Promise<void> {
  return new Promise((resolve) => client.on('end', () => resolve()))
}

/** Process id and secret, as the client was told. */
function keyOf(client: pg.Client): Buffer {
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
  const key = Buffer.alloc(8)
  key.writeInt32BE(processID, 0)
  key.writeInt32BE(secretKey, 4)
  return key
}

async function sleepers(server: TestPostgres): Promise<number> {
  return (
    await query(
      server.url('postgres'),
      "select 1 from pg_stat_activity where state = 'active' and query like 'select pg_sleep%'",
    )
  ).length
}

function untilSleeping(server: TestPostgres, count: number): Promise<void> {
  return until(async () => (await sleepers(server)) === count, 'the sleep')
}

/** Writes so many bytes at the pace at which they are taken. */
function pour(socket: Socket, count: number, note: (bytes: number) => void): void {
  const piece = Buffer.alloc(64 * 1024)
  let left = count
  const fill = () => {
    while (left > 0 && !socket.writableNeedDrain) {
      left -= piece.length
      note(piece.length)
      socket.write(piece)
    }
  }
  socket.on('drain', fill)
  fill()
}
