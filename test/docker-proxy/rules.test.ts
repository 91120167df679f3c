// What the door to the Docker Engine lets through: the calls of our own client, and nothing that leads out of a container.
import t from 'tap'
import type { ContainerSpec } from '#control-plane/engines/container-host.ts'
import { containerBody } from '#control-plane/engines/docker-container-body.ts'
import { checkClaim, type Claim } from '#docker-proxy/claims.ts'
import { readCall } from '#docker-proxy/calls.ts'
import type { DoorRules } from '#docker-proxy/door-rules.ts'
import { parseRange } from '#control-plane/stacks/subnets.ts'

/** As the door's refusals are thrown. */
const refused = { name: 'Refused' }

const installation = '6c1f0b7e-2f0a-4a53-9b5a-2f6f6f1f8f11'
const stack = 't_0123456789abcdef0123'
const region = 'region-local'
const rules: DoorRules = {
  installation,
  guests: ['tenantry-gateway', 'tenantry-control-plane'],
  images: ['tenantry/postgres', 'tenantry/tenant-runtime', 'tenantry/gateway'],
  networkRange: parseRange('10.201.0.0/16'),
  published: ['127.0.0.1:4401'],
}

const spec: ContainerSpec = {
  name: `tenantry-${stack}-runtime-0123abcd`,
  labels: { installation, stack, service: 'runtime', spec: '0123abcd' },
  image: `sha256:${'ab'.repeat(32)}`,
  command: ['--flag', 'a=b'],
  environment: { MODE: 'production', EMPTY: '', SUM: 'a=b' },
  user: '10001:10001',
  volumes: [
    { volume: `tenantry-${stack}-files`, path: '/var/lib/tenantry', readOnly: false },
    { volume: `tenantry-${stack}-runtime-0123abcd-secrets`, path: '/run/secrets', readOnly: true },
  ],
  scratch: { '/tmp': 'size=64m,mode=1777', '/run/postgresql': 'size=1m,mode=0700,uid=10002,gid=10002' },
  networks: [{ network: `tenantry-${stack}-net`, aliases: [`${stack}-runtime`] }],
  published: [],
  health: {
    command: ['/usr/local/bin/is-live', '24401'],
    intervalSeconds: 10,
    timeoutSeconds: 5,
    retries: 3,
    startSeconds: 20,
  },
  resources: { memoryBytes: 256 * 2 ** 20, cpuMillis: 1_000, pids: 256 },
  stopSeconds: 15,
}

const gateway: ContainerSpec = {
  ...spec,
  name: `tenantry-${region}-gateway-0123abcd`,
  labels: { installation, stack: region, service: 'gateway', spec: '0123abcd' },
  volumes: [{ volume: `tenantry-${region}-gateway`, path: '/var/lib/tenantry', readOnly: false }],
  networks: [{ network: `tenantry-${region}-net`, aliases: ['gateway'], address: '10.201.0.11' }],
  published: [{ containerPort: 4401, hostAddress: '127.0.0.1', hostPort: 4401 }],
}

const helper: ContainerSpec = {
  ...spec,
  name: `tenantry-${stack}-runtime-0123abcd-secrets-files`,
  labels: { installation, stack, service: 'runtime' },
  command: ['never-started'],
  environment: {},
  user: '65534:65534',
  volumes: [{ volume: `tenantry-${stack}-runtime-0123abcd-secrets`, path: '/tenantry/files', readOnly: false }],
  scratch: {},
  networks: [],
  resources: { memoryBytes: 16 * 2 ** 20, cpuMillis: 100, pids: 1 },
}

type Json = Record<string, unknown>

function json(value: unknown): Json {
  return JSON.parse(JSON.stringify(value)) as Json
}

/** A copy with the value at a path of dots replaced. */
function changed(body: Json, path: string, value: unknown): Json {
  const copy = structuredClone(body)
  const keys = path.split('.')
  const last = keys.pop() ?? ''
  let at = copy
  for (const key of keys) at = at[key] as Json
  at[last] = value
  return copy
}

function helperBody(of: ContainerSpec): Json {
  const body = json(containerBody(of))
  const host = body['HostConfig'] as Json
  const mounts = (host['Mounts'] as Json[]).map((mount) => ({ ...mount, VolumeOptions: { NoCopy: true } }))
  return { ...body, HostConfig: { ...host, ReadonlyRootfs: false, Mounts: mounts } }
}

/** What goes on for this call. @throws Refused */
function passed(
  method: string,
  path: string,
  body?: unknown,
  own: DoorRules = rules,
): { body: object | undefined; claims: Claim[] } {
  const call = readCall(method, path === '/_ping' || path === '/version' ? path : `/v1.41${path}`, own)
  const subject = call.subject === undefined ? [] : [call.subject]
  if (typeof call.body === 'string') return { body: undefined, claims: subject }
  const checked = call.body.check(body)
  return { body: checked.body, claims: [...subject, ...checked.claims] }
}

function create(of: { name: string }, body: unknown, own: DoorRules = rules) {
  return passed('POST', `/containers/create?name=${of.name}`, body, own)
}

function filters(filter: object): string {
  return `filters=${encodeURIComponent(JSON.stringify(filter))}`
}

const network = {
  Name: `tenantry-${stack}-net`,
  CheckDuplicate: true,
  Driver: 'bridge',
  Internal: true,
  Attachable: false,
  EnableIPv6: false,
  IPAM: { Driver: 'default', Config: [{ Subnet: '10.201.1.16/28' }] },
  Options: { 'com.docker.network.bridge.inhibit_ipv4': 'true' },
  Labels: { 'tenantry.installation': installation, 'tenantry.stack': stack },
}
const volume = {
  Name: `tenantry-${stack}-data`,
  Driver: 'local',
  Labels: { 'tenantry.installation': installation, 'tenantry.stack': stack },
}
const limits = {
  Memory: 2 ** 28,
  MemorySwap: 2 ** 28,
  NanoCpus: 500_000_000,
  PidsLimit: 64,
  RestartPolicy: { Name: 'unless-stopped' },
}
const command = { AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: false, Cmd: ['psql', '-X'] }
const own = { label: [`tenantry.installation=${installation}`] }

t.test('every call of our own client passes', async (t) => {
  const calls: [method: string, path: string, body?: unknown][] = [
    ['GET', '/version'],
    ['GET', '/_ping'],
    ['GET', '/info?'],
    ['GET', '/images/tenantry%2Fpostgres%3Alatest/json?'],
    ['GET', `/images/sha256%3A${'ab'.repeat(32)}/json?`],
    [
      'GET',
      `/events?${filters({ type: ['container', 'network', 'volume'], event: ['create', 'start', 'die', 'health_status', 'remove'] })}`,
    ],
    ['GET', '/system/df?type=volume'],
    ['GET', `/containers/json?all=true&${filters(own)}`],
    ['GET', `/containers/json?all=true&${filters({ label: [...own.label, `tenantry.stack=${stack}`] })}`],
    ['GET', `/containers/json?all=true&${filters({ network: [network.Name] })}`],
    ['GET', '/containers/anything-at-all/json?'],
    ['POST', `/containers/${spec.name}/start?`],
    ['POST', `/containers/${spec.name}/unpause?`],
    ['POST', `/containers/${spec.name}/stop?t=15`],
    ['POST', `/containers/${spec.name}/update?`, limits],
    ['DELETE', `/containers/${'0f'.repeat(32)}?force=true&v=true`],
    [
      'GET',
      `/containers/${spec.name}/logs?stdout=true&stderr=true&timestamps=true&follow=false&tail=100&since=1700000000.000000000`,
    ],
    ['GET', `/containers/${spec.name}/stats?stream=false&one-shot=true`],
    ['GET', `/containers/${'0f'.repeat(32)}/archive?path=%2Ftenantry%2Ffiles`],
    ['PUT', `/containers/${'0f'.repeat(32)}/archive?path=%2Ftenantry`],
    ['POST', `/containers/${spec.name}/exec?`, command],
    ['POST', `/exec/${'0f'.repeat(32)}/start?`, { Detach: false, Tty: false }],
    ['GET', `/exec/${'0f'.repeat(32)}/json?`],
    ['GET', `/networks?${filters({ name: [network.Name] })}`],
    ['GET', `/networks?${filters(own)}`],
    ['GET', `/networks/${network.Name}?`],
    ['POST', '/networks/create?', network],
    [
      'POST',
      `/networks/${network.Name}/connect?`,
      {
        Container: 'tenantry-gateway',
        EndpointConfig: { Aliases: ['gateway'], IPAMConfig: { IPv4Address: '10.201.0.11' } },
      },
    ],
    ['POST', `/networks/${network.Name}/disconnect?`, { Container: 'tenantry-gateway', Force: true }],
    ['DELETE', `/networks/${'0f'.repeat(32)}?`],
    ['GET', `/volumes?${filters(own)}`],
    ['GET', `/volumes?${filters({ name: ['tenantry-'] })}`],
    ['GET', `/volumes?${filters({ name: [`tenantry-${stack}-`] })}`],
    ['GET', `/volumes/${volume.Name}?`],
    ['POST', '/volumes/create?', volume],
    ['DELETE', `/volumes/${volume.Name}?`],
  ]
  for (const [method, path, body] of calls) t.doesNotThrow(() => passed(method, path, body), `${method} ${path}`)
})

t.test('what the template makes goes on as it was made, and names all that must be ours', async (t) => {
  const { body, claims } = create(spec, json(containerBody(spec)))
  t.same(body, json(containerBody(spec)))
  t.same(claims, [
    { kind: 'image', name: spec.image },
    ...spec.volumes.map(({ volume: name }) => ({ kind: 'volume', name })),
    { kind: 'network', name: `tenantry-${stack}-net` },
  ])
  t.doesNotThrow(() => create(gateway, json(containerBody(gateway))))
  const scratch = 's_0123456789abcdef0123'
  const aside = {
    ...spec,
    name: `tenantry-${scratch}-files-0123abcd`,
    labels: { ...spec.labels, stack: scratch },
    volumes: [],
    networks: [],
  }
  t.doesNotThrow(() => create(aside, json(containerBody(aside))), 'where a backup is restored aside')
  t.same(create(helper, helperBody(helper)).claims, [
    { kind: 'image', name: helper.image },
    { kind: 'volume', name: helper.volumes[0]?.volume },
  ])
})

t.test('a container that is not of the template is refused, whatever differs', async (t) => {
  const body = json(containerBody(spec))
  const mount = { Type: 'volume', Source: `tenantry-${stack}-files`, Target: '/var/lib/tenantry', ReadOnly: false }
  const escapes: [path: string, value: unknown][] = [
    ['HostConfig.Privileged', true],
    ['HostConfig.privileged', true],
    ['hostconfig', { Privileged: true }],
    ['HostConfig.CapAdd', ['SYS_ADMIN']],
    ['HostConfig.CapAdd', ['ALL']],
    ['HostConfig.CapDrop', []],
    ['HostConfig.CapDrop', ['NET_RAW']],
    ['HostConfig.Capabilities', ['CAP_SYS_ADMIN']],
    ['HostConfig.SecurityOpt', []],
    ['HostConfig.SecurityOpt', ['no-new-privileges:true', 'seccomp=unconfined']],
    ['HostConfig.SecurityOpt', ['no-new-privileges:true', 'apparmor=unconfined']],
    ['HostConfig.SecurityOpt', ['no-new-privileges:true', 'systempaths=unconfined']],
    ['HostConfig.SecurityOpt', ['no-new-privileges:false']],
    ['HostConfig.MaskedPaths', []],
    ['HostConfig.ReadonlyPaths', []],
    ['HostConfig.Binds', ['/:/host']],
    ['HostConfig.Binds', ['/var/run/docker.sock:/var/run/docker.sock']],
    ['HostConfig.Binds', []],
    ['HostConfig.VolumesFrom', ['tenantry-control-plane']],
    ['HostConfig.VolumeDriver', 'other'],
    ['HostConfig.Mounts', [{ ...mount, Type: 'bind', Source: '/' }]],
    ['HostConfig.Mounts', [{ ...mount, Source: '/etc' }]],
    ['HostConfig.Mounts', [{ ...mount, Source: '' }]],
    ['HostConfig.Mounts', [{ ...mount, Source: 'database' }]],
    ['HostConfig.Mounts', [{ ...mount, Type: 'tmpfs' }]],
    ['HostConfig.Mounts', [{ ...mount, Type: 'npipe' }]],
    ['HostConfig.Mounts', [{ ...mount, Target: '/usr/local/bin' }]],
    ['HostConfig.Mounts', [{ ...mount, Target: '/proc' }]],
    ['HostConfig.Mounts', [{ ...mount, Target: '/var/lib/../../etc' }]],
    ['HostConfig.Mounts', [{ ...mount, BindOptions: { Propagation: 'rshared' } }]],
    [
      'HostConfig.Mounts',
      [
        {
          ...mount,
          VolumeOptions: { DriverConfig: { Name: 'local', Options: { type: 'none', o: 'bind', device: '/' } } },
        },
      ],
    ],
    ['HostConfig.Mounts', [{ ...mount, VolumeOptions: { DriverConfig: { Name: 'other' } } }]],
    ['HostConfig.NetworkMode', 'host'],
    ['HostConfig.NetworkMode', 'bridge'],
    ['HostConfig.NetworkMode', 'default'],
    ['HostConfig.NetworkMode', 'container:tenantry-control-plane'],
    ['HostConfig.PidMode', 'host'],
    ['HostConfig.PidMode', 'container:tenantry-control-plane'],
    ['HostConfig.IpcMode', 'host'],
    ['HostConfig.IpcMode', 'shareable'],
    ['HostConfig.UTSMode', 'host'],
    ['HostConfig.UsernsMode', 'host'],
    ['HostConfig.CgroupnsMode', 'host'],
    ['HostConfig.CgroupParent', '/'],
    ['HostConfig.Cgroup', 'container:x'],
    ['HostConfig.Devices', [{ PathOnHost: '/dev/sda', PathInContainer: '/dev/sda', CgroupPermissions: 'rwm' }]],
    ['HostConfig.DeviceCgroupRules', ['a *:* rwm']],
    ['HostConfig.DeviceRequests', [{ Driver: 'nvidia', Count: -1 }]],
    ['HostConfig.Sysctls', { 'net.ipv4.ip_forward': '1', 'net.ipv4.tcp_orphan_retries': '4' }],
    [
      'HostConfig.Sysctls',
      { 'net.ipv4.ip_forward': '0', 'net.ipv4.tcp_orphan_retries': '4', 'kernel.core_pattern': '|/bin/sh' },
    ],
    ['HostConfig.Runtime', 'other'],
    ['HostConfig.GroupAdd', ['0']],
    ['HostConfig.GroupAdd', ['docker']],
    ['HostConfig.ExtraHosts', ['metadata:169.254.169.254']],
    ['HostConfig.Dns', ['10.0.0.1']],
    ['HostConfig.Links', ['tenantry-control-plane:x']],
    ['HostConfig.ReadonlyRootfs', false],
    ['HostConfig.PublishAllPorts', true],
    ['HostConfig.PortBindings', { '24401/tcp': [{ HostIp: '0.0.0.0', HostPort: '80' }] }],
    ['HostConfig.AutoRemove', true],
    ['HostConfig.ContainerIDFile', '/etc/cron.d/x'],
    ['HostConfig.LogConfig', { Type: 'syslog', Config: { 'syslog-address': 'unixgram:///var/run/x' } }],
    ['HostConfig.LogConfig', { Type: 'json-file', Config: {} }],
    ['HostConfig.RestartPolicy', { Name: 'always' }],
    ['HostConfig.OomKillDisable', true],
    ['HostConfig.OomScoreAdj', -1000],
    ['HostConfig.Init', true],
    ['HostConfig.ShmSize', 2 ** 40],
    ['HostConfig.Ulimits', []],
    ['HostConfig.Memory', 0],
    ['HostConfig.Memory', -1],
    ['HostConfig.MemorySwap', -1],
    ['HostConfig.NanoCpus', 0],
    ['HostConfig.PidsLimit', -1],
    ['HostConfig.PidsLimit', 0],
    ['HostConfig.CpuRealtimeRuntime', 950_000],
    ['HostConfig.BlkioWeight', 1000],
    ['HostConfig.Tmpfs', { '/tmp': 'size=64m,mode=1777,exec,suid,dev' }],
    ['HostConfig.Tmpfs', { '/tmp': 'mode=1777' }],
    ['HostConfig.Tmpfs', { '/proc': 'size=1m' }],
    ['HostConfig.Tmpfs', { '/usr': 'size=1m' }],
    ['HostConfig.Tmpfs', { '/tmp/../etc': 'size=1m' }],
    ['HostConfig.StorageOpt', { size: '100G' }],
    ['User', ''],
    ['User', 'root'],
    ['User', '0'],
    ['User', '0:0'],
    ['User', '10001:0'],
    ['User', '10001'],
    ['User', 'postgres'],
    ['User', '010001:10001'],
    ['User', '4294967296:10001'],
    ['Image', ''],
    ['Image', '../x'],
    ['Image', 'tenantry/postgres:latest\n'],
    ['Entrypoint', ['/bin/sh']],
    ['WorkingDir', '/'],
    ['Volumes', { '/x': {} }],
    ['Shell', ['/bin/sh']],
    ['OnBuild', ['RUN x']],
    ['Hostname', 'x'],
    ['Domainname', 'x'],
    ['MacAddress', '02:42:ac:11:00:02'],
    ['Tty', true],
    ['OpenStdin', true],
    ['AttachStdin', true],
    ['NetworkDisabled', false],
    ['ExposedPorts', { '80/tcp': {} }],
    ['StopSignal', 'SIGKILL'],
    ['ArgsEscaped', true],
    ['Env', ['A=1', 'A=2']],
    ['Env', 'A=1'],
    ['Cmd', 'sh -c true'],
    ['Healthcheck', { Test: ['CMD-SHELL', 'true'], Interval: 1e10, Timeout: 5e9, Retries: 3, StartPeriod: 2e10 }],
    ['Healthcheck', { Test: ['NONE'], Interval: 1e10, Timeout: 5e9, Retries: 3, StartPeriod: 2e10 }],
    ['Labels', {}],
    ['Labels', { 'tenantry.installation': 'another', 'tenantry.stack': stack }],
    ['Labels', { 'tenantry.installation': installation, 'tenantry.stack': 't_ffffffffffffffffffff' }],
    [
      'Labels',
      { 'tenantry.installation': installation, 'tenantry.stack': stack, 'com.docker.compose.project': 'tenantry' },
    ],
    ['NetworkingConfig', { EndpointsConfig: { bridge: { Aliases: [] } } }],
    ['NetworkingConfig', { EndpointsConfig: { [`tenantry-${stack}-net`]: { Aliases: [], DriverOpts: {} } } }],
    ['NetworkingConfig', { EndpointsConfig: { [`tenantry-${stack}-net`]: { Aliases: [], Links: ['x'] } } }],
    ['NetworkingConfig', { EndpointsConfig: { [`tenantry-${stack}-net`]: { Aliases: [] }, host: { Aliases: [] } } }],
    ['__proto__x', 1],
  ]
  t.ok(escapes.length > 100, `${escapes.length} attempts`)
  for (const [path, value] of escapes)
    t.throws(() => create(spec, changed(body, path, value)), refused, `${path} ${JSON.stringify(value)}`)
  for (const value of [undefined, null, 1, 'x', [], {}, { HostConfig: null }])
    t.throws(() => create(spec, value), refused, JSON.stringify(value))
})

t.test('a container of the template is refused where the template leaves too much open', async (t) => {
  const attempts: [why: string, spec: ContainerSpec][] = [
    ['a network of others', { ...spec, networks: [{ network: 'bridge', aliases: [] }] }],
    ["the host's network", { ...spec, networks: [{ network: 'host', aliases: [] }] }],
    [
      "another container's network",
      { ...spec, networks: [{ network: 'container:tenantry-control-plane', aliases: [] }] },
    ],
    ['a volume of others', { ...spec, volumes: [{ volume: 'database', path: '/var/lib/tenantry', readOnly: false }] }],
    ['a directory of the host', { ...spec, volumes: [{ volume: '/etc', path: '/var/lib/tenantry', readOnly: true }] }],
    [
      'a program hidden by a volume',
      { ...spec, volumes: [{ volume: `tenantry-${stack}-files`, path: '/usr/local/bin', readOnly: false }] },
    ],
    ['root', { ...spec, user: '0:0' }],
    ["root's group", { ...spec, user: '10001:0' }],
    ["the image's own user", { ...spec, user: '' }],
    ['no limit of memory', { ...spec, resources: { ...spec.resources, memoryBytes: 0 } }],
    ['no limit of processes', { ...spec, resources: { ...spec.resources, pids: -1 } }],
    ['no limit of processors', { ...spec, resources: { ...spec.resources, cpuMillis: 0 } }],
    ['programs in scratch', { ...spec, scratch: { '/tmp': 'size=1m,exec' } }],
    ["scratch over the kernel's files", { ...spec, scratch: { '/sys': 'size=1m' } }],
    ['a port of a tenant', { ...spec, published: gateway.published }],
    [
      'another port of the gateway',
      { ...gateway, published: [{ containerPort: 4402, hostAddress: '127.0.0.1', hostPort: 4401 }] },
    ],
    [
      'another port of the host',
      { ...gateway, published: [{ containerPort: 4401, hostAddress: '127.0.0.1', hostPort: 22 }] },
    ],
    [
      'every address of the host',
      { ...gateway, published: [{ containerPort: 4401, hostAddress: '0.0.0.0', hostPort: 4401 }] },
    ],
    ['another installation', { ...spec, labels: { ...spec.labels, installation: 'another' } }],
    ["another stack's name", { ...spec, name: 'tenantry-t_ffffffffffffffffffff-runtime-0123abcd' }],
    ['a name of others', { ...spec, name: 'tenantry-control-plane' }],
    ['no stack', { ...spec, labels: { ...spec.labels, stack: 'x' }, name: 'tenantry-x-runtime' }],
    ['odd labels', { ...spec, labels: { ...spec.labels, service: '../x' } }],
  ]
  for (const [why, attempt] of attempts) t.throws(() => create(attempt, json(containerBody(attempt))), refused, why)
  t.throws(
    () => create(gateway, json(containerBody(gateway)), { ...rules, published: [] }),
    refused,
    'ports where none are allowed',
  )
})

t.test('only a container for files has a root that can be written, and it has nothing else', async (t) => {
  const writable = helperBody(helper)
  t.throws(() => create({ name: spec.name }, writable), refused, 'under the name of another')
  t.throws(() => create(helper, json(containerBody(helper))), refused, 'with a root that cannot')
  const attempts: ContainerSpec[] = [
    {
      ...helper,
      volumes: [...helper.volumes, { volume: `tenantry-${stack}-data`, path: '/var/lib/x', readOnly: false }],
    },
    { ...helper, volumes: [{ volume: `tenantry-${stack}-data`, path: '/tenantry/files', readOnly: false }] },
    {
      ...helper,
      volumes: [{ volume: `tenantry-${stack}-runtime-0123abcd-secrets`, path: '/run/secrets', readOnly: false }],
    },
    { ...helper, volumes: [] },
    { ...helper, networks: spec.networks },
    { ...helper, scratch: { '/tmp': 'size=1m' } },
    { ...helper, published: gateway.published },
  ]
  for (const [at, attempt] of attempts.entries())
    t.throws(() => create(attempt, helperBody(attempt)), refused, `attempt ${at}`)
})

t.test('all other calls of the Engine are refused', async (t) => {
  const others: [method: string, path: string][] = [
    ['POST', '/build'],
    ['POST', '/build/prune'],
    ['POST', '/images/create?fromImage=alpine'],
    ['POST', '/images/load'],
    ['GET', '/images/json'],
    ['POST', '/images/x/tag?repo=tenantry%2Fpostgres'],
    ['POST', '/images/x/push'],
    ['DELETE', '/images/x'],
    ['GET', '/images/x/get'],
    ['GET', '/images/get?names=x'],
    ['GET', '/images/x/history'],
    ['POST', '/images/prune'],
    ['POST', '/commit?container=x'],
    ['POST', '/auth'],
    [`POST`, `/containers/${spec.name}/attach?stream=1&stdin=1`],
    ['GET', `/containers/${spec.name}/attach/ws`],
    ['GET', `/containers/${spec.name}/export`],
    ['GET', `/containers/${spec.name}/top`],
    ['GET', `/containers/${spec.name}/changes`],
    ['POST', `/containers/${spec.name}/resize?h=1&w=1`],
    ['POST', `/containers/${spec.name}/kill`],
    ['POST', `/containers/${spec.name}/rename?name=x`],
    ['POST', `/containers/${spec.name}/pause`],
    ['POST', `/containers/${spec.name}/restart`],
    ['POST', `/containers/${spec.name}/wait`],
    ['POST', '/containers/prune'],
    ['HEAD', `/containers/${spec.name}/archive?path=%2F`],
    ['POST', '/networks/prune'],
    ['POST', '/volumes/prune'],
    ['PUT', `/volumes/${volume.Name}`],
    ['POST', '/system/prune'],
    ['GET', '/swarm'],
    ['POST', '/swarm/init'],
    ['POST', '/swarm/join'],
    ['GET', '/nodes'],
    ['GET', '/services'],
    ['POST', '/services/create'],
    ['GET', '/tasks'],
    ['GET', '/secrets'],
    ['POST', '/secrets/create'],
    ['GET', '/configs'],
    ['POST', '/configs/create'],
    ['GET', '/plugins'],
    ['POST', '/plugins/pull?remote=x'],
    ['POST', '/plugins/x/enable'],
    ['POST', '/session'],
    ['GET', '/distribution/x/json'],
    ['POST', '/grpc'],
    ['GET', '/debug/pprof/'],
    ['OPTIONS', '/info'],
    ['CONNECT', '/info'],
    ['get', '/info'],
    ['POST', '/exec/x/resize'],
    ['GET', '/'],
    ['GET', ''],
  ]
  for (const [method, path] of others) t.throws(() => passed(method, path), refused, `${method} ${path}`)
})

t.test('a target that could be read in two ways is refused', async (t) => {
  for (const target of [
    '/v1.41/containers/../info',
    '/v1.41/containers/%2e%2e/info',
    '/v1.41//info',
    '/v1.41/info/',
    '//v1.41/info',
    'v1.41/info',
    'http://docker/v1.41/info',
    '*',
    '/v1.41/containers/a%2fb/json',
    '/v1.41/containers/a%00/json',
    '/v1.41/containers/%zz/json',
    '/v1.41/containers/a b/json',
    '/v1.41/containers/a;b/json',
    '/v1.41/images/a%2F..%2Fb/json',
    '/v1.41/images/%2Fa/json',
    '/v1.41/images/a%3Fb/json',
    '/v1.41/images/a%23b/json',
    '/v1.40/info',
    '/v1.24/info',
    '/v1.52/info',
    '/v1.041/info',
    '/v2.41/info',
    '/v1.41.1/info',
    '/V1.41/info',
    '/info',
    '/containers/json',
    '/v1.41/info?a=b',
    '/v1.41/info?#x',
    '/v1.41/info?x?y',
    '/v1.41/system/df?type=volume&type=container',
    '/v1.41/system/df',
    `/v1.41/info?${'x'.repeat(9_000)}`,
    '/v1.41/system/df?__proto__=1',
    '/v1.41/system/df?constructor=1&type=volume',
  ])
    t.throws(() => readCall('GET', target, rules), refused, target)
})

t.test('nothing is asked of the Engine beyond what is ours', async (t) => {
  const list = (filter: string) => `/containers/json?all=true&${filter}`
  for (const path of [
    '/containers/json',
    '/containers/json?all=true',
    list(filters({})),
    list(filters({ label: [] })),
    list(filters({ label: ['tenantry.stack=x'] })),
    list(filters({ label: ['tenantry.installation=another'] })),
    list(filters({ label: { [own.label[0] ?? '']: true } })),
    list(filters({ label: [...own.label, 'other'] })),
    list(filters({ ...own, status: ['running'] })),
    list('filters=x'),
    list('filters=%5B%5D'),
    list('filters=null'),
    `${list(filters(own))}&size=true`,
    `${list(filters(own))}&limit=1`,
    '/networks',
    `/networks?${filters({ driver: ['bridge'] })}`,
    `/networks?${filters({ name: ['a', 'b'] })}`,
    '/networks/x?verbose=true',
    '/volumes',
    `/volumes?${filters({ dangling: ['true'] })}`,
    `/volumes?${filters({ name: ['postgres'] })}`,
    `/volumes?${filters({ name: ['tenantry-', 'x'] })}`,
    '/system/df?type=image',
    '/system/df?type=volume&verbose=1',
    '/events',
    `/events?${filters({ type: ['container'] })}`,
    `/events?${filters({ type: ['daemon'], event: ['reload'] })}`,
    `/events?${filters({ type: ['container'], event: ['exec_create'] })}`,
    `/events?${filters({ type: ['image'], event: ['create'] })}`,
    `/events?since=0&${filters({ type: ['container'], event: ['die'] })}`,
    `/containers/${spec.name}/json?size=1`,
    `/containers/${spec.name}/logs?details=true`,
    `/containers/${spec.name}/stats`,
    `/containers/${spec.name}/stats?stream=true`,
    `/containers/${spec.name}/archive?path=%2F`,
    `/containers/${spec.name}/archive?path=%2Fetc%2Fshadow`,
    `/containers/${spec.name}/archive`,
  ])
    t.throws(() => passed('GET', path), refused, path)
  for (const path of [
    '?path=%2F',
    '?path=%2Fetc',
    '?path=%2Ftenantry%2F..%2Fetc',
    '',
    '?path=%2Ftenantry&noOverwriteDirNonDir=0',
    '?path=%2Ftenantry&copyUIDGID=1',
  ]) {
    t.throws(() => passed('PUT', `/containers/x/archive${path}`), refused, path)
  }
  for (const path of ['?link=true', '?force=1', '?v=yes'])
    t.throws(() => passed('DELETE', `/containers/x${path}`), refused, path)
  t.throws(() => passed('DELETE', '/volumes/x?force=true'), refused)
  t.throws(() => passed('POST', '/containers/x/start?detachKeys=a'), refused)
  t.throws(() => passed('POST', '/containers/create', json(containerBody(spec))), refused, 'a container without a name')
  t.throws(
    () => passed('POST', `/containers/create?name=${spec.name}&platform=linux`, json(containerBody(spec))),
    refused,
  )
})

t.test('no other networks, volumes, limits and commands pass than ours', async (t) => {
  const bodies: [method: string, path: string, body: Json, changes: [path: string, value: unknown][]][] = [
    [
      'POST',
      '/networks/create',
      network,
      [
        ['Name', 'tenantry-net'],
        ['Name', 'bridge'],
        ['Name', `tenantry-t_ffffffffffffffffffff-net`],
        ['Driver', 'host'],
        ['Driver', 'macvlan'],
        ['Driver', 'overlay'],
        ['Driver', ''],
        ['Internal', false],
        ['Attachable', true],
        ['Ingress', true],
        ['Scope', 'swarm'],
        ['ConfigOnly', true],
        ['ConfigFrom', { Network: 'x' }],
        ['EnableIPv6', true],
        ['CheckDuplicate', false],
        ['Options', { 'com.docker.network.bridge.name': 'docker0' }],
        ['Options', { parent: 'eth0' }],
        ['Options', { 'com.docker.network.bridge.host_binding_ipv4': '0.0.0.0' }],
        ['Options', { 'com.docker.network.bridge.inhibit_ipv4': 'false' }],
        ['IPAM.Driver', 'other'],
        ['IPAM.Options', {}],
        ['IPAM.Config', []],
        ['IPAM.Config', [{ Subnet: '10.201.1.16/28' }, { Subnet: '192.168.0.0/24' }]],
        ['IPAM.Config', [{ Subnet: '192.168.0.0/24' }]],
        ['IPAM.Config', [{ Subnet: '10.0.0.0/8' }]],
        ['IPAM.Config', [{ Subnet: '10.202.0.0/28' }]],
        ['IPAM.Config', [{ Subnet: '10.201.1.17/28' }]],
        ['IPAM.Config', [{ Subnet: '10.201.1.16/28', Gateway: '10.201.1.17' }]],
        ['IPAM.Config', [{ Subnet: '10.201.1.16/31' }]],
        ['IPAM.Config', [{ Subnet: 'fd00::/64' }]],
        ['IPAM.Config', [{ Subnet: '10.201.1.256/28' }]],
        ['IPAM.Config', [{ Subnet: '0x0ac90110/28' }]],
        ['Labels', {}],
        ['Labels', { 'tenantry.installation': 'another', 'tenantry.stack': stack }],
        ['labels', {}],
      ],
    ],
    [
      'POST',
      '/volumes/create',
      volume,
      [
        ['Name', ''],
        ['Name', 'database'],
        ['Name', '/etc'],
        ['Driver', 'other'],
        ['Driver', ''],
        ['DriverOpts', { type: 'none', o: 'bind', device: '/' }],
        ['driveropts', { o: 'bind' }],
        ['DriverOpts', {}],
        ['Labels', {}],
        ['Labels', { 'tenantry.installation': 'another', 'tenantry.stack': stack }],
        ['ClusterVolumeSpec', {}],
      ],
    ],
    [
      'POST',
      '/containers/x/update',
      limits,
      [
        ['Memory', 0],
        ['Memory', -1],
        ['MemorySwap', -1],
        ['MemorySwap', 2 ** 30],
        ['PidsLimit', -1],
        ['PidsLimit', 0],
        ['NanoCpus', 0],
        ['CpuShares', 1],
        ['RestartPolicy', { Name: 'no' }],
        ['RestartPolicy', { Name: 'unless-stopped', MaximumRetryCount: 1 }],
        ['BlkioWeight', 1],
        ['KernelMemory', 1],
        ['Devices', []],
        ['CpusetCpus', '0'],
        ['OomKillDisable', true],
      ],
    ],
    [
      'POST',
      '/containers/x/exec',
      command,
      [
        ['Privileged', true],
        ['Privileged', false],
        ['privileged', true],
        ['User', 'root'],
        ['User', '0'],
        ['User', ''],
        ['Tty', true],
        ['Env', ['LD_PRELOAD=x']],
        ['WorkingDir', '/'],
        ['DetachKeys', 'a'],
        ['Cmd', []],
        ['Cmd', 'sh'],
        ['AttachStdout', false],
      ],
    ],
    [
      'POST',
      '/exec/x/start',
      { Detach: false, Tty: false },
      [
        ['Detach', true],
        ['Tty', true],
        ['ConsoleSize', [1, 1]],
      ],
    ],
    [
      'POST',
      `/networks/${network.Name}/connect`,
      { Container: 'tenantry-gateway', EndpointConfig: { Aliases: ['gateway'] } },
      [
        ['Container', ''],
        ['Container', '../x'],
        ['EndpointConfig', { Aliases: ['a b'] }],
        ['EndpointConfig', { Aliases: [], Links: ['x'] }],
        ['EndpointConfig', { Aliases: [], DriverOpts: {} }],
        ['EndpointConfig', { Aliases: [], MacAddress: 'x' }],
        ['EndpointConfig', { Aliases: [], IPAMConfig: { IPv6Address: '::1' } }],
        ['EndpointConfig', { Aliases: [], GwPriority: 1 }],
      ],
    ],
    [
      'POST',
      `/networks/${network.Name}/disconnect`,
      { Container: 'x', Force: true },
      [
        ['Force', false],
        ['Container', 1],
        ['X', 1],
      ],
    ],
  ]
  for (const [method, path, body, changes] of bodies) {
    t.doesNotThrow(() => passed(method, path, body), path)
    for (const [at, value] of changes)
      t.throws(() => passed(method, path, changed(body, at, value)), refused, `${path} ${at} ${JSON.stringify(value)}`)
    for (const value of [undefined, null, [], 'x', 1])
      t.throws(() => passed(method, path, value), refused, `${path} ${JSON.stringify(value)}`)
  }
  const door = {
    ...changed(network, 'Name', `tenantry-${region}-door`),
    Internal: false,
    Labels: { 'tenantry.installation': installation, 'tenantry.stack': region },
  }
  t.doesNotThrow(() => passed('POST', '/networks/create', door), 'a way out where a gateway is published')
  t.throws(() => passed('POST', '/networks/create', door, { ...rules, published: [] }), refused, 'and nowhere else')
})

t.test("what is touched must be ours by the Engine's own account", async (t) => {
  const Labels = { 'tenantry.installation': installation, 'tenantry.stack': stack }
  const theirs = { 'tenantry.installation': 'another', 'tenantry.stack': stack }
  const account = (name: string, labels: object | null, status = 'running') => ({
    Id: 'x',
    Name: `/${name}`,
    Config: { Labels: labels },
    State: { Status: status },
    Labels: labels,
  })
  const mine = account('tenantry-a', Labels)
  const made = account('tenantry-a-files', Labels, 'created')
  const passes: [Parameters<typeof checkClaim>[0], object][] = [
    [{ kind: 'container', name: 'a', may: 'be used' }, mine],
    [{ kind: 'container', name: 'a', may: 'start' }, mine],
    [{ kind: 'container', name: 'a', may: 'be a guest' }, mine],
    [{ kind: 'container', name: 'a', may: 'be a guest' }, account('tenantry-gateway', {})],
    [{ kind: 'container', name: 'a', may: 'hold files' }, made],
    [{ kind: 'network', name: 'a' }, mine],
    [{ kind: 'volume', name: 'a' }, mine],
    [{ kind: 'volume', name: 'a', may: 'be removed' }, mine],
    ...[null, {}].map((Labels): [Parameters<typeof checkClaim>[0], object] => [
      { kind: 'volume', name: 'a', may: 'be removed' },
      { Name: volume.Name, Driver: 'local', Options: null, Labels },
    ]),
    [
      { kind: 'image', name: 'a' },
      { RepoTags: ['other/x:1', 'tenantry/postgres:1f'], RepoDigests: [] },
    ],
    [
      { kind: 'image', name: 'a' },
      { RepoTags: [], RepoDigests: [`tenantry/gateway@sha256:${'0'.repeat(64)}`] },
    ],
  ]
  for (const [claim, of] of passes)
    t.doesNotThrow(() => checkClaim(claim, of as Record<string, unknown>, rules), JSON.stringify([claim, of]))
  const refusedClaims: [Parameters<typeof checkClaim>[0], object][] = [
    ...[account('a', {}), account('a', null), account('a', theirs), {}].flatMap(
      (of): [Parameters<typeof checkClaim>[0], object][] => [
        [{ kind: 'container', name: 'a', may: 'be used' }, of],
        [{ kind: 'container', name: 'a', may: 'start' }, of],
        [{ kind: 'container', name: 'a', may: 'be a guest' }, of],
        [{ kind: 'container', name: 'a', may: 'hold files' }, of],
        [{ kind: 'network', name: 'a' }, of],
        [{ kind: 'volume', name: 'a' }, of],
        [{ kind: 'volume', name: 'a', may: 'be removed' }, of],
      ],
    ),
    [
      { kind: 'volume', name: 'a' },
      { Name: volume.Name, Driver: 'local', Options: null, Labels: null },
    ],
    ...[
      { Name: 'database' },
      { Name: `x${volume.Name}` },
      { Name: 'tenantry-gateway' },
      { Labels: theirs },
      { Labels: { owner: 'x' } },
      { Driver: 'nfs' },
      { Options: { device: '/etc', o: 'bind', type: 'none' } },
    ].map((change): [Parameters<typeof checkClaim>[0], object] => [
      { kind: 'volume', name: 'a', may: 'be removed' },
      { Name: volume.Name, Driver: 'local', Options: null, Labels: null, ...change },
    ]),
    [{ kind: 'container', name: 'a', may: 'be used' }, account('tenantry-gateway', {})],
    [{ kind: 'container', name: 'a', may: 'start' }, account('tenantry-control-plane', {})],
    [{ kind: 'container', name: 'a', may: 'start' }, made],
    [{ kind: 'container', name: 'a', may: 'hold files' }, mine],
    [{ kind: 'container', name: 'a', may: 'hold files' }, account('tenantry-a-files', Labels, 'running')],
    [
      { kind: 'image', name: 'a' },
      { RepoTags: ['alpine:latest'], RepoDigests: [] },
    ],
    [
      { kind: 'image', name: 'a' },
      {
        RepoTags: ['evil/tenantry/postgres:latest', 'tenantry/postgres-x:1', 'registry:5000/tenantry/postgres:1'],
        RepoDigests: null,
      },
    ],
    [
      { kind: 'image', name: 'a' },
      { RepoTags: null, RepoDigests: null, Config: { Labels } },
    ],
  ]
  for (const [claim, of] of refusedClaims)
    t.throws(() => checkClaim(claim, of as Record<string, unknown>, rules), refused, JSON.stringify([claim, of]))
})
