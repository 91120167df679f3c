// A region on several hosts, from its configuration to its stack: what runs on which host, and what is rejected.
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { isolationsOf } from '#control-plane/engines/engine.ts'
import { readRegions } from '#control-plane/regions/region-config.ts'
import { chooseIsolation } from '#control-plane/tenants/choose-isolation.ts'
import { gatewayContainersOf, regionStack, type RegionStackInput } from '#control-plane/stacks/region-stack.ts'
import { stackFor } from '#control-plane/stacks/stack-for.ts'
import { placed, type Placement } from '#control-plane/stacks/placed.ts'
import { clusterInput, surroundings } from '../engines/several-hosts.ts'

const secretFile = join(await mkdtemp(join(tmpdir(), 'tenantry-hosts-')), 'secret')
await writeFile(secretFile, 'the-secret-key')
const { docker } = surroundings
const swarm = {
  ...docker,
  storage: { ...docker.storage, s3: { ...docker.storage.s3, secret_access_key_file: secretFile } },
}
const read = (changes: object = {}) => {
  const settings = { ...swarm, ...changes }
  const region = {
    id: 'north',
    engine: 'swarm',
    domain: 'north.test',
    gateway_url: 'https://north.test',
    swarm: settings,
  }
  const [config] = readRegions(JSON.stringify([region]), Buffer.alloc(32))
  if (config === undefined) throw new Error('no region')
  return config
}
const input: RegionStackInput = {
  region: 'north',
  installation: '01234567-89ab',
  domain: 'north.test',
  docker,
  images: {
    postgres: 'sha256:aa',
    runtime: 'sha256:bb',
    gateway: 'sha256:cc',
    etcd: 'sha256:dd',
    clusterMember: 'sha256:ee',
  },
  internalToken: 'x'.repeat(32),
  superuserPassword: 'z'.repeat(32),
  s3SecretKey: 'the-secret-key',
  hasHomes: true,
  etcd: surroundings.cluster.etcd,
}

t.test('Each host has a gateway, and the members of etcd and of the shared cluster are apart', (t) => {
  const stack = regionStack(input)
  const hosts = Object.fromEntries(stack.services.map(({ name, host }) => [name, host]))
  t.same(hosts, {
    'postgres-1': 'a',
    'postgres-2': 'b',
    'postgres-3': 'c',
    'router-1': 'a',
    'router-2': 'b',
    'runtime-0': 'a',
    'runtime-1': 'b',
    'runtime-2': 'c',
    'etcd-1': 'a',
    'etcd-2': 'b',
    'etcd-3': 'c',
    'gateway-a': 'a',
    'gateway-b': 'b',
    'gateway-c': 'c',
  })
  const addresses = stack.services.flatMap(({ networks }) => networks.flatMap(({ address }) => address ?? []))
  t.equal(new Set(addresses).size, 9, 'each but those of the cluster has an address of its own')
  t.ok(
    addresses.every((address) => Number(address.split('.')[3]) < 64),
    'outside of what the engine assigns itself',
  )
  t.same(stack.networks[0]?.assigned, '10.1.0.64/26')
  t.same(
    stack.volumes.map(({ name, host, mustExist }) => [name, host, mustExist]).slice(0, 9),
    [
      ['data-1', 'a', false],
      ['data-2', 'b', false],
      ['data-3', 'c', false],
      ['files-0', 'a', false],
      ['files-1', 'b', false],
      ['files-2', 'c', false],
      ['etcd-1', 'a', true],
      ['etcd-2', 'b', true],
      ['etcd-3', 'c', true],
    ],
    'a member copies its data from another one, if etcd has the name of the first',
  )
  t.same(
    gatewayContainersOf(input.docker, stack).map(({ host }) => host),
    ['a', 'b', 'c'],
  )
  t.end()
})

t.test(
  'The shared cluster has the settings of a shared server, and lets the control plane connect as superuser',
  (t) => {
    const { services } = regionStack(input)
    const members = services.filter(({ name }) => name.startsWith('postgres-'))
    for (const { name, host, secrets, networks } of members) {
      const text = secrets['patroni.yml']?.reveal() ?? ''
      t.match(JSON.parse(text), {
        scope: 'region-north-01234567',
        name: `${name}-${host ?? ''}`,
        etcd3: { username: 'region-north-01234567' },
        bootstrap: {
          dcs: {
            synchronous_mode: 'quorum',
            postgresql: {
              parameters: { max_connections: 200, shared_buffers: '384MB', max_slot_wal_keep_size: '8GB' },
            },
          },
        },
        postgresql: { authentication: { superuser: { password: input.superuserPassword } } },
      })
      t.match(text, 'host all all all scram-sha-256')
      t.notMatch(text, 'host all postgres,replicator')
      t.equal(networks[0]?.address, undefined, 'members and routers are found by their names')
    }
    const own = stackFor({ ...clusterInput, placement: {} }, surroundings).services.find(
      ({ name }) => name === 'postgres-1',
    )
    t.match(
      own?.secrets['patroni.yml']?.reveal(),
      'host all postgres,replicator,rewind all reject',
      "not into a tenant's",
    )
    const routers = services.filter(({ name }) => name.startsWith('router-'))
    t.same(
      routers.map(({ networks }) => networks[0]?.aliases),
      [['shared-postgres-north'], ['shared-postgres-north']],
    )
    for (const { environment } of services.filter(({ name }) => name.startsWith('runtime-')))
      t.equal(environment['TENANTRY_FAILOVER_SECONDS'], '25', 'requests wait for its next primary')
    t.end()
  },
)

t.test('All networks are encrypted if the operator has set it, and else none', (t) => {
  const encryption = (encrypts: boolean | undefined) => {
    const settings = {
      ...docker,
      proxy_containers: [{ host: 'a', container: 'proxy' }],
      ...(encrypts === undefined ? {} : { encrypted_networks: encrypts }),
    }
    const stacks = [
      regionStack({ ...input, docker: settings }),
      stackFor(clusterInput, { ...surroundings, docker: settings }),
      stackFor({ ...clusterInput, isolation: 'database-per-tenant' }, { ...surroundings, docker: settings }),
    ]
    return stacks.flatMap(({ networks }) => networks.map(({ isEncrypted }) => isEncrypted))
  }
  t.same(encryption(true), [true, true, true, true])
  for (const setting of [false, undefined]) t.same(encryption(setting), Array(4).fill(undefined))
  t.match(read({ encrypted_networks: true }).docker, { encrypted_networks: true })
  t.throws(() => read({ encrypted_networks: 'yes' }), /swarm\/encrypted_networks/)
  t.end()
})

t.test('Proxies in front of the gateways are on their public network, and the gateways trust them', (t) => {
  const proxies = ['a', 'c'].map((host) => ({ host, container: 'caddy' }))
  const withProxies = (gateway: object = {}) =>
    regionStack({
      ...input,
      docker: { ...docker, proxy_containers: proxies, gateway: { ...docker.gateway, ...gateway } },
    })
  const { networks, services } = withProxies()
  t.match(
    networks.find(({ name }) => name === 'door'),
    {
      subnet: '10.1.0.128/25',
      assigned: '10.1.0.192/26',
      attachedContainers: [
        { container: 'caddy', host: 'a', alias: 'proxy', address: '10.1.0.140' },
        { container: 'caddy', host: 'c', alias: 'proxy', address: '10.1.0.141' },
      ],
    },
  )
  const gateways = services.filter(({ name }) => name.startsWith('gateway-'))
  for (const { networks: attachments, environment } of gateways) {
    t.same(attachments[1], { network: 'door', aliases: ['proxied-gateway'] })
    t.equal(environment['TENANTRY_TRUSTED_PROXIES'], '10.1.0.140,10.1.0.141')
  }
  const [gateway] = withProxies({ trusted_proxies: ['10.99.0.9'] }).services.filter(({ name }) => name === 'gateway-a')
  t.equal(gateway?.environment['TENANTRY_TRUSTED_PROXIES'], '10.1.0.140,10.1.0.141,10.99.0.9')
  t.equal(regionStack(input).networks.find(({ name }) => name === 'door')?.assigned, undefined, 'without proxies')
  t.throws(
    () => read({ proxy_containers: [{ host: 'x', container: 'caddy' }] }),
    /swarm\/proxy_containers: there is no host "x"/,
  )
  t.end()
})

t.test('The configuration has the addresses of all gateways and runtimes, with their hosts', (t) => {
  const config = read()
  t.equal(config.gateway_internal_urls.length, 3)
  t.same(
    config.gateway_internal_urls.map((url) => config.hostByUrl?.get(url)),
    ['a', 'b', 'c'],
  )
  t.same(
    config.runtime_urls.map((url) => config.hostByUrl?.get(url)),
    ['a', 'b', 'c'],
  )
  t.equal(config.database_host, 'north.test:5432')
  t.equal(new URL(config.postgres_url).host, 'shared-postgres-north:5432', 'the name of the routers')
  t.end()
})

t.test('A configuration that names no or unknown hosts is rejected with its position', (t) => {
  const [one] = docker.hosts
  t.throws(() => read({ hosts: [] }), /^TENANTRY_REGIONS_FILE\/0\/swarm\/hosts/)
  t.throws(() => read({ hosts: [one, one] }), /\/swarm\/hosts: two hosts have the same ID/)
  t.throws(
    () => read({ control_containers: [{ host: 'z', container: 'c' }] }),
    /control_containers: there is no host "z"/,
  )
  t.throws(() => read({ network_range: '10.1.0.0/24' }), /\/swarm\/network_range: .* too small/)
  t.throws(() => read({ egress: undefined }), /\/swarm\/storage: .*egress/)
  t.throws(() => read({ clusters: undefined }), /^TENANTRY_REGIONS_FILE\/0\/swarm/)
  t.throws(() => read({ host: 'unix:///x' }), /^TENANTRY_REGIONS_FILE\/0\/swarm/)
  t.end()
})

t.test('Without S3, only tenants with a single database are possible, and the rejection states why', (t) => {
  t.same(isolationsOf(read()), ['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'])
  const without = read({ storage: undefined })
  t.same(isolationsOf(without), ['database-per-tenant'])
  for (const isolation of ['schema-per-tenant', 'cluster-per-tenant'] as const)
    t.throws(() => chooseIsolation(isolation, 'cluster-per-tenant', without), {
      code: 'UNSUPPORTED_ISOLATION',
      message:
        /"swarm".*Allowed: database-per-tenant\. Others need "storage": runtimes on several hosts have their files in S3/,
    })
  t.end()
})

t.test("A cluster's runtimes have no credentials of the bucket, and no volume in common", (t) => {
  const { services, volumes } = stackFor(clusterInput, surroundings)
  const runtimes = services.filter(({ name }) => name.startsWith('runtime-'))
  t.equal(runtimes.length, 2)
  for (const { environment, secrets, volumes: own, name } of runtimes) {
    t.match(environment, {
      TENANTRY_STORAGE_BACKEND: 's3',
      TENANTRY_S3_ENDPOINT: 'http://gateway:4405',
      TENANTRY_S3_ACCESS_KEY_ID: clusterInput.id,
      TENANTRY_S3_BUCKET: 'files',
    })
    t.notMatch(JSON.stringify(environment), 'the-key')
    t.match(secrets['s3-secret-access-key']?.reveal(), new RegExp(`^${clusterInput.id}\\.`), "the tenant's token")
    t.same(Object.keys(own), [name])
  }
  const gateway = regionStack(input).services.find(({ name }) => name === 'gateway-a')
  t.match(gateway?.environment, { TENANTRY_STORAGE_RELAY_PORT: '4405', TENANTRY_S3_ENDPOINT: 'https://s3.example.org' })
  t.equal(gateway?.secrets['s3-secret-access-key']?.reveal(), 'the-secret-key')
  t.ok(
    volumes.every(({ mustExist }) => !mustExist),
    'each volume can be replaced on another host',
  )
  t.end()
})

t.test('A stack is put on hosts with all its volumes, or not at all', (t) => {
  const stack = stackFor({ ...clusterInput, isolation: 'database-per-tenant' }, surroundings)
  const on = placed(stack, { postgres: 'b', runtime: 'b' })
  t.ok([...on.services, ...on.volumes].every(({ host }) => host === 'b'))
  t.throws(() => placed(stack, { postgres: 'b' }), RangeError)
  const aliases = (placement: Placement) =>
    stackFor({ ...clusterInput, isolation: 'database-per-tenant', placement }, surroundings).services.map(
      ({ networks }) => networks[0]?.aliases,
    )
  const { id } = clusterInput
  t.same(
    aliases({ postgres: 'b', runtime: 'b' }),
    [[`${id}-postgres-b`], [`${id}-runtime-b`]],
    'those of a former host differ',
  )
  t.end()
})
