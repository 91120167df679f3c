// The stack of a cluster, and the etcd of its region.
import { X509Certificate } from 'node:crypto'
import t from 'tap'
import { issuePeerCertificate, newAuthority } from '#control-plane/certificates/authority.ts'
import { clusterMembers } from '#control-plane/stacks/cluster-services.ts'
import { etcdHosts, type EtcdCredentials } from '#control-plane/stacks/etcd-services.ts'
import { etcdContainersOf, regionStack, type RegionStackInput } from '#control-plane/stacks/region-stack.ts'
import { ofModel } from '#control-plane/stacks/of-model.ts'
import {
  databaseVolumes,
  runtimeAliases,
  stackFor,
  type StackInput,
  volumesOfModel,
} from '#control-plane/stacks/stack-for.ts'
import { specHash, type Service, type Stack } from '#control-plane/stacks/stack.ts'
import { parseRange } from '#control-plane/stacks/subnets.ts'
import { withServices } from '#control-plane/stacks/with-services.ts'

const megabyte = 2 ** 20
const etcd: EtcdCredentials = {
  authority: 'the authority',
  certificate: 'the certificate',
  privateKey: 'the key',
  seed: 's'.repeat(43),
}
const size = { memoryBytes: 512 * megabyte, cpuMillis: 500, pids: 256 }
const tenant: StackInput = {
  id: 't_0123456789abcdef0123',
  isolation: 'cluster-per-tenant',
  running: true,
  hasHome: false,
  resources: { postgres: size, runtime: size },
  restarts: 0,
  images: { postgres: 'sha256:aa', runtime: 'sha256:bb' },
  subnet: '10.1.1.0/28',
}
const cluster = { etcd, etcdContainers: ['e1', 'e2', 'e3'].map((container) => ({ container })) }
const environment = { gateways: [{ container: 'the-gateway' }], internalToken: 'x'.repeat(32), cluster }
const clusterOf = (change: Partial<StackInput> = {}): Stack => stackFor({ ...tenant, ...change }, environment)
const serviceOf = (stack: Stack, name: string): Service => {
  const found = stack.services.find((service) => service.name === name)
  if (found === undefined) throw new Error(`no ${name}`)
  return found
}
const patroniOf = (stack: Stack, name: string) =>
  JSON.parse(serviceOf(stack, name).secrets['patroni.yml']?.reveal() ?? '') as {
    scope: string
    namespace: string
    name: string
    etcd3: { username: string; password: string; hosts: string[]; protocol: string }
    restapi: { authentication: { password: string } }
    bootstrap: {
      dcs: Record<string, unknown> & { ttl: number; loop_wait: number; retry_timeout: number }
      initdb: unknown[]
    }
    postgresql: { authentication: Record<string, { username: string; password?: string }>; pg_hba: string[] }
  }

const dockerWithout: RegionStackInput['docker'] = {
  host: 'unix:///var/run/docker.sock',
  network_range: '10.9.0.0/20',
  images: { postgres: 'p', runtime: 'r' },
  control_url: 'http://10.9.0.1:4400',
  gateway: { container: 'given' },
}
const region: RegionStackInput = {
  region: 'local',
  installation: '01234567-89ab',
  domain: 'example.org',
  internalToken: 'y'.repeat(32),
  superuserPassword: 'z'.repeat(32),
  hasHomes: true,
  images: { postgres: 'sha256:aa', runtime: 'sha256:bb', gateway: undefined, etcd: 'sha256:ee' },
  docker: { ...dockerWithout, clusters: { member_image: 'm', etcd_image: 'e' } },
  etcd,
}

t.test(
  'A cluster has three members with a volume each, two routers, and two runtimes that share the files',
  async (t) => {
    const stack = clusterOf()
    t.same(
      stack.services.map(({ name, volumes }) => [name, Object.keys(volumes)]),
      [
        ['postgres-1', ['data-1']],
        ['postgres-2', ['data-2']],
        ['postgres-3', ['data-3']],
        ['router-1', []],
        ['router-2', []],
        ['runtime-1', ['files']],
        ['runtime-2', ['files']],
      ],
    )
    t.same(clusterMembers, ['postgres-1', 'postgres-2', 'postgres-3'])
    t.same(stack.networks, [
      {
        name: 'net',
        subnet: '10.1.1.0/28',
        internal: true,
        hostAddress: false,
        attachedContainers: [
          { container: 'the-gateway', alias: 'gateway' },
          { container: 'e1', alias: 'etcd-1' },
          { container: 'e2', alias: 'etcd-2' },
          { container: 'e3', alias: 'etcd-3' },
        ],
      },
    ])
    const aliases = (name: string) => serviceOf(stack, name).networks.flatMap((network) => network.aliases)
    t.same([aliases('router-1'), aliases('router-2')], [[`${tenant.id}-primary`], [`${tenant.id}-primary`]])
    t.same([...aliases('runtime-1'), ...aliases('runtime-2')], runtimeAliases(tenant.id, 'cluster-per-tenant'))
    for (const name of ['runtime-1', 'runtime-2'])
      t.match(serviceOf(stack, name).environment, {
        TENANTRY_SIBLINGS: '1',
        TENANTRY_SIBLING_HOSTS: `${tenant.id}-runtime-1:24401,${tenant.id}-runtime-2:24401`,
        TENANTRY_MAX_CONNECTIONS: '20',
        TENANTRY_FAILOVER_SECONDS: '25',
      })
    t.equal(clusterOf({ running: false }).state, 'stopped')
  },
)

t.test("A member's volume may be lost, because another member has the data; the files may not", async (t) => {
  t.same(
    clusterOf({ hasHome: true }).volumes.map(({ name, mustExist }) => [name, mustExist]),
    [
      ['data-1', false],
      ['data-2', false],
      ['data-3', false],
      ['files', true],
    ],
  )
})

t.test('All containers of a cluster and its network fit into a subnet while the runtimes are replaced', async (t) => {
  const { services, networks } = clusterOf()
  const replaced = services.filter(({ replace }) => replace === 'start-first').length
  const attached = networks[0]?.attachedContainers.length ?? 0
  // A /28 has 16 addresses: of the network, of all hosts, and of the bridge.
  t.ok(services.length + replaced + attached <= 13, `${services.length} + ${replaced} + ${attached}`)
})

t.test('A single Postgres and a cluster of one tenant can run side by side', async (t) => {
  const aliasesOf = ({ services }: Stack) =>
    services.flatMap(({ networks }) => networks.flatMap(({ aliases }) => aliases))
  const single = clusterOf({ isolation: 'database-per-tenant', hasHome: true })
  for (const [from, to] of [
    [single, clusterOf()],
    [clusterOf({ hasHome: true }), clusterOf({ isolation: 'database-per-tenant' })],
  ] as const) {
    const { services, networks, volumes } = withServices(from, to)
    t.equal(services.length, from.services.length + to.services.length)
    for (const service of [...from.services, ...to.services])
      t.equal(specHash(serviceOf({ ...from, services }, service.name)), specHash(service), 'no container is replaced')
    t.match(
      volumes.filter(({ name }) => name === 'files'),
      [{ mustExist: true }],
      'the files are those of both',
    )
    t.equal(volumes.length, 5)
    t.same(
      networks.map(({ subnet, attachedContainers }) => [subnet, attachedContainers.length]),
      [['10.1.1.0/28', 4]],
    )
    const aliases = aliasesOf(to)
    t.same(
      aliasesOf(from).filter((alias) => aliases.includes(alias)),
      [],
      'no name leads to both',
    )
    t.ok(services.length + 4 <= 13, 'all addresses are in the subnet')
  }
  t.same(databaseVolumes('database-per-tenant'), ['data'])
  t.same(databaseVolumes('cluster-per-tenant'), ['data-1', 'data-2', 'data-3'])
  t.same(volumesOfModel('database-per-tenant', false), ['data'], 'the files are those of the cluster, too')
  t.same(volumesOfModel('database-per-tenant', true), ['data', 'files'])
  t.same(volumesOfModel('cluster-per-tenant', true), ['data-1', 'data-2', 'data-3', 'runtime-1', 'runtime-2'])
  const placement = { postgres: 'a', runtime: 'a', 'postgres-1': 'b', 'router-2': 'c' }
  t.same(ofModel(placement, 'database-per-tenant'), { postgres: 'a', runtime: 'a' })
  t.same(ofModel(placement, 'cluster-per-tenant'), { 'postgres-1': 'b', 'router-2': 'c' })
  t.same(ofModel(placement, 'schema-per-tenant'), {})
})

t.test('Patroni acknowledges no commit that one member alone has, and its times keep its own rules', async (t) => {
  const { bootstrap } = patroniOf(clusterOf(), 'postgres-1')
  t.match(bootstrap.dcs, {
    synchronous_mode: 'quorum',
    synchronous_mode_strict: true,
    failsafe_mode: true,
    primary_start_timeout: 0,
    postgresql: { use_pg_rewind: true, use_slots: true, parameters: { wal_level: 'logical' } },
    ignore_slots: [{ type: 'logical', plugin: 'pgoutput' }],
  })
  const { ttl, loop_wait: loop, retry_timeout: retry } = bootstrap.dcs
  t.ok(ttl >= 20 && loop >= 1 && retry >= 3 && loop + 2 * retry <= ttl)
  t.same(bootstrap.initdb, [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums'])
})

t.test("A member may use its own tenant's keys only, and its passwords are its tenant's", async (t) => {
  const other = 't_ffffffffffffffffffff'
  const [one, two] = [patroniOf(clusterOf(), 'postgres-1'), patroniOf(clusterOf({ id: other }), 'postgres-1')]
  t.match(one, { scope: tenant.id, namespace: '/tenantry/', name: 'postgres-1' })
  t.match(one.etcd3, {
    username: tenant.id,
    protocol: 'https',
    hosts: ['etcd-1:2379', 'etcd-2:2379', 'etcd-3:2379'],
  })
  const passwords = ({ etcd3, restapi, postgresql }: typeof one) => [
    etcd3.password,
    restapi.authentication.password,
    postgresql.authentication['replication']?.password,
    postgresql.authentication['rewind']?.password,
  ]
  const all = [...passwords(one), ...passwords(two)]
  t.equal(new Set(all).size, 8, 'no password occurs twice')
  t.ok(all.every((password) => password !== undefined && password.length === 43))
  t.same(passwords(one), passwords(patroniOf(clusterOf(), 'postgres-3')), 'members of one cluster have the same')
  t.notOk(
    all.some((password) => JSON.stringify(clusterOf()).includes(String(password))),
    'and the stack does not show them',
  )
  t.equal(one.postgresql.authentication['superuser']?.password, undefined, 'the superuser has no password')
  t.equal(
    one.postgresql.pg_hba.findIndex((rule) => rule === 'host all postgres,replicator,rewind all reject'),
    one.postgresql.pg_hba.length - 3,
    'tenants cannot log in as a role of the cluster',
  )
})

t.test('A change of sizes replaces no container of a cluster', async (t) => {
  const larger = clusterOf({ resources: { postgres: { ...size, memoryBytes: 2 ** 31 }, runtime: size } })
  t.same(larger.services.map(specHash), clusterOf().services.map(specHash))
  t.equal(serviceOf(larger, 'postgres-1').resources.memoryBytes, 2 ** 31 + 128 * megabyte)
})

t.test('A region without clusters has no etcd, and a cluster cannot be made there', async (t) => {
  t.throws(() => stackFor(tenant, { ...environment, cluster: undefined }), /has no clusters/)
  const { services, volumes } = regionStack({ ...region, docker: dockerWithout })
  t.notOk(services.some(({ name }) => name.startsWith('etcd')))
  t.notOk(volumes.some(({ name }) => name.startsWith('etcd')))
  t.same(etcdContainersOf(regionStack({ ...region, docker: dockerWithout })), [])
  t.throws(() => regionStack({ ...region, etcd: undefined }), RangeError)
})

t.test(
  "A region's etcd has three members, which accept each other by certificate and clients by password",
  async (t) => {
    const stack = regionStack(region)
    const members = stack.services.filter(({ name }) => name.startsWith('etcd'))
    t.same(
      members.map(({ name, networks }) => [name, networks[0]?.address]),
      [
        ['etcd-1', '10.9.0.12'],
        ['etcd-2', '10.9.0.13'],
        ['etcd-3', '10.9.0.14'],
      ],
    )
    for (const { name, environment: settings, isAttached, published } of members) {
      t.equal(isAttached, true)
      t.same(published, [])
      t.match(settings, {
        ETCD_NAME: name,
        ETCD_PEER_CLIENT_CERT_AUTH: 'true',
        ETCD_AUTO_COMPACTION_MODE: 'periodic',
        ETCD_INITIAL_CLUSTER:
          'etcd-1=https://10.9.0.12:2380,etcd-2=https://10.9.0.13:2380,etcd-3=https://10.9.0.14:2380',
      })
      t.notOk(settings['ETCD_LISTEN_PEER_URLS']?.includes('0.0.0.0'), "tenants' networks do not reach the peers' port")
    }
    const memory = members.reduce((sum, { resources }) => sum + resources.memoryBytes, 0)
    t.ok(memory <= 600 * megabyte)
    t.match(
      etcdContainersOf(stack).map(({ container }) => container),
      [/-etcd-1-[0-9a-f]{8}$/, /-etcd-2-[0-9a-f]{8}$/, /-etcd-3-[0-9a-f]{8}$/],
    )
    const lasting = (hasClusters: boolean) =>
      regionStack({ ...region, hasClusters }).volumes.flatMap(({ name, mustExist }) =>
        name.startsWith('etcd') ? [mustExist] : [],
      )
    t.same(
      [lasting(false), lasting(true)],
      [
        [false, false, false],
        [true, true, true],
      ],
    )
  },
)

t.test('The certificate of etcd is valid for its members, as server and as client', async (t) => {
  const authority = newAuthority('00000000-0000-4000-8000-000000000001', new Date())
  const hosts = etcdHosts(parseRange('10.9.0.0/20'))
  const { certificate, privateKey } = issuePeerCertificate(authority, 'Tenantry etcd', hosts, new Date())
  const read = new X509Certificate(certificate)
  t.ok(read.verify(new X509Certificate(authority.certificate).publicKey))
  t.same(read.keyUsage, ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'])
  for (const name of ['etcd-1', 'etcd-2', 'etcd-3']) t.equal(read.checkHost(name), name)
  for (const address of ['10.9.0.12', '10.9.0.14', '127.0.0.1']) t.equal(read.checkIP(address), address)
  t.equal(read.checkHost('etcd-4'), undefined)
  t.match(privateKey, /^-----BEGIN PRIVATE KEY-----/)
})
