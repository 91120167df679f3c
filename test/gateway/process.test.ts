// The gateway as a process: its environment, its signals, and a closed log.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import type { Route } from '@tenantry/contract'
import t, { type Test } from 'tap'
import { readConfig } from '#gateway/config.ts'
import { freePort } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { WatchSource } from '#test/support/watch-source.ts'
import { selfSigned } from './support/certificate.ts'
import { send, newTenantId, token } from './support/gateway.ts'
import { errorFields, sslRequest, startup } from './support/sql-wire.ts'
import { startUpstream } from './support/upstream.ts'

const main = new URL('../../gateway/src/main.ts', import.meta.url).pathname

const whole = {
  TENANTRY_PORT: '8080',
  TENANTRY_INTERNAL_PORT: '8081',
  TENANTRY_CONTROL_URL: 'http://127.0.0.1:4000/',
  TENANTRY_INTERNAL_TOKEN_FILE: '/x/token',
  TENANTRY_DATA: '/x/gateway',
}

t.test('The environment is read strictly and frozen', async (t) => {
  const config = readConfig({ ...whole, OTHER: 'x' })
  t.same(config, {
    host: '127.0.0.1',
    port: 8080,
    isPortShared: false,
    internalHost: '127.0.0.1',
    internalPort: 8081,
    trustedProxies: [],
    controlUrl: 'http://127.0.0.1:4000',
    internalTokenFile: '/x/token',
    data: '/x/gateway',
    domain: 'localhost',
    source: 'gateway-local-0',
    logLevel: 'info',
  })
  t.ok(Object.isFrozen(config))
  const proxy = { TENANTRY_INTERNAL_HOST: '0.0.0.0', TENANTRY_POSTGRES_PORT: '5433' }
  const tls = { TENANTRY_POSTGRES_TLS_CERT_FILE: '/x/cert', TENANTRY_POSTGRES_TLS_KEY_FILE: '/x/key' }
  t.match(readConfig({ ...whole, ...proxy }), { internalHost: '0.0.0.0', postgres: { port: 5433, tls: undefined } })
  t.same(readConfig({ ...whole, ...proxy, ...tls }).postgres, {
    port: 5433,
    tls: { certFile: '/x/cert', keyFile: '/x/key' },
  })
  for (const [text, requireTls] of [
    ['1', true],
    ['0', false],
  ] as const)
    t.same(readConfig({ ...whole, ...proxy, TENANTRY_POSTGRES_REQUIRE_TLS: text }).postgres, { port: 5433, requireTls })
  t.throws(
    () => readConfig({ ...whole, ...proxy, TENANTRY_POSTGRES_REQUIRE_TLS: 'yes' }),
    /TENANTRY_POSTGRES_REQUIRE_TLS is not valid/,
  )
  t.notOk('postgres' in readConfig({ ...whole, ...tls }), 'without a port there is no Postgres proxy')
  t.equal(readConfig({ ...whole, TENANTRY_SHARED_PORT: '1' }).isPortShared, true)
  const range = { TENANTRY_TENANT_RANGE: '10.201.0.0/16' }
  const tenants = { first: 0x0ac90000, size: 65_536 }
  t.same(readConfig({ ...whole, ...range }).tenantAddresses, { range: tenants })
  t.same(readConfig({ ...whole, ...range, TENANTRY_REGION_RANGE: '10.201.0.0/24' }).tenantAddresses, {
    range: tenants,
    except: { first: 0x0ac90000, size: 256 },
  })
  const proxies = { TENANTRY_TRUSTED_PROXIES: '10.1.2.3, 172.20.0.0/16' }
  t.same(readConfig({ ...whole, ...proxies }).trustedProxies, [
    { first: 0x0a010203, size: 1 },
    { first: 0xac140000, size: 65_536 },
  ])
  const wrong: [Record<string, string | undefined>, RegExp][] = [
    [{ TENANTRY_PORT: undefined, TENANTRY_DATA: '' }, /TENANTRY_PORT is missing, TENANTRY_DATA is missing/],
    [{ TENANTRY_PORT: '0' }, /TENANTRY_PORT is not valid/],
    [{ TENANTRY_PORT: '65536' }, /TENANTRY_PORT is not valid/],
    [{ TENANTRY_PORT: '80 ' }, /TENANTRY_PORT is not valid/],
    [{ TENANTRY_CONTROL_URL: 'ftp://x' }, /TENANTRY_CONTROL_URL is not valid/],
    [{ TENANTRY_CONTROL_URL: 'http://x/path' }, /TENANTRY_CONTROL_URL is not valid/],
    [{ TENANTRY_SHARED_PORT: 'yes' }, /TENANTRY_SHARED_PORT is not valid/],
    [{ TENANTRY_DOMAIN: 'Example.org' }, /TENANTRY_DOMAIN is not valid/],
    [{ TENANTRY_DOMAIN: '.example.org' }, /TENANTRY_DOMAIN is not valid/],
    [{ TENANTRY_LOG_LEVEL: 'loud' }, /TENANTRY_LOG_LEVEL is not valid/],
    [{ TENANTRY_SOURCE: 'a b' }, /TENANTRY_SOURCE is not valid/],
    [{ TENANTRY_POSTGRES_PORT: 'x' }, /TENANTRY_POSTGRES_PORT is not valid/],
    [{ TENANTRY_TENANT_RANGE: '10.201.0.0' }, /TENANTRY_TENANT_RANGE is not valid/],
    [{ TENANTRY_TENANT_RANGE: '10.201.1.0/16' }, /TENANTRY_TENANT_RANGE is not valid/],
    [{ ...range, TENANTRY_REGION_RANGE: 'fd00::/8' }, /TENANTRY_REGION_RANGE is not valid/],
    [{ TENANTRY_TRUSTED_PROXIES: '10.1.2.3,' }, /TENANTRY_TRUSTED_PROXIES is not valid/],
    [{ TENANTRY_TRUSTED_PROXIES: '10.1.2.3/16' }, /TENANTRY_TRUSTED_PROXIES is not valid/],
    [{ TENANTRY_TRUSTED_PROXIES: 'caddy' }, /TENANTRY_TRUSTED_PROXIES is not valid/],
    [
      { ...proxy, TENANTRY_POSTGRES_TLS_KEY_FILE: '/x/key' },
      /TENANTRY_POSTGRES_TLS_CERT_FILE and \S+ must both be set/,
    ],
  ]
  for (const [change, message] of wrong) t.throws(() => readConfig({ ...whole, ...change }), { message })
})

t.test('A start that fails reports why, and ends', async (t) => {
  const child = start({})
  let output = ''
  child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  t.equal(code, 78)
  t.match(output, /^The gateway cannot start: .*TENANTRY_PORT is missing.*\n$/)
})

t.test('The gateway logs JSON, serves with a closed log, and pushes its last counts at a stop', async (t) => {
  const { child, control, port, upstream } = await startProcess(t)
  const [line] = String((await once(child.stdout ?? child, 'data'))[0]).split('\n')
  t.match(JSON.parse(line ?? ''), { name: 'gateway', msg: 'The gateway is listening.', port })
  const tenant_id = newTenantId()
  control.routes.put({
    tenant_id,
    name: 'acme',
    generation: 1,
    phase: 'ready',
    runtimes: [upstream.url],
    dedicated: false,
  })
  await until(async () => (await send(port, { path: '/t/acme/bytes/3' })).status === 200)
  child.stdout?.destroy()
  child.stderr?.destroy()
  // Each lost watch writes a line to the log.
  await control.stop()
  await until(async () => (await send(port, { path: '/t/acme/bytes/3' })).status === 200)
  await control.start()
  await until(() => control.routes.watchers === 1)
  const before = control.total(({ meter }) => meter === 'requests')
  for (let n = 0; n < 10; n++) t.equal((await send(port, { path: '/t/acme/bytes/3' })).status, 200)
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  t.same(await gone, [0, null])
  t.ok(control.total(({ meter }) => meter === 'requests') >= before + 10)
  const responses = control.total(({ meter, status_class }) => meter === 'requests' && status_class === '2xx')
  t.equal(
    control.total(({ meter }) => meter === 'egress_bytes'),
    responses * 3,
  )
})

t.test('A second signal ends the process at once', async (t) => {
  const { child, control, port, upstream } = await startProcess(t)
  control.routes.put({
    tenant_id: newTenantId(),
    name: 'acme',
    generation: 1,
    phase: 'ready',
    runtimes: [upstream.url],
    dedicated: false,
  })
  await until(async () => (await send(port, { path: '/t/acme/bytes/3' })).status === 200)
  const hanging = send(port, { path: '/t/acme/hang' })
  const cut = t.rejects(hanging)
  await until(() => upstream.open === 1)
  const gone = once(child, 'exit')
  child.kill('SIGINT')
  await until(
    async () =>
      send(port, { path: '/health' }).then(
        () => false,
        () => true,
      ),
    'the closed port',
  )
  child.kill('SIGINT')
  t.same(await gone, [1, null])
  await cut
})

t.test('The Postgres proxy listens on its port, with TLS by a certificate from files', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-gateway-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const { cert, key } = selfSigned()
  await writeFile(join(directory, 'cert.pem'), cert)
  await writeFile(join(directory, 'key.pem'), key)
  const postgresPort = await freePort()
  await startProcess(t, {
    TENANTRY_POSTGRES_PORT: String(postgresPort),
    TENANTRY_POSTGRES_TLS_CERT_FILE: join(directory, 'cert.pem'),
    TENANTRY_POSTGRES_TLS_KEY_FILE: join(directory, 'key.pem'),
  })
  const client = connect(postgresPort, '127.0.0.1')
  client.write(sslRequest)
  t.equal(String((await once(client, 'data'))[0]), 'S')
  const secure = connectTls({ socket: client, rejectUnauthorized: false })
  await once(secure, 'secureConnect')
  secure.write(startup(['user', 'unknown']))
  t.equal(errorFields(await collected(secure))['C'], '28000')
})

async function collected(socket: Socket): Promise<Buffer> {
  return Buffer.concat((await socket.toArray()) as Buffer[])
}

function start(environment: Record<string, string>): ChildProcess {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith('TENANTRY_'))
  return spawn(process.execPath, [main], {
    env: { ...Object.fromEntries(others), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function startProcess(t: Test, more: Record<string, string> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-gateway-'))
  const control = new WatchSource<Route>(token)
  await control.start()
  const upstream = await startUpstream()
  const tokenFile = join(directory, 'token')
  await writeFile(tokenFile, `${token}\n`)
  const port = await freePort()
  const internalPort = await freePort()
  const child = start({
    TENANTRY_PORT: String(port),
    TENANTRY_INTERNAL_PORT: String(internalPort),
    TENANTRY_CONTROL_URL: control.url,
    TENANTRY_INTERNAL_TOKEN_FILE: tokenFile,
    TENANTRY_DATA: join(directory, 'data'),
    ...more,
  })
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }
    await control.stop()
    await upstream.stop()
    await rm(directory, { recursive: true, force: true })
  })
  await until(
    async () =>
      send(internalPort, { path: '/internal/v1/live' }).then(
        ({ status }) => status === 200,
        () => false,
      ),
    'the start',
  )
  return { child, control, port, upstream }
}
