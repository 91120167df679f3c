// The settings of the egress proxy, and those that the file of regions passes to the runtimes: storage, signed URLs and paths.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { gatewaySettings, isReachable, runtimeSettings } from '@tenantry/contract'
import { readRegions } from '#control-plane/regions/region-config.ts'
import { regionStack } from '#control-plane/stacks/region-stack.ts'
import { stackFor } from '#control-plane/stacks/stack-for.ts'
import { readConfig as readGatewayConfig } from '#gateway/config.ts'
import { EgressShares } from '#gateway/egress/egress-shares.ts'
import { defaultLimits } from '#gateway/limits.ts'
import { readConfig as readRuntimeConfig } from '#tenant-runtime/config.ts'
import { tenantA, tenantB } from './support/proxy.ts'

const directory = await mkdtemp(join(tmpdir(), 'tenantry-egress-'))
t.teardown(() => rm(directory, { recursive: true }))
const file = async (name: string, text: string) => {
  await writeFile(join(directory, name), text)
  return join(directory, name)
}
const token = await file('token', 'x'.repeat(40))
const secretKey = 'the-secret-key-of-the-storage'

const docker = {
  host: 'unix:///var/run/docker.sock',
  network_range: '10.9.0.0/20',
  images: { postgres: 'p', runtime: 'r', gateway: 'g' },
  control_url: 'http://10.9.0.1:4400',
  gateway: { host_address: '198.51.100.7', port: 4401, postgres_port: 4403 },
}
const read = (changes: object) =>
  readRegions(
    JSON.stringify([
      {
        id: 'north',
        engine: 'docker',
        domain: 'a.example',
        gateway_url: 'https://a.example',
        docker: { ...docker, ...changes },
      },
    ]),
    Buffer.alloc(32, 3),
  )[0]

const storage = {
  backend: 's3',
  fallback: 'local',
  s3: {
    endpoint: 'https://s3.example.org',
    region: 'north',
    bucket: 'files',
    prefix: 'here/',
    path_style: false,
    access_key_id: 'key-1',
    secret_access_key_file: await file('s3-secret', `${secretKey}\n`),
  },
}
const all = {
  egress: { may_reach: ['10.1.0.0/16', 'fd12::/16'], forbidden: ['203.0.113.9'] },
  storage,
  signed_urls: { default_seconds: 60, max_seconds: 600 },
  max_path_bytes: 512,
  realtime_compression: true,
}

/** Returns the services of a region with this file, and those of a tenant with a database of its own. */
function servicesOf(changes: object) {
  const config = read(changes)
  if (config?.docker === undefined) throw new Error('There is no region.')
  const region = regionStack({
    region: config.id,
    installation: '01234567-89ab',
    domain: config.domain,
    internalToken: 'y'.repeat(32),
    superuserPassword: config.superuserPassword,
    s3SecretKey: config.s3SecretKey,
    hasHomes: false,
    images: { postgres: 'sha256:aa', runtime: 'sha256:bb', gateway: 'sha256:cc' },
    docker: config.docker,
  }).services
  const size = { memoryBytes: 2 ** 29, cpuMillis: 500, pids: 256 }
  const own = stackFor(
    {
      id: tenantA,
      isolation: 'database-per-tenant',
      running: true,
      hasHome: false,
      resources: { postgres: size, runtime: size },
      restarts: 0,
      images: { postgres: 'sha256:aa', runtime: 'sha256:bb' },
      subnet: '10.9.1.0/28',
    },
    { gateways: [{ container: 'g' }], internalToken: 'y'.repeat(32), docker: config.docker },
  ).services
  const named = (services: typeof region, name: string) => {
    const service = services.find((one) => one.name === name)
    if (service === undefined) throw new Error(`There is no ${name}.`)
    return service
  }
  return {
    shared: named(region, 'runtime-0'),
    gateway: named(region, 'gateway'),
    own: named(own, 'runtime'),
    region,
    all: [...region, ...own],
  }
}

t.test('The file of regions sets storage, signed URLs, paths and the egress proxy of the containers', async (t) => {
  const { shared, gateway, own } = servicesOf(all)
  const ofAll = {
    TENANTRY_EGRESS_PROXY: 'http://gateway:4404',
    TENANTRY_SIGNED_URL_SECONDS: '60',
    TENANTRY_MAX_SIGNED_URL_SECONDS: '600',
    TENANTRY_MAX_PATH_BYTES: '512',
    TENANTRY_REALTIME_COMPRESSION: '1',
  }
  t.match(shared.environment, {
    ...ofAll,
    TENANTRY_STORAGE_BACKEND: 's3',
    TENANTRY_STORAGE_FALLBACK: 'local',
    TENANTRY_S3_ENDPOINT: 'https://s3.example.org',
    TENANTRY_S3_REGION: 'north',
    TENANTRY_S3_BUCKET: 'files',
    TENANTRY_S3_PREFIX: 'here/',
    TENANTRY_S3_PATH_STYLE: '0',
    TENANTRY_S3_ACCESS_KEY_ID: 'key-1',
    TENANTRY_S3_SECRET_ACCESS_KEY_FILE: '/run/secrets/s3-secret-access-key',
  })
  t.equal(shared.secrets['s3-secret-access-key']?.reveal(), secretKey)
  t.match(own.environment, ofAll)
  t.same(
    Object.keys(own.environment).filter((name) => /S3|STORAGE/.test(name)),
    [],
    'the credentials open all files',
  )
  t.same(Object.keys(own.secrets), ['internal-token'])
  t.match(gateway.environment, {
    TENANTRY_EGRESS_PORT: '4404',
    TENANTRY_EGRESS_STORAGE: 'files.s3.example.org:443',
    TENANTRY_EGRESS_MAY_REACH: '10.1.0.0/16,fd12::/16',
    TENANTRY_EGRESS_FORBIDDEN: '198.51.100.7,203.0.113.9',
  })
  const services = servicesOf(all).all
  t.notOk(JSON.stringify(services).includes(secretKey), 'the key is in no text of a stack')
  for (const [service, settings] of [
    [shared, runtimeSettings],
    [own, runtimeSettings],
    [gateway, gatewaySettings],
  ] as const)
    for (const name of Object.keys(service.environment)) t.ok(name in settings, `${service.name}: ${name}`)

  const config = readRuntimeConfig({
    ...shared.environment,
    TENANTRY_INTERNAL_TOKEN_FILE: token,
    TENANTRY_S3_SECRET_ACCESS_KEY_FILE: storage.s3.secret_access_key_file,
  })
  t.match(config, {
    egress: { url: 'http://gateway:4404' },
    limits: { pathBytes: 512, signedSeconds: 60, maxSignedSeconds: 600 },
    storage: { backend: 's3', fallback: 'local', s3: { bucket: 'files', egress: { maxSockets: 120 } } },
  })
  for (const url of ['gateway:4404', 'https://gateway:4404', 'http://u:p@gateway:4404', 'http://gateway'])
    t.throws(
      () =>
        readRuntimeConfig({ ...shared.environment, TENANTRY_INTERNAL_TOKEN_FILE: token, TENANTRY_EGRESS_PROXY: url }),
      /^TENANTRY_EGRESS_PROXY is /,
      url,
    )
})

t.test('A region without these settings has the containers that it had before', async (t) => {
  for (const { environment } of servicesOf({}).all)
    t.same(
      Object.keys(environment).filter((name) => /EGRESS|S3|STORAGE|SIGNED|PATH_BYTES/.test(name)),
      [],
    )
})

t.test('Invalid settings of a region are rejected with their path', async (t) => {
  const at = (field: string) => new RegExp(`^TENANTRY_REGIONS_FILE/0/docker/${field}`)
  for (const [changes, field] of [
    [{ egress: { may_reach: ['10.0.0.0/33'] } }, 'egress/may_reach: Invalid network "10.0.0.0/33"'],
    [{ egress: { forbidden: ['host'] } }, 'egress/forbidden: Invalid network "host"'],
    [
      { egress: { forbidden: [] }, gateway: { container: 'g' } },
      'egress/forbidden: the gateway is a container of yours',
    ],
    [{ storage }, 'storage: the runtimes reach an S3 server only through the egress proxy'],
    [{ egress: {}, storage: { ...storage, fallback: 's3' } }, 'storage: "backend" and "fallback" must differ'],
    [
      { egress: {}, storage: { ...storage, s3: { ...storage.s3, secret_access_key_file: '/none' } } },
      'storage/s3/secret_access_key_file: the file cannot be read',
    ],
    [
      { egress: {}, storage: { ...storage, s3: { ...storage.s3, endpoint: 'https://s3.example.org/path' } } },
      'storage/s3/endpoint',
    ],
    [{ max_path_bytes: 2_000 }, 'max_path_bytes'],
    [{ signed_urls: { max_seconds: 0 } }, 'signed_urls/max_seconds'],
  ] as const)
    t.throws(() => read(changes), { message: at(field) }, field)
})

t.test("The gateway's settings never open its own networks or the tenants'", async (t) => {
  const readEgress = (changes: Record<string, string>) =>
    readGatewayConfig({
      TENANTRY_PORT: '4401',
      TENANTRY_INTERNAL_PORT: '4402',
      TENANTRY_CONTROL_URL: 'http://control:4400',
      TENANTRY_INTERNAL_TOKEN_FILE: token,
      TENANTRY_DATA: '/data',
      ...changes,
    }).egress
  t.equal(readEgress({ TENANTRY_EGRESS_MAY_REACH: '10.0.0.0/8' }), undefined, 'without a port there is no proxy')
  const egress = readEgress({
    TENANTRY_EGRESS_PORT: '4404',
    TENANTRY_EGRESS_STORAGE: '10.1.0.7:9000, s3.example.org:443',
    TENANTRY_EGRESS_MAY_REACH: '0.0.0.0/0,::/0',
    TENANTRY_EGRESS_FORBIDDEN: '203.0.113.9,2a00::9',
    TENANTRY_TENANT_RANGE: '10.201.0.0/16',
  })
  t.match(egress, {
    port: 4404,
    rules: {
      storage: [
        { hostname: '10.1.0.7', port: 9000 },
        { hostname: 's3.example.org', port: 443 },
      ],
    },
  })
  if (egress === undefined) return
  const { reachable, forbidden } = egress.rules
  const isAllowed = (address: string) =>
    isReachable(address, reachable) && !forbidden.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
  for (const address of [
    '127.0.0.1',
    '0.0.0.0',
    '169.254.169.254',
    '10.201.0.1',
    '10.201.255.255',
    '203.0.113.9',
    '::',
    '::1',
    'fe80::1',
    '2a00::9',
    '::ffff:127.0.0.1',
    '::ffff:10.201.0.1',
  ])
    t.notOk(isAllowed(address), address)
  for (const address of ['10.200.0.1', '8.8.8.8', 'fd00::1']) t.ok(isAllowed(address), address)
  for (const [name, value] of [
    ['TENANTRY_EGRESS_PORT', '0'],
    ['TENANTRY_EGRESS_STORAGE', 's3.example.org'],
    ['TENANTRY_EGRESS_MAY_REACH', '10.0.0.0/40'],
    ['TENANTRY_EGRESS_FORBIDDEN', 'host'],
  ] as const)
    t.throws(() => readEgress({ [name]: value }), new RegExp(name), name)
})

t.test('Tenants that are idle need no memory, and a busy one is not evicted with its rate', async (t) => {
  let now = 0
  const shares = new EgressShares({ ...defaultLimits, egressOpensBurst: 1, egressOpensPerSecond: 1 }, () => now)
  const idOf = (n: number) => `t_${String(n).padStart(20, '0')}`
  shares.ofTenant(tenantA)?.release()
  const held = shares.ofTenant(tenantB)
  for (let n = 0; n < 1_000; n++) shares.ofTenant(idOf(n))?.release()
  t.equal(shares.ofTenant(tenantA), undefined, 'its rate is used up')
  t.equal(shares.maxOfTenants, 1)
  now = 2_000
  for (let n = 0; n < 1_000; n++) shares.ofTenant(idOf(n + 1_000))?.release()
  t.equal(shares.open, 1)
  held?.release()
  held?.release()
  t.equal(shares.open, 0)
  t.ok(shares.ofTenant(tenantA))
})
