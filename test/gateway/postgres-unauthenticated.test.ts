// Unauthenticated clients of the Postgres proxy take no slots of sessions, nor of other addresses.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Route } from '@tenantry/contract'
import t, { type Test } from 'tap'
import type { Limits } from '#gateway/limits.ts'
import { until } from '#test/support/until.ts'
import { startFrontedSetting } from './support/control-front.ts'
import { startSetting, type Setting } from './support/gateway.ts'
import {
  errorFields,
  startLogin,
  authenticationOk,
  admitClient,
  message,
  openSession,
  startFakePostgres,
  startup,
  type FakePostgres,
} from './support/sql-wire.ts'

const attacker = '127.0.0.66'
const neighbour = '127.0.0.67'
const withProxy = (limits: Partial<Limits>) => ({ postgres: { port: 0 }, limits })

function proxyOf({ gateway }: Setting): number {
  return gateway.postgresPort ?? 0
}

async function addTenant(
  setting: Setting,
  name: string,
  fake: FakePostgres,
  more: Partial<Route> = {},
): Promise<string> {
  const { tenant_id } = await setting.add(name, { dedicated: true, postgres: fake.address, ...more })
  return `${tenant_id}_admin`
}

/** Handles a connection as a server that requests a password, and admits any client that sends one. */
function requirePassword(socket: Socket): void {
  socket.once('data', () => {
    socket.write(message('R', Buffer.from([0, 0, 0, 3])))
    admitClient(socket)
  })
}

/** Opens a connection that is not closed, and collects what it receives. */
function open(t: Test, port: number, localAddress: string, bytes: Buffer = Buffer.alloc(0)) {
  const client = connect({ host: '127.0.0.1', port, localAddress }).on('error', () => undefined)
  const received: Buffer[] = []
  client.on('data', (chunk: Buffer) => received.push(chunk))
  t.teardown(() => client.destroy())
  client.write(bytes)
  return { client, received: () => Buffer.concat(received) }
}

/** Returns the SQLSTATE with which the proxy or the server rejects the client, or `in` if it is admitted. */
async function responseTo(t: Test, port: number, localAddress: string, user: string): Promise<string> {
  const { client, received } = open(t, port, localAddress, startup(['user', user]))
  client.once('data', () => client.write(message('p', 'secret\0')))
  await until(() => client.destroyed || received().includes(authenticationOk), 'a response')
  const isIn = !client.destroyed
  client.destroy()
  return isIn ? 'in' : received().length === 0 ? 'cut' : (errorFields(received())['C'] ?? '')
}

t.test('Silent connections of one address do not block others', async (t) => {
  const setting = await startSetting(t, withProxy({ sqlUnauthenticatedPerAddress: 4 }))
  const fake = await startFakePostgres(t, requirePassword)
  const user = await addTenant(setting, 'acme', fake)
  const port = proxyOf(setting)
  const session = await openedSession(t, port, user, attacker)
  const silent = Array.from({ length: 20 }, () => open(t, port, attacker).client)
  await until(() => silent.filter(({ closed }) => !closed).length === 4, 'as many as one address may hold')
  t.equal(await responseTo(t, port, attacker, user), 'cut')
  t.equal(await responseTo(t, port, neighbour, user), 'in')
  t.notOk(session.destroyed, 'an open session continues')
  silent.forEach((client) => client.destroy())
  await until(async () => (await responseTo(t, port, attacker, user)) === 'in', 'a free connection')
})

t.test('Logins that never send a password use no session, and no slot of another address', async (t) => {
  const setting = await startSetting(
    t,
    withProxy({ sqlSessionsPerTenant: 2, sqlLoginsPerTenantAndAddress: 3, sqlLoginsPerTenant: 5 }),
  )
  const fake = await startFakePostgres(t, requirePassword)
  const [acme, beta] = [await addTenant(setting, 'acme', fake), await addTenant(setting, 'beta', fake)]
  const port = proxyOf(setting)
  const logins = []
  for (let n = 0; n < 3; n++) logins.push(await startLogin(t, port, fake, acme, attacker))
  t.equal(await responseTo(t, port, attacker, acme), '53300', 'as many as one address may begin')
  t.equal(await responseTo(t, port, attacker, beta), 'in', 'the address may use another tenant')
  for (let n = 0; n < 4; n++)
    t.equal(await responseTo(t, port, neighbour, acme), 'in', 'another address may use the tenant')
  for (let n = 0; n < 2; n++) await startLogin(t, port, fake, acme, neighbour)
  t.equal(await responseTo(t, port, '127.0.0.68', acme), '53300', 'the runtime keeps its connections')
  t.equal(fake.sockets.length, 10, 'rejected clients do not reach the server')
  logins[0]?.destroy()
  await until(async () => (await responseTo(t, port, '127.0.0.68', acme)) === 'in', 'a free login')
})

t.test('An admitted client frees its slot for logins, and counts as a session', async (t) => {
  const setting = await startSetting(
    t,
    withProxy({
      sqlUnauthenticatedPerAddress: 1,
      sqlLoginsPerTenantAndAddress: 1,
      sqlLoginsPerTenant: 1,
      sqlSessionsPerTenant: 2,
    }),
  )
  const fake = await startFakePostgres(t)
  const user = await addTenant(setting, 'acme', fake)
  const port = proxyOf(setting)
  const sessions = [await openSession(t, port, fake, user), await openSession(t, port, fake, user)]
  const { client, received } = open(t, port, '127.0.0.1', startup(['user', user]))
  await once(client, 'close')
  t.same(received().subarray(0, authenticationOk.length), authenticationOk)
  t.equal(errorFields(received().subarray(authenticationOk.length))['C'], '53300')
  await until(() => fake.sockets[2]?.destroyed === true, 'the end of its connection to the server')
  sessions[0]?.destroy()
  await until(() => fake.sockets[0]?.destroyed === true)
  await openSession(t, port, fake, user)
  t.notOk(sessions[1]?.destroyed)
})

t.test('A login that takes too long is cut, whatever it has sent, and a session stays', async (t) => {
  const setting = await startSetting(t, withProxy({ loginTimeout: 200 }))
  const fake = await startFakePostgres(t, requirePassword)
  const user = await addTenant(setting, 'acme', fake)
  const port = proxyOf(setting)
  const session = await openedSession(t, port, user, neighbour)
  const packet = startup(['user', user])
  for (const bytes of [Buffer.alloc(0), packet.subarray(0, 9), packet]) {
    const { client, received } = open(t, port, attacker, bytes)
    await once(client, 'close')
    t.notMatch(received().toString('latin1'), /FATAL/, 'without an error')
  }
  await until(() => fake.sockets[1]?.destroyed === true, 'the end of the connection to the server')
  t.notOk(session.destroyed)
})

t.test('One address waits for a limited number of paused tenants, and longer than for a login', async (t) => {
  const setting = await startFrontedSetting(t, withProxy({ loginTimeout: 200, sqlWaitingPerAddress: 2 }))
  const fake = await startFakePostgres(t)
  const users = []
  for (const name of ['one', 'two', 'three']) users.push(await addTenant(setting, name, fake, { phase: 'paused' }))
  const [one = '', two = '', three = ''] = users
  const port = proxyOf(setting)
  const waiting = [one, two].map((user) => open(t, port, attacker, startup(['user', user])))
  await until(() => new Set(setting.front.wakes).size === 2)
  t.equal(await responseTo(t, port, attacker, three), '53300')
  t.notOk(setting.front.wakes.includes(three.replace(/_admin$/, '')), 'the third tenant is not woken')
  await once(open(t, port, attacker).client, 'close')
  t.ok(
    waiting.every(({ client }) => !client.destroyed),
    'a later client that sent nothing was cut before them',
  )
  const route = {
    tenant_id: one.replace(/_admin$/, ''),
    name: 'one',
    generation: 2,
    phase: 'ready' as const,
    runtimes: [setting.upstream.url],
    dedicated: true,
    postgres: fake.address,
  }
  await setting.put(route)
  await until(() => waiting[0]?.received().equals(authenticationOk) === true, 'the first session')
  open(t, port, attacker, startup(['user', three]))
  await until(() => setting.front.wakes.includes(three.replace(/_admin$/, '')), 'its free slot')
})

async function openedSession(t: Test, port: number, user: string, localAddress: string): Promise<Socket> {
  const { client, received } = open(t, port, localAddress, startup(['user', user]))
  client.once('data', () => client.write(message('p', 'secret\0')))
  await until(() => received().includes(authenticationOk), 'the session')
  return client
}
