// The images that run Node, hardened as the engine does it: they start, report that they are live, and stop.
import t from 'tap'
import { createSandbox, until, type Running } from './support/sandbox.ts'

const internalToken = 'an internal token that is long enough'
/** A subnet for networks that are removed after each test. No other test uses it. */
const subnet = '10.231.77.0/28'

async function untilLive(service: Running, port: number): Promise<void> {
  await until('the service to live', async () => {
    if (!(await service.isRunning())) throw new Error(`the service has ended: ${await service.logs()}`)
    return (await service.exec(['/usr/local/bin/is-live', String(port)])).code === 0
  })
}

t.test(
  'Runtime and gateway live without root, a writable root, capabilities or a network, and stop on request',
  async (t) => {
    const sandbox = createSandbox(t)
    for (const { image, port } of [
      { image: 'tenant-runtime', port: 24_401 },
      { image: 'gateway', port: 4402 },
    ] as const) {
      const service = await sandbox.start(image, {
        data: await sandbox.volume(),
        secrets: await sandbox.secrets(image, { 'internal-token': internalToken }),
        environment: { TENANTRY_CONTROL_URL: 'http://192.0.2.1:4400' },
      })
      await untilLive(service, port)
      t.same(
        await service.exec([
          '/bin/bash',
          '-c',
          'id -u; touch /app/x 2>&1 | grep -c Read-only; grep -c "^CapEff:.0*$" /proc/self/status; grep NoNewPrivs /proc/self/status',
        ]),
        { code: 0, output: '10001\n1\n1\nNoNewPrivs:\t1' },
        image,
      )
      await service.container.stop({ t: 20 })
      t.equal(await service.ended(), 0)
    }
  },
)

t.test('is-live fails when nothing listens, and when the response is an error', async (t) => {
  const sandbox = createSandbox(t)
  const service = await sandbox.start('gateway', {
    entrypoint: [
      '/usr/local/bin/node',
      '-e',
      "require('http').createServer((_, response) => response.writeHead(503).end()).listen(4402)",
    ],
  })
  t.equal((await service.exec(['/usr/local/bin/is-live', '4401'])).code, 1)
  await until(
    'the server to listen',
    async () => (await service.exec(['/bin/bash', '-c', '< /dev/tcp/127.0.0.1/4402'])).code === 0,
  )
  t.equal((await service.exec(['/usr/local/bin/is-live', '4402'])).code, 1)
})

t.test('The control plane creates its database and lives, and reports a missing setting', async (t) => {
  const sandbox = createSandbox(t)
  const network = await sandbox.network(subnet)
  const password = 'of the superuser'
  const postgres = await sandbox.start('postgres', {
    data: await sandbox.volume(),
    network,
    alias: 'postgres',
    secrets: await sandbox.secrets('postgres', { 'superuser-password': password }),
  })
  await until(
    'Postgres to respond',
    async () => (await postgres.exec(['pg_isready', '--quiet', '--host=/run/postgresql'])).code === 0,
  )
  const url = `postgresql://postgres:${encodeURIComponent(password)}@postgres:5432`
  const region = {
    id: 'local',
    engine: 'process',
    domain: 'localhost',
    gateway_url: 'http://gateway:4401',
    postgres_url: `${url}/postgres`,
    runtime_urls: ['http://runtime:24401'],
    gateway_internal_urls: ['http://gateway:4402'],
  }
  const secrets = await sandbox.secrets('control-plane', {
    'internal-token': internalToken,
    'master-key': Buffer.alloc(32, 1).toString('base64'),
    'regions.json': JSON.stringify([region]),
  })
  const environment = {
    TENANTRY_MASTER_KEY_FILE: '/run/secrets/master-key',
    TENANTRY_REGIONS_FILE: '/run/secrets/regions.json',
  }
  const incomplete = await sandbox.start('control-plane', { network, secrets, environment })
  t.equal(await incomplete.ended(), 78, 'the exit code of a wrong configuration')
  t.match(
    await incomplete.logs(),
    /Neither TENANTRY_CONTROL_DATABASE_URL nor TENANTRY_CONTROL_DATABASE_URL_FILE\s+is set/,
  )

  const service = await sandbox.start('control-plane', {
    network,
    secrets,
    environment: { ...environment, TENANTRY_CONTROL_DATABASE_URL: `${url}/home` },
  })
  await untilLive(service, 4400)
  const tables = await postgres.exec([
    'psql',
    '--host=/run/postgresql',
    '--dbname=home',
    '--tuples-only',
    '--no-align',
    "--command=select count(*) from pg_tables where tablename = 'tenants'",
  ])
  t.same(tables, { code: 0, output: '1' })
  await service.container.stop({ t: 20 })
  t.equal(await service.ended(), 0)
})
