// The pure part of stacks: they are equal for equal input, and every relevant change shows in them.
import fc from 'fast-check'
import t from 'tap'
import type { DockerSettings } from '#control-plane/stacks/container-settings.ts'
import { seed } from '#test/support/effort.ts'
import { tenantToken } from '@tenantry/contract'
import { inspect } from 'node:util'
import { containerName, networkName, secretsVolumeName, volumeName } from '#control-plane/stacks/object-names.ts'
import {
  gatewayContainersOf,
  regionEndpoints,
  regionStack,
  type RegionStackInput,
} from '#control-plane/stacks/region-stack.ts'
import { SecretText } from '#control-plane/stacks/secret-text.ts'
import { specHash, type Service } from '#control-plane/stacks/stack.ts'
import { stackFor, type StackInput } from '#control-plane/stacks/stack-for.ts'
import {
  parseRange,
  regionAddress,
  regionSubnets,
  subnetCount,
  subnetNumber,
  tenantSubnet,
} from '#control-plane/stacks/subnets.ts'

const size = { memoryBytes: 2 ** 29, cpuMillis: 500, pids: 256 }
const tenant: StackInput = {
  id: 't_0123456789abcdef0123',
  isolation: 'database-per-tenant',
  running: true,
  hasHome: false,
  resources: { postgres: size, runtime: size },
  restarts: 0,
  isArchived: false,
  images: { postgres: 'sha256:aa', runtime: 'sha256:bb' },
  subnet: '10.1.1.0/28',
}
const surroundings = { gateways: [{ container: 'the-gateway' }], internalToken: 'x'.repeat(32) }
const services = (change: Partial<StackInput> = {}) => stackFor({ ...tenant, ...change }, surroundings).services
const service = (name: string, change: Partial<StackInput> = {}): Service => {
  const found = services(change).find((candidate) => candidate.name === name)
  if (found === undefined) throw new Error(`no ${name}`)
  return found
}

t.test('An archive changes only the Postgres of the tenant that has one', async (t) => {
  const settings = (change: Partial<StackInput>) =>
    service('postgres', change).command.filter((text) => text.startsWith('archive_'))
  t.same(settings({}), [], 'without an archive the container stays as it is')
  t.match(settings({ isArchived: true }), ['archive_mode=on', 'archive_timeout=30s', /^archive_command=/])
  t.equal(specHash(service('runtime')), specHash(service('runtime', { isArchived: true })))
})

t.test('A schema-per-tenant tenant has no stack of its own, and a cluster needs a region with clusters', async (t) => {
  t.match(stackFor({ ...tenant, isolation: 'schema-per-tenant' }, surroundings), {
    services: [],
    networks: [],
    volumes: [],
  })
  t.throws(() => stackFor({ ...tenant, isolation: 'cluster-per-tenant' }, surroundings), RangeError)
  t.throws(() => stackFor({ ...tenant, subnet: undefined }, surroundings), RangeError)
  t.throws(() => stackFor({ ...tenant, images: undefined }, surroundings), RangeError)
})

t.test(
  'Services that are processes have fixed addresses, no gateway on their network, and never two of one kind',
  (t) => {
    const input = { ...tenant, subnet: '127.64.1.16/28' }
    const processes = stackFor(input, { ...surroundings, areProcesses: true, gateways: [] })
    const containers = stackFor(input, surroundings)
    const addresses = (stack: typeof processes) => stack.services.map(({ networks }) => networks[0]?.address)
    t.same(addresses(processes), ['127.64.1.18', '127.64.1.19'])
    t.same(addresses(containers), [undefined, undefined])
    t.same(processes.networks[0]?.attachedContainers, [])
    t.same(
      processes.services.map(({ replace }) => replace),
      ['stop-first', 'stop-first'],
    )
    t.end()
  },
)

t.test(
  'A database-per-tenant tenant has an internal network, and volumes that must exist once they held data',
  async (t) => {
    const stack = stackFor(tenant, surroundings)
    t.same(stack.networks, [
      {
        name: 'net',
        subnet: '10.1.1.0/28',
        internal: true,
        hostAddress: false,
        attachedContainers: [{ container: 'the-gateway', alias: 'gateway' }],
      },
    ])
    t.same(
      stack.volumes.map(({ mustExist }) => mustExist),
      [false, false],
    )
    t.same(
      stackFor({ ...tenant, hasHome: true }, surroundings).volumes.map(({ mustExist }) => mustExist),
      [true, true],
    )
    t.equal(stackFor({ ...tenant, running: false }, surroundings).state, 'stopped')
    t.same(
      stack.services.map(({ name, replace }) => [name, replace]),
      [
        ['postgres', 'stop-first'],
        ['runtime', 'start-first'],
      ],
    )
    t.same(service('postgres').secrets, {}, 'Postgres has no secret')
    t.equal(
      service('runtime').secrets['internal-token']?.reveal(),
      tenantToken(surroundings.internalToken, tenant.id),
      "the runtime's token is its tenant's",
    )
    t.notOk(
      JSON.stringify(stack).includes(tenantToken(surroundings.internalToken, tenant.id)),
      'and is not in the stack as text',
    )
  },
)

t.test("While the internal token is replaced, a tenant's runtime has the tokens of all valid ones", async (t) => {
  const accepted = ['x'.repeat(32), 'y'.repeat(32)] as const
  const { services } = stackFor(tenant, { ...surroundings, internalToken: { sent: accepted[0], accepted } })
  t.equal(
    services.find(({ name }) => name === 'runtime')?.secrets['internal-token']?.reveal(),
    accepted.map((token) => tenantToken(token, tenant.id)).join('\n'),
  )
})

t.test('The hash is equal for equal services, and differs for what needs a new container', async (t) => {
  const runtime = service('runtime')
  t.equal(specHash(runtime), specHash(Object.fromEntries(Object.entries(runtime).reverse()) as unknown as Service))
  for (const [what, changed] of Object.entries({
    image: service('runtime', { images: { postgres: 'sha256:aa', runtime: 'sha256:cc' } }),
    restarts: service('runtime', { restarts: 1 }),
    secret: { ...runtime, secrets: { 'internal-token': new SecretText('another') } },
    network: { ...runtime, networks: [] },
    user: { ...runtime, user: '0:0' },
  }))
    t.not(specHash(changed), specHash(runtime), what)
  t.equal(
    specHash(service('runtime', { resources: { postgres: size, runtime: { ...size, memoryBytes: 2 ** 30 } } })),
    specHash(runtime),
    'limits change while the container runs',
  )
  t.not(
    specHash(service('postgres', { resources: { postgres: { ...size, memoryBytes: 2 ** 32 }, runtime: size } })),
    specHash(service('postgres')),
    "Postgres' buffers follow its memory",
  )
})

t.test('A secret is never shown by accident', async (t) => {
  const secret = new SecretText('the very secret')
  for (const text of [JSON.stringify({ secret }), inspect({ secret }, { depth: 9, showHidden: true }), inspect(secret)])
    t.notMatch(text, /very/)
  t.equal(new SecretText('a').fingerprint, new SecretText('a').fingerprint)
  t.not(new SecretText('a').fingerprint, new SecretText('b').fingerprint)
})

t.test('Names consist of IDs alone, and are never too long for an engine', async (t) => {
  t.equal(networkName(tenant.id, 'net'), 'tenantry-t_0123456789abcdef0123-net')
  t.equal(volumeName(tenant.id, 'data'), 'tenantry-t_0123456789abcdef0123-data')
  t.match(containerName(tenant.id, service('runtime')), /^tenantry-t_0123456789abcdef0123-runtime-[0-9a-f]{8}$/)
  t.match(secretsVolumeName(tenant.id, service('runtime')), /^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,62}[a-z]$/)
})

t.test('Subnets are in the range, and overlap neither each other nor those of the region', async (t) => {
  const bounds = (cidr: string) => {
    const [address = '', prefix] = cidr.split('/')
    const first = address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
    return { first, last: first + 2 ** (32 - Number(prefix)) - 1 }
  }
  fc.assert(
    fc.property(
      fc.integer({ min: 12, max: 23 }),
      fc.integer({ min: 0, max: 4095 }),
      fc.nat(),
      fc.nat(),
      (prefix, network, a, b) => {
        const first = 10 * 2 ** 24 + (network % 2 ** (prefix - 8)) * 2 ** (32 - prefix)
        const cidr = `${[24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.')}/${prefix}`
        const range = parseRange(cidr)
        const count = subnetCount(range)
        const whole = bounds(cidr)
        const own = [bounds(regionSubnets(range).net), bounds(regionSubnets(range).proxy)]
        const [one, two] = [bounds(tenantSubnet(range, a % count)), bounds(tenantSubnet(range, b % count))]
        const apart = (x: typeof whole, y: typeof whole) => x.last < y.first || y.last < x.first
        return (
          [one, two, ...own].every((part) => part.first >= whole.first && part.last <= whole.last) &&
          own.every((part) => apart(part, one)) &&
          apart(own[0] ?? whole, own[1] ?? whole) &&
          (a % count === b % count || apart(one, two))
        )
      },
    ),
    { seed },
  )
  t.equal(subnetCount(parseRange('10.201.0.0/16')), 4080)
  t.same(
    [tenantSubnet(parseRange('10.201.0.0/16'), 0), tenantSubnet(parseRange('10.201.0.0/16'), 4079)],
    ['10.201.1.0/28', '10.201.255.240/28'],
  )
  const range = parseRange('10.201.0.0/16')
  for (const number of [0, 1, 4079]) t.equal(subnetNumber(range, tenantSubnet(range, number)), number)
  for (const other of ['10.201.0.0/25', '10.202.0.0/28', '10.200.255.0/28', '', 'x'])
    t.equal(subnetNumber(range, other), undefined, other)
  for (const wrong of [
    '',
    '10.0.0.0',
    '10.0.0.0/24',
    '10.0.0.0/33',
    '10.0.0.1/16',
    '300.0.0.0/16',
    '10.0.0.0/16 ',
    '::/16',
    '10.0.256.0/23',
  ]) {
    t.throws(() => parseRange(wrong), RangeError, wrong)
  }
})

t.test('A region has its parts at fixed addresses, and its own gateway or an existing one', async (t) => {
  const input: RegionStackInput & { docker: DockerSettings } = {
    region: 'local',
    installation: '01234567-89ab',
    domain: 'example.org',
    internalToken: 'y'.repeat(32),
    superuserPassword: 'z'.repeat(32),
    hasHomes: false,
    images: { postgres: 'sha256:aa', runtime: 'sha256:bb', gateway: 'sha256:cc' },
    docker: {
      host: 'unix:///var/run/docker.sock',
      network_range: '10.9.0.0/20',
      images: { postgres: 'p', runtime: 'r', gateway: 'g' },
      control_url: 'http://10.9.0.1:4400',
      shared_runtimes: 3,
      gateway: { host_address: '127.0.0.1', port: 4401, postgres_port: 4403 },
    },
  }
  const stack = regionStack(input)
  t.same(
    stack.services.map(({ name }) => name),
    ['postgres', 'runtime-0', 'runtime-1', 'runtime-2', 'gateway'],
  )
  t.same(regionEndpoints(input.region, input.docker), {
    postgresHost: '10.9.0.10:5432',
    runtimes: [20, 21, 22].map((last) => ({ url: `http://10.9.0.${last}:24401` })),
    gateways: [{ url: 'http://10.9.0.11:4402' }],
  })
  for (const { environment } of stack.services.slice(1, 4))
    t.match(environment, {
      TENANTRY_REGION: input.region,
      TENANTRY_SIBLINGS: '2',
      TENANTRY_SIBLING_HOSTS: 'runtime-0:24401,runtime-1:24401,runtime-2:24401',
      TENANTRY_FAILOVER_SECONDS: undefined,
    })
  const alone = regionStack({ ...input, docker: { ...input.docker, shared_runtimes: 1 } })
  t.notOk('TENANTRY_SIBLING_HOSTS' in (alone.services[1]?.environment ?? {}), 'one runtime follows none')
  for (const { name, networks } of stack.services.slice(0, 4))
    t.equal(networks.length, 1, `${name} is not on the published network`)
  t.equal(regionAddress(parseRange('10.9.0.0/20'), 11), stack.services[4]?.networks[0]?.address)
  t.match(
    gatewayContainersOf(input.docker, stack)[0]?.container,
    /^tenantry-region-local-01234567-gateway-[0-9a-f]{8}$/,
  )
  const given: RegionStackInput = {
    ...input,
    docker: { ...input.docker, gateway: { container: 'given' }, control_container: 'plane' },
  }
  t.same(gatewayContainersOf(given.docker, regionStack(given)), [{ container: 'given' }])
  t.match(regionStack(given), {
    services: [{ name: 'postgres' }, { name: /^runtime/ }, { name: /^runtime/ }, { name: /^runtime/ }],
    networks: [
      {
        attachedContainers: [
          { container: 'plane', address: '10.9.0.5' },
          { container: 'given', alias: 'gateway', address: '10.9.0.11' },
        ],
      },
    ],
  })
  t.equal(regionStack(given).networks.length, 1, 'nothing is published by the region')
  const { host_address, port, postgres_port } = { host_address: '10.99.0.2', port: 4401, postgres_port: 4403 }
  const environmentOf = (settings: object) => {
    const gateway = { host_address, port, postgres_port, ...settings }
    return regionStack({ ...input, docker: { ...input.docker, gateway } }).services.at(-1)?.environment ?? {}
  }
  t.equal(environmentOf({ require_sql_tls: true })['TENANTRY_POSTGRES_REQUIRE_TLS'], '1')
  for (const settings of [{}, { require_sql_tls: false }])
    t.notOk('TENANTRY_POSTGRES_REQUIRE_TLS' in environmentOf(settings), 'the default')
  const limitsOf = (proxies: object) => {
    const environment = environmentOf(proxies)
    return Object.fromEntries(Object.entries(environment).filter(([name]) => /_PER_ADDRESS$|_PROXIES$/.test(name)))
  }
  t.same(
    limitsOf({ trusted_proxies: ['10.99.0.3', '10.99.0.4'] }),
    { TENANTRY_TRUSTED_PROXIES: '10.99.0.3,10.99.0.4' },
    'behind named proxies, each client address has its default limits',
  )
  t.same(limitsOf({}), {
    TENANTRY_CONNECTIONS_PER_ADDRESS: '5000',
    TENANTRY_REQUESTS_PER_ADDRESS: '3600',
    TENANTRY_REJECTIONS_PER_ADDRESS: '1000000/1000000',
  })
  t.throws(() => regionStack({ ...input, images: { ...input.images, gateway: undefined } }), RangeError)
})
