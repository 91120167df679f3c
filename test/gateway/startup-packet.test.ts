// What the Postgres proxy reads from both sides, without sockets: startup packets, cancel keys, and its own rejections.
import fc from 'fast-check'
import t from 'tap'
import { fatalMessage, sqlRejection, sqlRejections } from '#gateway/postgres-proxy/fatal.ts'
import { SessionStart } from '#gateway/postgres-proxy/session-start.ts'
import { movedPacket, packetLength, readOnlyPacket, readStartupPacket } from '#gateway/postgres-proxy/startup-packet.ts'
import { rejections, tenantSuspended } from '#gateway/errors.ts'
import { effort, seed } from '#test/support/effort.ts'
import {
  cancelRequest,
  errorFields,
  gssRequest,
  authenticationOk,
  message,
  packet,
  sslRequest,
  startup,
} from './support/sql-wire.ts'

t.test('readStartupPacket identifies every kind of packet', async (t) => {
  t.same(readStartupPacket(sslRequest), { kind: 'tls' })
  t.same(readStartupPacket(gssRequest), { kind: 'gss' })
  t.same(readStartupPacket(cancelRequest(Buffer.from('0102030405060708', 'hex'))), {
    kind: 'cancel',
    key: '0102030405060708',
  })
  t.same(readStartupPacket(startup(['user', 'a'])), { kind: 'login', user: 'a' })
  t.same(readStartupPacket(startup(['database', 'user', 'user', 'a', 'options', '', '_pq_.x', 'user'])), {
    kind: 'login',
    user: 'a',
  })
  t.same(readStartupPacket(startup(['user', 'a'], 0x30002)), { kind: 'login', user: 'a' }, 'protocol 3.2')
  t.same(readStartupPacket(startup(['user', ''])), { kind: 'login', user: '' })
})

t.test('A login to a shared database that the home has left leads to its present one', async (t) => {
  const login = (database: string) => startup(['user', 'a', 'database', database, 'options', '-c x=é'], 0x30002)
  t.same(
    movedPacket(login('tenantry_homes_1'), 'tenantry_homes_2'),
    startup(['user', 'a', 'options', '-c x=é', 'database', 'tenantry_homes_2'], 0x30002),
  )
  for (const database of ['tenantry_homes_2', 'postgres', 'tenantry_homes_', 'tenantry_homes_1b'])
    t.equal(movedPacket(login(database), 'tenantry_homes_2'), undefined, `${database} stays`)
  t.equal(movedPacket(startup(['user', 'a']), 'tenantry_homes_2'), undefined, 'a login without a database stays')
})

t.test('A login to the alias of read-only copies becomes a read-only login to the database', async (t) => {
  const copies = { alias: 'home_read_only', database: 'home' }
  t.same(
    readOnlyPacket(startup(['user', 'a', 'database', 'home_read_only', 'options', '-c x=é'], 0x30002), copies),
    startup(['user', 'a', 'options', '-c x=é', 'database', 'home', 'default_transaction_read_only', 'on'], 0x30002),
    'other parameters and the version stay',
  )
  const last = startup([
    'default_transaction_read_only',
    'off',
    'database',
    'home',
    'database',
    'home_read_only',
    'user',
    'a',
  ])
  t.same(
    readOnlyPacket(last, copies),
    startup([
      'default_transaction_read_only',
      'off',
      'user',
      'a',
      'database',
      'home',
      'default_transaction_read_only',
      'on',
    ]),
    'the last value counts, as in PostgreSQL',
  )
  for (const parameters of [
    ['user', 'a'],
    ['user', 'a', 'database', 'home'],
    ['user', 'home_read_only'],
    ['user', 'a', 'database', 'home_read_only', 'database', 'home'],
  ])
    t.equal(readOnlyPacket(startup(parameters), copies), undefined, parameters.join(' '))
})

t.test('A packet that is cut, duplicated or of another protocol is unreadable', async (t) => {
  const unreadable: [string, Buffer][] = [
    ['no parameters', packet(0x30000)],
    ['no user', startup(['database', 'a'])],
    ['two users', startup(['user', 'a', 'user', 'b'])],
    ['the same user twice', startup(['user', 'a', 'user', 'a'])],
    ['a user after the end', packet(0x30000, 'user\0a\0\0user\0b\0\0')],
    ['no zero byte at the end', packet(0x30000, 'user\0a\0')],
    ['a name without a value', packet(0x30000, 'user\0a\0database\0\0')],
    ["only a user's name", packet(0x30000, 'user\0\0')],
    ['a text without an end', packet(0x30000, 'user\0a')],
    ['protocol 2', startup(['user', 'a'], 0x20000)],
    ['protocol 4', startup(['user', 'a'], 0x40000)],
    ['an unknown request', packet(80_877_105)],
    ['TLS with more', packet(80_877_103, 'x')],
    ['a short cancel key', cancelRequest(Buffer.alloc(7))],
    ['a long cancel key', cancelRequest(Buffer.alloc(261))],
  ]
  for (const [name, bytes] of unreadable) t.same(readStartupPacket(bytes), { kind: 'unreadable' }, name)
})

t.test('A length outside the limits is invalid', async (t) => {
  const word = (length: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(length)
    return bytes
  }
  for (const length of [0, 4, 7, 10_001, 0x16030100, 0xffffffff])
    t.equal(packetLength(word(length), 10_000), undefined, String(length))
  for (const length of [8, 9, 10_000]) t.equal(packetLength(word(length), 10_000), length)
})

/** Reads the parameters as `ProcessStartupPacket` of PostgreSQL does. */
function userAsPostgresSees(parameters: Buffer): string | undefined {
  const end = (at: number) => {
    const zero = parameters.indexOf(0, at)
    return zero < 0 ? parameters.length : zero
  }
  let user: string | undefined
  let at = 0
  while (at < parameters.length && parameters[at] !== 0) {
    const value = end(at) + 1
    if (value >= parameters.length) break
    if (parameters.toString('latin1', at, end(at)) === 'user') user = parameters.toString('latin1', value, end(value))
    at = end(value) + 1
  }
  return at === parameters.length - 1 ? user : undefined
}

t.test('The user of a packet is the one that PostgreSQL uses, for any packet', async (t) => {
  const text = fc.constantFrom('user', 'a', 'b', '', 'USER', 'user ', 'database', '\0', 'é')
  const bytes = fc.oneof(
    fc.array(text, { maxLength: 9 }).map((texts) => Buffer.from(texts.map((one) => `${one}\0`).join(''), 'latin1')),
    fc.array(text, { maxLength: 9 }).map((texts) => Buffer.from(`${texts.join('\0')}\0\0`, 'latin1')),
    fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)),
  )
  let logins = 0
  fc.assert(
    fc.property(bytes, (parameters) => {
      const read = readStartupPacket(packet(0x30000, parameters))
      if (read.kind !== 'login') return true
      logins++
      return read.user === userAsPostgresSees(parameters)
    }),
    { numRuns: effort({ small: 5_000, full: 500_000 }), seed },
  )
  t.ok(logins > 50, `${logins} of them were logins`)
})

t.test('A cancel key is found in chunks of any size, but only before the server is ready for queries', async (t) => {
  const key = Buffer.from('00000abc11223344', 'hex')
  const long = Buffer.alloc(260, 7)
  const greeting = (secret: Buffer) => [
    message('R', Buffer.alloc(4)),
    message('S', 'a\0b\0'),
    message('N', ''),
    message('K', secret),
  ]
  const conversations: [Buffer, string | undefined][] = [
    [Buffer.concat([...greeting(key), message('Z', 'I'), message('K', long)]), key.toString('hex')],
    [Buffer.concat([...greeting(long), message('Z', 'I')]), long.toString('hex')],
    [Buffer.concat([message('R', Buffer.alloc(4)), message('Z', 'I'), message('K', key)]), undefined],
    [Buffer.concat([message('K', Buffer.alloc(261)), message('K', key)]), key.toString('hex')],
    [Buffer.concat([message('S', Buffer.alloc(70_000)), message('K', key)]), undefined],
    [Buffer.concat([Buffer.from('S\0\0\0\x03'), message('K', key)]), undefined],
    [message('E', 'SFATAL\0\0'), undefined],
  ]
  for (const [nth, [bytes, expected]] of conversations.entries()) {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }), (sizes) => {
        const start = new SessionStart()
        const found: string[] = []
        for (let at = 0, n = 0; at < bytes.length; n++) {
          const size = bytes.length > 1_000 ? 1_000 : (sizes[n % sizes.length] ?? 1)
          const { cancelKey } = start.read(bytes.subarray(at, at + size))
          if (cancelKey !== undefined) found.push(cancelKey)
          at += size
        }
        return found.length === (expected === undefined ? 0 : 1) && found[0] === expected
      }),
      { numRuns: effort({ small: 100, full: 5_000 }), seed },
    )
    t.pass(`conversation ${nth}`)
  }
})

t.test('An admission is detected once, at the end of its message, in chunks of any size', async (t) => {
  const requests = Buffer.concat([
    message('R', Buffer.from('0000000a534352414d00', 'hex')),
    message('R', Buffer.from('0000000c', 'hex')),
    message('S', authenticationOk),
  ])
  const conversations: [Buffer, number | undefined][] = [
    [Buffer.concat([authenticationOk, message('Z', 'I')]), authenticationOk.length],
    [
      Buffer.concat([requests, authenticationOk, message('S', 'a\0b\0'), authenticationOk, message('Z', 'I')]),
      requests.length + authenticationOk.length,
    ],
    [Buffer.concat([requests, message('E', 'SFATAL\0\0')]), undefined],
    [Buffer.concat([message('R', Buffer.alloc(8)), message('R', Buffer.alloc(3))]), undefined],
    [Buffer.concat([message('Z', 'I'), authenticationOk]), undefined],
    [Buffer.concat([message('S', Buffer.alloc(70_000)), authenticationOk]), undefined],
  ]
  for (const [nth, [bytes, expected]] of conversations.entries()) {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }), (sizes) => {
        const start = new SessionStart()
        const seen: number[] = []
        for (let at = 0, n = 0; at < bytes.length; n++) {
          const size = bytes.length > 1_000 ? 1_000 : (sizes[n % sizes.length] ?? 1)
          const { admittedAt } = start.read(bytes.subarray(at, at + size))
          if (admittedAt !== undefined) seen.push(at + admittedAt)
          at += size
        }
        return seen.length === (expected === undefined ? 0 : 1) && seen[0] === expected
      }),
      { numRuns: effort({ small: 100, full: 5_000 }), seed },
    )
    t.pass(`conversation ${nth}`)
  }
})

t.test('Rejections over HTTP have their equivalents in SQL', async (t) => {
  const route = {
    tenant_id: 't_0',
    name: 'acme',
    generation: 1,
    phase: 'suspended' as const,
    runtimes: [],
    dedicated: true,
  }
  t.same(sqlRejection(tenantSuspended({ ...route, reason: 'unpaid' })), {
    code: '28000',
    message: 'The tenant is suspended: unpaid',
  })
  t.equal(sqlRejection(rejections.tenantNotFound), sqlRejections.unknownUser)
  for (const rejection of [rejections.tenantNotReady, rejections.tenantWaking, rejections.tooManyWaiting])
    t.equal(sqlRejection(rejection).code, '57P03')
  t.same(errorFields(fatalMessage({ code: '28000', message: 'Überall' })), {
    S: 'FATAL',
    V: 'FATAL',
    C: '28000',
    M: 'Überall',
  })
})
