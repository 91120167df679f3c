// The Postgres proxy on real sockets: which clients it admits and where it connects them, with doubles of a server.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Route } from '@tenantry/contract'
import t from 'tap'
import type { GatewayOptions } from '#gateway/gateway.ts'
import { until } from '#test/support/until.ts'
import { selfSigned } from './support/certificate.ts'
import { startFrontedSetting } from './support/control-front.ts'
import { newTenantId, startSetting } from './support/gateway.ts'
import { activityOf, addTenant, proxyOf, withProxy } from './support/postgres-proxy.ts'
import {
  cancelRequest,
  errorFields,
  exchange,
  gssRequest,
  startLogin,
  authenticationOk,
  message,
  openSession,
  packet,
  sslRequest,
  startFakePostgres,
  startup,
} from './support/sql-wire.ts'

t.test("Only a tenant's admin is admitted, and all others get the same error", async (t) => {
  const setting = await startSetting(t, withProxy)
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
  const responses = await Promise.all(
    users.map((user) => exchange(proxyOf(setting), startup(['user', user, 'database', 'x']))),
  )
  for (const [n, response] of responses.entries()) {
    t.same(
      errorFields(response),
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
    t.equal(errorFields(await exchange(proxyOf(setting), startup(parameters)))['C'], '08P01', parameters.join(' '))
  }
  t.equal(fake.sockets.length, 0, 'nothing reached the server')
  const packets = startup(['user', admin, 'database', 'd', 'options', '-c x=y'])
  const client = connect(proxyOf(setting), '127.0.0.1')
  t.teardown(() => client.destroy())
  client.write(Buffer.concat([packets, Buffer.from('more')]))
  await until(() => fake.received(0).equals(Buffer.concat([packets, Buffer.from('more')])), 'the packet, byte for byte')
})

t.test('A login to the alias of read-only copies reaches these, and every other login the database', async (t) => {
  const setting = await startSetting(t, withProxy)
  const [primary, replica] = [await startFakePostgres(t), await startFakePostgres(t)]
  const acme = await addTenant(setting, 'acme', primary.address, {
    read_only: { postgres: replica.address, alias: 'home_read_only', database: 'home' },
  })
  const plain = await addTenant(setting, 'plain', primary.address)
  const login = (tenant: Route, database: string) => {
    const client = connect(proxyOf(setting), '127.0.0.1')
    t.teardown(() => client.destroy())
    const sent = startup(['user', `${tenant.tenant_id}_admin`, 'database', database])
    client.write(sent)
    return sent
  }
  login(acme, 'home_read_only')
  const user = `${acme.tenant_id}_admin`
  const changed = startup(['user', user, 'database', 'home', 'default_transaction_read_only', 'on'])
  await until(() => replica.sockets.length === 1 && replica.received(0).equals(changed), 'the changed packet')
  t.equal(primary.sockets.length, 0)
  const direct = login(acme, 'home')
  await until(() => primary.sockets.length === 1 && primary.received(0).equals(direct), 'the packet of the database')
  const unchanged = login(plain, 'home_read_only')
  await until(
    () => primary.sockets.length === 2 && primary.received(1).equals(unchanged),
    'the packet of a tenant without',
  )
  t.equal(replica.sockets.length, 1)
})

t.test('Every phase has its response, and a paused tenant is woken', async (t) => {
  const setting = await startFrontedSetting(t, { ...withProxy, limits: { waitingPerTenant: 1 } })
  const fake = await startFakePostgres(t)
  const route = await addTenant(setting, 'acme', fake.address, { phase: 'pending' })
  const user = `${route.tenant_id}_admin`
  t.equal(errorFields(await exchange(proxyOf(setting), startup(['user', user])))['C'], '57P03')
  await setting.put({ ...route, generation: 2, phase: 'paused' })
  const waiting = openSession(t, proxyOf(setting), fake, user)
  await until(() => setting.front.wakes.includes(route.tenant_id), 'the wake')
  t.equal(errorFields(await exchange(proxyOf(setting), startup(['user', user])))['C'], '57P03', 'too many wait')
  t.equal(fake.sockets.length, 0)
  await setting.put({ ...route, generation: 3, phase: 'ready' })
  await waiting
  await until(() => fake.received(0).equals(startup(['user', user])), 'the packet')
  await setting.put({ ...route, generation: 4, phase: 'paused' })
  const leaving = connect(proxyOf(setting), '127.0.0.1')
  leaving.write(startup(['user', user]))
  await until(async () => (await activityOf(setting, route.tenant_id))?.open === 2)
  leaving.destroy()
  await until(async () => (await activityOf(setting, route.tenant_id))?.open === 1, 'the free slot')
  setting.front.wakeResponse = () => 409
  t.match(errorFields(await exchange(proxyOf(setting), startup(['user', user]))), { C: '57P03', M: /cannot be woken/ })
  const { postgres, ...without } = route
  t.type(postgres, 'string')
  setting.front.wakeResponse = () => 202
  const moved = exchange(proxyOf(setting), startup(['user', user]))
  await until(async () => (await activityOf(setting, route.tenant_id))?.open === 2)
  await setting.put({ ...without, generation: 5, phase: 'ready' })
  t.equal(errorFields(await moved)['C'], '28000', 'awake, but without its own database')
})

t.test('Without a certificate SSLRequest and GSSENCRequest are declined, each once', async (t) => {
  const setting = await startSetting(t, withProxy)
  const fake = await startFakePostgres(t, (socket) => socket.once('data', () => socket.end('hello')))
  const { tenant_id } = await addTenant(setting, 'acme', fake.address)
  const whole = Buffer.concat([gssRequest, sslRequest, startup(['user', `${tenant_id}_admin`])])
  t.equal((await exchange(proxyOf(setting), whole)).toString(), 'NNhello')
  t.equal(
    fake.received(0).length,
    startup(['user', `${tenant_id}_admin`]).length,
    'the server receives only the startup packet',
  )
  const twice = await exchange(proxyOf(setting), Buffer.concat([sslRequest, sslRequest]))
  t.equal(twice.toString('latin1', 0, 1), 'N')
  t.equal(errorFields(twice.subarray(1))['C'], '08P01')
})

t.test('Packets that are too long, too short, unreadable or too late end the connection', async (t) => {
  const setting = await startSetting(t, { ...withProxy, limits: { loginTimeout: 200 } })
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
    t.equal(errorFields(await exchange(proxyOf(setting), bytes))['C'], '08P01', bytes.toString('latin1', 0, 12))
  for (const late of ['', '\0', startup(['user', user]).subarray(0, 20), sslRequest]) {
    const response = await exchange(proxyOf(setting), Buffer.from(late))
    t.equal(response.length, late === sslRequest ? 1 : 0, 'cut without an error')
  }
  const half = connect(proxyOf(setting), '127.0.0.1')
  half.end(startup(['user', user]).subarray(0, 20))
  half.resume()
  await once(half, 'close')
  t.equal(fake.sockets.length, 0)
  await openSession(t, proxyOf(setting), fake, user)
})

t.test('Sessions are limited per tenant and in total, and a session that ends frees its slot', async (t) => {
  const setting = await startSetting(t, { ...withProxy, limits: { sqlSessionsPerTenant: 2, sqlSessions: 3 } })
  const fake = await startFakePostgres(t)
  const [a, b] = [await addTenant(setting, 'acme', fake.address), await addTenant(setting, 'beta', fake.address)]
  const open = (route: Route) => openSession(t, proxyOf(setting), fake, `${route.tenant_id}_admin`)
  const rejection = async (route: Route) => {
    const response = await exchange(proxyOf(setting), startup(['user', `${route.tenant_id}_admin`]))
    t.same(response.subarray(0, authenticationOk.length), authenticationOk, 'the password was correct')
    return errorFields(response.subarray(authenticationOk.length))['C']
  }
  const first = await open(a)
  await open(a)
  t.equal(await rejection(a), '53300')
  await open(b)
  t.equal(await rejection(b), '53300', 'all slots are used')
  first.destroy()
  await until(async () => (await activityOf(setting, a.tenant_id))?.open === 1)
  await open(b)
  t.equal(await rejection(a), '53300')
  fake.sockets[1]?.destroy()
  await until(async () => (await activityOf(setting, a.tenant_id))?.open === 0, 'the server ended it')
  await open(a)
})

t.test('A session waits for a slot of its tenant and loses nothing, and one that leaves takes no slot', async (t) => {
  const setting = await startSetting(t, withProxy)
  setting.control.connections = 3
  const fake = await startFakePostgres(t)
  const limits = { requests_per_month: null, connections: 3, rate: null }
  const { tenant_id } = await addTenant(setting, 'acme', fake.address, { limits })
  const user = `${tenant_id}_admin`
  await setting.control.stop()
  // This session takes the slot that came with the route.
  await openSession(t, proxyOf(setting), fake, user)
  const chunks: Buffer[] = []
  const first = await startLogin(t, proxyOf(setting), fake, user)
  first.on('data', (chunk: Buffer) => chunks.push(chunk))
  const leaving = await startLogin(t, proxyOf(setting), fake, user)
  leaving.resume()
  await until(
    () => fake.sockets.every((socket) => socket.bytesRead > 0 && socket.bytesWritten >= authenticationOk.length),
    'the admission of both by the server',
  )
  fake.sockets[1]?.write('and more')
  leaving.destroy()
  await until(() => fake.sockets[2]?.destroyed === true, 'its end at the server')
  t.same(chunks, [])
  await setting.control.start()
  await until(
    () => Buffer.concat(chunks).equals(Buffer.concat([authenticationOk, Buffer.from('and more')])),
    'all bytes, in order',
  )
  first.write('a query')
  await until(() => fake.received(1).toString('latin1').endsWith('a query'))
  await openSession(t, proxyOf(setting), fake, user)
  const response = await exchange(proxyOf(setting), startup(['user', user]))
  t.same(response.subarray(0, authenticationOk.length), authenticationOk, 'the password was correct')
  t.match(errorFields(response.subarray(authenticationOk.length)), {
    C: '53300',
    M: /connections that the plan allows is already open/,
  })
})

t.test('A server that cannot be reached is reported to the client', async (t) => {
  const setting = await startSetting(t, withProxy)
  for (const [n, address] of ['127.0.0.1:1', 'no-such-host.invalid:5432', '[::1]:1'].entries()) {
    const { tenant_id } = await addTenant(setting, `acme-${n}`, address)
    t.equal(
      errorFields(await exchange(proxyOf(setting), startup(['user', `${tenant_id}_admin`])))['C'],
      '57P03',
      address,
    )
    await until(async () => (await activityOf(setting, tenant_id))?.open === 0)
  }
})

t.test('The slower side sets the pace, in both directions', async (t) => {
  const setting = await startSetting(t, withProxy)
  const max = 128 * 1024 * 1024
  const written = { toClient: 0, toServer: 0 }
  const fake = await startFakePostgres(t, (socket) => {
    socket.pause()
    socket.write(authenticationOk)
    pour(socket, max, (bytes) => (written.toClient += bytes))
  })
  const { tenant_id } = await addTenant(setting, 'acme', fake.address)
  const client = await startLogin(t, proxyOf(setting), fake, `${tenant_id}_admin`)
  pour(client, max, (bytes) => (written.toServer += bytes))
  let before = { toClient: -1, toServer: -1 }
  await until(async () => {
    const isStill = before.toClient === written.toClient && before.toServer === written.toServer
    before = { ...written }
    await new Promise((resolve) => setTimeout(resolve, 100))
    return isStill && written.toClient > 0 && written.toServer > 0
  }, 'a standstill')
  t.ok(written.toClient < max / 2, `${written.toClient} bytes on their way to the client`)
  t.ok(written.toServer < max / 2, `${written.toServer} bytes on their way to the server`)
  client.resume()
  fake.sockets[0]?.resume()
  await until(() => written.toClient === max && written.toServer === max, 'all of it')
})

t.test("A server that claims another session's cancel key receives none of its cancellations", async (t) => {
  const setting = await startSetting(t, withProxy)
  const key = randomBytes(8)
  const greeting = Buffer.concat([message('R', Buffer.alloc(4)), message('K', key), message('Z', 'I')])
  const honest = await startFakePostgres(t, (socket) => socket.write(greeting))
  const thief = await startFakePostgres(t, (socket) => socket.write(greeting))
  const [a, b] = [await addTenant(setting, 'acme', honest.address), await addTenant(setting, 'beta', thief.address)]
  for (const [fake, route] of [
    [honest, a],
    [thief, b],
  ] as const)
    await openSession(t, proxyOf(setting), fake, `${route.tenant_id}_admin`)
  const cancel = connect(proxyOf(setting), '127.0.0.1')
  // Some clients wait for nothing before they close.
  cancel.end(cancelRequest(key))
  await until(() => honest.received(1).equals(cancelRequest(key)), 'the cancellation')
  t.equal(thief.sockets.length, 1)
})

t.test('Without a port there is no Postgres proxy, and a stop ends every session', async (t) => {
  const closed = await startSetting(t)
  t.equal(closed.gateway.postgresPort, undefined)
  const setting = await startSetting(t, withProxy)
  const fake = await startFakePostgres(t)
  const { tenant_id } = await addTenant(setting, 'acme', fake.address)
  const client = await openSession(t, proxyOf(setting), fake, `${tenant_id}_admin`)
  const silent = connect(proxyOf(setting), '127.0.0.1')
  await once(silent, 'connect')
  const port = proxyOf(setting)
  const ends = [client, silent].map((socket) => once(socket.on('error', () => undefined).resume(), 'close'))
  await setting.gateway.stop()
  await Promise.all(ends)
  await t.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
})

t.test('An invalid certificate or a port in use prevents the start', async (t) => {
  const { cert } = selfSigned()
  const start = (postgres: GatewayOptions['postgres'] & object) => startSetting(t, { postgres })
  await t.rejects(start({ port: 0, tls: { cert, key: selfSigned().key } }), 'a certificate of another key')
  await t.rejects(start({ port: 0, tls: { cert: 'x', key: 'y' } }))
  const setting = await startSetting(t, withProxy)
  await t.rejects(start({ port: proxyOf(setting) }), { code: 'EADDRINUSE' })
})

/** Writes `count` bytes at the pace at which they are read. */
function pour(socket: Socket, count: number, note: (bytes: number) => void): void {
  const chunk = Buffer.alloc(64 * 1024)
  let remaining = count
  const fill = () => {
    while (remaining > 0 && !socket.writableNeedDrain) {
      remaining -= chunk.length
      note(chunk.length)
      socket.write(chunk)
    }
  }
  socket.on('drain', fill)
  fill()
}
