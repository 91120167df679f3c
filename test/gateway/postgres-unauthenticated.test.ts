// Strangers at the Postgres door: whoever has not logged in takes no place of those who have, nor of other addresses.
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
  knock,
  admit,
  letsIn,
  message,
  openSession,
  startFakePostgres,
  startup,
  type FakePostgres,
} from './support/sql-wire.ts'

const outsider = '127.0.0.66'
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

/** A server that asks for a password and lets in whoever sends one. */
function requestsFirst(socket: Socket): void {
  socket.once('data', () => {
    socket.write(message('R', Buffer.from([0, 0, 0, 3])))
    letsIn(socket)
  })
}

/** A connection that stays, and what has come on it. */
function open(t: Test, port: number, localAddress: string, bytes: Buffer = Buffer.alloc(0)) {
  const client = connect({ host: '127.0.0.1', port, localAddress }).on('error', () => undefined)
  const received: Buffer[] = []
  client.on('data', (chunk: Buffer) => received.push(chunk))
  t.teardown(() => client.destroy())
  client.write(bytes)
  return { client, received: () => Buffer.concat(received) }
}

/** The code with which the door, or the server behind it, turns the client away; `in` when it does not. */
async function responseTo(t: Test, port: number, localAddress: string, user: string): Promise<string> {
  const { client, received } = open(t, port, localAddress, startup(['user', user]))
  client.once('data', () => client.write(message('p', 'secret\0')))
  await until(() => client.destroyed || received().includes(admit), 'an answer')
  const isIn = !client.destroyed
  client.destroy()
  return isIn ? 'in' : received().length === 0 ? 'cut' : (errorFields(received())['C'] ?? '')
}

t.test('silent connections of one address leave the door open for others', async (t) => {
  const setting = await startSetting(t, withProxy({ sqlUnauthenticatedPerAddress: 4 }))
  const fake = await startFakePostgres(t, requestsFirst)
  const user = await addTenant(setting, 'acme', fake)
  const port = proxyOf(setting)
  const session = await openedSession(t, port, user, outsider)
  const silent = Array.from({ length: 20 }, () => open(t, port, outsider).client)
  await until(() => silent.filter(({ closed }) => !closed).length === 4, 'as many as one address may hold')
  t.equal(await responseTo(t, port, outsider, user), 'cut')
  t.equal(await responseTo(t, port, neighbour, user), 'in')
  t.notOk(session.destroyed, 'who is in stays in')
  silent.forEach((client) => client.destroy())
  await until(async () => (await responseTo(t, port, outsider, user)) === 'in', 'room again')
})

t.test('logins that never send a password take no session, and no place of another address', async (t) => {
  const setting = await startSetting(
    t,
    withProxy({ sqlSessionsPerTenant: 2, sqlLoginsPerTenantAndAddress: 3, sqlLoginsPerTenant: 5 }),
  )
  const fake = await startFakePostgres(t, requestsFirst)
  const [acme, beta] = [await addTenant(setting, 'acme', fake), await addTenant(setting, 'beta', fake)]
  const port = proxyOf(setting)
  const logins = []
  for (let n = 0; n < 3; n++) logins.push(await knock(t, port, fake, acme, outsider))
  t.equal(await responseTo(t, port, outsider, acme), '53300', 'as many as one address may')
  t.equal(await responseTo(t, port, outsider, beta), 'in', 'at another tenant it may')
  for (let n = 0; n < 4; n++) t.equal(await responseTo(t, port, neighbour, acme), 'in', 'another address may')
  for (let n = 0; n < 2; n++) await knock(t, port, fake, acme, neighbour)
  t.equal(await responseTo(t, port, '127.0.0.68', acme), '53300', 'the runtime needs its connections too')
  t.equal(fake.sockets.length, 10, 'who is turned away does not reach the server')
  logins[0]?.destroy()
  await until(async () => (await responseTo(t, port, '127.0.0.68', acme)) === 'in', 'room again')
})

t.test('who is let in leaves its place among the strangers, and counts as a session', async (t) => {
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
  t.same(received().subarray(0, admit.length), admit)
  t.equal(errorFields(received().subarray(admit.length))['C'], '53300')
  await until(() => fake.sockets[2]?.destroyed === true, 'its connection to the server has ended')
  sessions[0]?.destroy()
  await until(() => fake.sockets[0]?.destroyed === true)
  await openSession(t, port, fake, user)
  t.notOk(sessions[1]?.destroyed)
})

t.test('who is not let in in time is cut, whatever it has sent; who is in stays', async (t) => {
  const setting = await startSetting(t, withProxy({ loginTimeout: 200 }))
  const fake = await startFakePostgres(t, requestsFirst)
  const user = await addTenant(setting, 'acme', fake)
  const port = proxyOf(setting)
  const session = await openedSession(t, port, user, neighbour)
  const packet = startup(['user', user])
  for (const bytes of [Buffer.alloc(0), packet.subarray(0, 9), packet]) {
    const { client, received } = open(t, port, outsider, bytes)
    await once(client, 'close')
    t.notMatch(received().toString('latin1'), /FATAL/, 'without a word')
  }
  await until(() => fake.sockets[1]?.destroyed === true, 'the server is let go')
  t.notOk(session.destroyed)
})

t.test('one address waits for so many paused tenants at once, and longer than a login may take', async (t) => {
  const setting = await startFrontedSetting(t, withProxy({ loginTimeout: 200, sqlWaitingPerAddress: 2 }))
  const fake = await startFakePostgres(t)
  const users = []
  for (const name of ['one', 'two', 'three']) users.push(await addTenant(setting, name, fake, { phase: 'paused' }))
  const [one = '', two = '', three = ''] = users
  const port = proxyOf(setting)
  const waiting = [one, two].map((user) => open(t, port, outsider, startup(['user', user])))
  await until(() => new Set(setting.front.wakes).size === 2)
  t.equal(await responseTo(t, port, outsider, three), '53300')
  t.notOk(setting.front.wakes.includes(three.replace(/_admin$/, '')), 'the third is not woken')
  await once(open(t, port, outsider).client, 'close')
  t.ok(
    waiting.every(({ client }) => !client.destroyed),
    'whoever came later and said nothing was cut before them',
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
  await until(() => waiting[0]?.received().equals(admit) === true, 'the first is in')
  open(t, port, outsider, startup(['user', three]))
  await until(() => setting.front.wakes.includes(three.replace(/_admin$/, '')), 'and its place is free')
})

async function openedSession(t: Test, port: number, user: string, localAddress: string): Promise<Socket> {
  const { client, received } = open(t, port, localAddress, startup(['user', user]))
  client.once('data', () => client.write(message('p', 'secret\0')))
  await until(() => received().includes(admit), 'the session')
  return client
}
