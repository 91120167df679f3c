// TLS at the Postgres proxy with certificates of the installation's own authority, and with the operator's: psql and
// node-postgres verify them, sessions survive a renewal, and clients that break the handshake harm no others.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import type { CertificateCall } from '@tenantry/contract'
import type pg from 'pg'
import t from 'tap'
import { issueCertificate, newAuthority, readPublicKey } from '#control-plane/certificates/authority.ts'
import { certificateHosts } from '#control-plane/certificates/hosts.ts'
import { FileCertificate } from '#gateway/certificates/file-certificate.ts'
import { IssuedCertificate } from '#gateway/certificates/issued-certificate.ts'
import { exists, installPackages } from '#scripts/debian-packages.ts'
import { query, startPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { selfSigned } from './support/certificate.ts'
import { send, startSetting, token, type Setting } from './support/gateway.ts'
import { proxyOf } from './support/postgres-proxy.ts'
import { addRealTenant, connected, type Login } from './support/real-tenant.ts'
import { afterSslRequest, errorFields, exchange, sslRequest, startup } from './support/sql-wire.ts'

const authority = newAuthority('00000000-0000-4000-8000-000000000001', new Date())
const regions = [
  { domain: 'localhost', gateway_url: 'https://tenants.example.org', database_host: 'db.example.org:5432' },
  { domain: 'elsewhere.example', gateway_url: 'https://elsewhere.example', database_host: '192.0.2.7:5432' },
]
const issue = ({ public_key: key, domain }: CertificateCall) =>
  issueCertificate(authority, readPublicKey(key), certificateHosts(domain, regions), new Date())
const issued = { postgres: { port: 0, tls: 'issued' as const } }
const verified = { ca: authority.certificate }

if (!(await exists('/usr/bin/psql'))) await installPackages('postgresql-client')

t.test('With a real Postgres', async (t) => {
  const server = await startPostgres()
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-tls-'))
  t.teardown(async () => {
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  })
  const at = (file: string) => join(directory, file)
  await writeFile(at('ca.pem'), authority.certificate)
  await writeFile(at('other.pem'), selfSigned().cert)

  /** Runs psql over TLS. @returns what it prints, or its error */
  const psql = async ({ port, user, password }: Login, parameters: string): Promise<string> => {
    const target = `port=${port} user=${user} dbname=postgres hostaddr=127.0.0.1 connect_timeout=10 ${parameters}`
    const environment = { PATH: process.env['PATH'] ?? '', HOME: directory, PGPASSWORD: password }
    return promisify(execFile)('psql', ['-X', '-A', '-t', '-c', '\\conninfo', '-c', 'select 42', target], {
      env: environment,
    }).then(
      ({ stdout }) => stdout,
      (error: unknown) => String((error as { stderr?: string }).stderr),
    )
  }

  t.test('psql and node-postgres verify the certificate of the own authority', async (t) => {
    const setting = await startSetting(t, issued)
    const { login } = await addRealTenant(setting, server, 'acme')
    await t.rejects(connected(t, { ...login, ssl: verified }), /does not support SSL/, 'before there is a certificate')
    setting.control.issue = issue
    await untilIssued(setting)

    for (const host of ['localhost', '127.0.0.1', 'acme.localhost', 'db.example.org', 'tenants.example.org'])
      t.match(
        await psql(login, `host=${host} sslmode=verify-full sslrootcert=${at('ca.pem')}`),
        /TLSv1\.3[\s\S]*42/,
        host,
      )
    for (const host of ['elsewhere.example', 'a.b.localhost', 'example.org'])
      t.match(
        await psql(login, `host=${host} sslmode=verify-full sslrootcert=${at('ca.pem')}`),
        /does not match host name/,
        host,
      )
    t.match(
      await psql(login, `host=localhost sslmode=verify-full sslrootcert=${at('other.pem')}`),
      /certificate verify failed/,
      'another authority',
    )
    t.match(await psql(login, 'sslmode=require'), /TLSv1\.3/)
    t.match(await psql(login, 'sslmode=disable'), /42/, 'without TLS')

    for (const host of ['localhost', '127.0.0.1']) {
      const client = await connected(t, { ...login, host, ssl: verified })
      t.ok(streamOf(client) instanceof TLSSocket)
      const { rows } = await client.query<{ text: string }>('select repeat($1, 1000000) as text', ['s'])
      t.equal(rows[0]?.text.length, 1_000_000)
    }
    await t.rejects(connected(t, { ...login, ssl: { ca: selfSigned().cert } }), { code: /CERT|ISSUER/ })
    await t.rejects(
      connected(t, { ...login, ssl: { ...verified, servername: 'example.org' } }),
      { code: 'ERR_TLS_CERT_ALTNAME_INVALID' },
      'a wrong name',
    )
    t.same(await query(urlOf(login), 'select 1 as one'), [{ one: 1 }], 'without TLS')
    const { body } = await send(setting.gateway.internalPort, {
      path: '/metrics',
      headers: { 'x-tenantry-internal': token },
    })
    const [, end = '0'] = /^tenantry_gateway_sql_certificate_end_seconds (\S+)$/m.exec(body) ?? []
    t.ok(Number(end) * 1_000 > Date.now())
    t.same(setting.errors, [])
  })

  t.test('A renewal interrupts no session', async (t) => {
    const setting = await startSetting(t, { ...issued, certificateInterval: 20 })
    setting.control.issue = issue
    const { login } = await addRealTenant(setting, server, 'renewed')
    await untilIssued(setting)
    const first = await connected(t, { ...login, ssl: verified })
    await first.query('create temporary table kept as select 1 as one')
    const serials = new Set([serialOf(first)])
    while (serials.size < 4) {
      const later = await connected(t, { ...login, ssl: verified })
      serials.add(serialOf(later))
      await later.end()
      t.same((await first.query('select one from kept')).rows, [{ one: 1 }])
    }
    t.same(setting.errors, [])
  })

  t.test('A gateway that restarts while no certificate is issued serves its last one', async (t) => {
    const setting = await startSetting(t, issued)
    setting.control.issue = issue
    const { login } = await addRealTenant(setting, server, 'alone')
    await untilIssued(setting)
    const file = join(setting.data, 'sql-certificate.pem')
    await until(async () => (await readFile(file, 'utf8').catch(() => '')) !== '', 'the file')
    t.equal((await stat(file)).mode & 0o777, 0o600)
    setting.control.issue = undefined
    await setting.restart()
    const client = await connected(t, { ...login, port: proxyOf(setting), ssl: verified })
    t.same((await client.query('select 1 as one')).rows, [{ one: 1 }])
    await client.end()
    await setting.gateway.stop(0)
    await writeFile(file, 'damaged')
    await setting.restart()
    t.match(setting.errors.at(-1), { err: { message: /The certificate in .* cannot be read/ } })
    await t.rejects(connected(t, { ...login, port: proxyOf(setting), ssl: verified }), /does not support SSL/)
    setting.control.issue = issue
    await untilIssued(setting)
    await connected(t, { ...login, port: proxyOf(setting), ssl: verified })
  })

  t.test('TLS can be required, also before there is a certificate', async (t) => {
    const setting = await startSetting(t, { postgres: { ...issued.postgres, requireTls: true } })
    const { login } = await addRealTenant(setting, server, 'strict')
    await t.rejects(connected(t, login), { code: '28000', message: /sslmode=require/ })
    setting.control.issue = issue
    await untilIssued(setting)
    await t.rejects(connected(t, login), { code: '28000', message: /sslmode=require/ })
    t.match(await psql(login, 'sslmode=disable'), /sslmode=require/)
    await connected(t, { ...login, ssl: verified })
    const lax = await startSetting(t, { postgres: { port: 0, tls: selfSigned(), requireTls: false } })
    const { login: plain } = await addRealTenant(lax, server, 'lax')
    await connected(t, plain)
  })

  t.test("The operator's certificate is read again when its files change", async (t) => {
    const [first, second] = [selfSigned(), selfSigned()]
    let files = first
    const setting = await startSetting(t, {
      postgres: { port: 0, tls: { ...first, read: () => Promise.resolve(files) } },
      certificateInterval: 5,
    })
    const { login } = await addRealTenant(setting, server, 'files')
    const verifying = (ca: string, host = 'localhost') => connected(t, { ...login, host, ssl: { ca } })
    const open = await verifying(first.cert)
    await t.rejects(
      verifying(first.cert, '127.0.0.1'),
      { code: 'ERR_TLS_CERT_ALTNAME_INVALID' },
      'node-postgres verifies the address, which this certificate does not contain',
    )
    // Certificate and key are replaced one after the other.
    files = { cert: second.cert, key: first.key }
    await verifying(first.cert)
    files = second
    await until(() =>
      verifying(second.cert).then(
        () => true,
        () => false,
      ),
    )
    t.same((await open.query('select 1 as one')).rows, [{ one: 1 }], 'the session of the earlier certificate')
    t.same(setting.errors, [])
  })

  t.test('Clients that break the handshake harm no other client, and are not logged', async (t) => {
    const setting = await startSetting(t, issued)
    setting.control.issue = issue
    const { login } = await addRealTenant(setting, server, 'sturdy')
    await untilIssued(setting)
    const port = proxyOf(setting)
    const session = await connected(t, { ...login, ssl: verified })
    const helloOfTls = Buffer.from('16030100c8010000c40303', 'hex')
    const broken = [
      Buffer.alloc(0),
      Buffer.from('garbage after the response'),
      startup(['user', login.user]),
      helloOfTls,
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      Buffer.alloc(20_000, 0xff),
    ]
    // Together they are more than one address may have at once.
    for (let round = 0; round < 20; round++)
      await Promise.all(
        broken.map(async (bytes) => {
          const client = await afterSslRequest(port)
          if (round % 2 === 0) client.end(bytes)
          else client.write(bytes, () => client.destroy())
          await closed(client)
        }),
      )
    // A client that leaves within a login, and one with a wrong certificate.
    for (let round = 0; round < 20; round++) {
      const secure = connectTls({ socket: await afterSslRequest(port), rejectUnauthorized: false })
      await once(secure, 'secureConnect')
      secure.write(startup(['user', login.user]).subarray(0, 9))
      secure.destroy()
    }
    const early = await exchange(port, Buffer.concat([sslRequest, helloOfTls]))
    t.equal(errorFields(early)['C'], '08P01', 'bytes before the response to an SSLRequest are rejected')
    await connected(t, { ...login, ssl: verified })
    t.same((await session.query('select 1 as one')).rows, [{ one: 1 }])
    t.same(setting.errors, [])
  })
})

t.test('Files that stay invalid are reported once, and again after they were valid', async (t) => {
  const first = selfSigned()
  let clock = 0
  let read = () => Promise.resolve({ ...first, key: 'damaged' })
  const errors: Error[] = []
  let readings = 0
  const certificate = new FileCertificate({
    first,
    read: () => {
      readings++
      clock += 2_000
      return read()
    },
    interval: 1,
    elapsed: () => clock,
    onReplaced: () => t.fail('nothing changed'),
    onError: (error) => errors.push(error),
  })
  const before = certificate.current.context
  const stopping = new AbortController()
  const running = certificate.run(stopping.signal)
  await until(() => readings > 20)
  t.equal(errors.length, 1)
  t.match(errors[0]?.message, /cannot be read again/)
  t.equal(certificate.current.context, before)
  read = () => Promise.resolve(first)
  await until(() => readings > 40)
  read = () => Promise.reject(new Error('no such file'))
  await until(() => errors.length === 2)
  stopping.abort()
  await running
})

t.test('A certificate is replaced long before it expires, and a lasting failure is reported before', async (t) => {
  const days = 24 * 3_600_000
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-tls-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const start = Date.now()
  let now = start
  let step = 10 * days
  let isDown = false
  let calls = 0
  const remaining: number[] = []
  const errors: Error[] = []
  const certificate = new IssuedCertificate({
    control: {
      controlUrl: 'http://control.example',
      internalToken: token,
      fetch: (_url, request) => {
        calls++
        now += step
        remaining.push(((certificate.current.expiresAt ?? Infinity) - now) / days)
        if (isDown) return Promise.reject(new Error('no route'))
        const call = JSON.parse(request?.body as string) as CertificateCall
        const chain = issueCertificate(authority, readPublicKey(call.public_key), ['localhost'], new Date(now))
        return Promise.resolve(Response.json({ certificate: chain }))
      },
    },
    domain: 'localhost',
    file: join(directory, 'certificate.pem'),
    interval: 1,
    now: () => now,
    // Each call is long after the one before.
    elapsed: () => calls * 10_000,
    onError: (error) => {
      errors.push(error)
      t.ok(Number(remaining.at(-1)) > 0, 'reported before it expires')
    },
  })
  const stopping = new AbortController()
  const running = certificate.run(stopping.signal)
  await until(() => calls >= 40)
  isDown = true
  t.ok(now > start + 4 * 90 * days, 'more than four periods of validity')
  t.ok(Math.min(...remaining) > 79, 'a new certificate each time')
  const failures = async (count: number) => {
    const wanted = calls + count
    await until(() => calls >= wanted)
  }
  step = 20 * days
  await failures(2)
  t.same(errors, [], 'while it is valid for longer than 30 days')
  await until(() => errors.length > 0)
  t.match(errors[0]?.message, /does not issue a certificate/)
  step = 0
  isDown = false
  await until(() => (certificate.current.expiresAt ?? 0) > now + 89 * days)
  stopping.abort()
  await running
  t.equal(errors.length, 1)
})

function untilIssued(setting: Setting): Promise<void> {
  return until(async () => {
    const client = await afterSslRequest(proxyOf(setting)).catch(() => undefined)
    client?.destroy()
    return client !== undefined
  }, 'the certificate')
}

async function closed(client: Socket): Promise<void> {
  client.resume()
  if (!client.closed) await once(client, 'close')
}

function streamOf(client: pg.Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream
}

function serialOf(client: pg.Client): string {
  const stream = streamOf(client)
  if (!(stream instanceof TLSSocket)) throw new Error('The session is not encrypted.')
  return stream.getPeerCertificate().serialNumber
}

function urlOf({ host, port, user, password }: Login): string {
  return `postgresql://${user}:${password}@${host}:${port}/postgres`
}
