// Which containers the Docker proxy lets our own client create: those of the template, without any escape.
import t from 'tap'
import type { ContainerSpec } from '#control-plane/engines/container-host.ts'
import { containerBody } from '#control-plane/engines/docker-container-body.ts'
import {
  changed,
  create,
  gateway,
  helper,
  helperBody,
  installation,
  json,
  rejected,
  rules,
  spec,
  stack,
} from './support/calls.ts'

t.test('A container of the template passes unchanged, and claims all resources that must be ours', async (t) => {
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
  t.doesNotThrow(() => create(aside, json(containerBody(aside))), 'a backup is restored in another stack')
  t.same(create(helper, helperBody(helper)).claims, [
    { kind: 'image', name: helper.image },
    { kind: 'volume', name: helper.volumes[0]?.volume },
  ])
})

t.test('A container that differs from the template is rejected, whatever differs', async (t) => {
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
    t.throws(() => create(spec, changed(body, path, value)), rejected, `${path} ${JSON.stringify(value)}`)
  for (const value of [undefined, null, 1, 'x', [], {}, { HostConfig: null }])
    t.throws(() => create(spec, value), rejected, JSON.stringify(value))
})

t.test('A container of the template is rejected where the template allows too much', async (t) => {
  const attempts: [why: string, spec: ContainerSpec][] = [
    ['a foreign network', { ...spec, networks: [{ network: 'bridge', aliases: [] }] }],
    ["the host's network", { ...spec, networks: [{ network: 'host', aliases: [] }] }],
    [
      "another container's network",
      { ...spec, networks: [{ network: 'container:tenantry-control-plane', aliases: [] }] },
    ],
    ['a foreign volume', { ...spec, volumes: [{ volume: 'database', path: '/var/lib/tenantry', readOnly: false }] }],
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
    ['a foreign name', { ...spec, name: 'tenantry-control-plane' }],
    ['no stack', { ...spec, labels: { ...spec.labels, stack: 'x' }, name: 'tenantry-x-runtime' }],
    ['odd labels', { ...spec, labels: { ...spec.labels, service: '../x' } }],
  ]
  for (const [why, attempt] of attempts) t.throws(() => create(attempt, json(containerBody(attempt))), rejected, why)
  t.throws(
    () => create(gateway, json(containerBody(gateway)), { ...rules, published: [] }),
    rejected,
    'ports where none are allowed',
  )
})

t.test('On several hosts, the gateway of the host is published, and no other service', async (t) => {
  const severalHosts = { ...rules, spansHosts: true }
  const onHost = (service: string): ContainerSpec => ({
    ...gateway,
    name: gateway.name.replace('-gateway-', `-${service}-`),
    labels: { ...gateway.labels, service },
  })
  const own = onHost('gateway-a-host-with-the-longest-name-ab')
  t.doesNotThrow(() => create(own, json(containerBody(own)), severalHosts))
  for (const other of [onHost('gateway'), onHost('runtime-0'), { ...own, labels: { ...own.labels, stack } }])
    t.throws(() => create(other, json(containerBody(other)), severalHosts), rejected, other.name)
  t.throws(() => create(own, json(containerBody(own))), rejected, 'such a gateway on a single host')
})

t.test('The rejection of a foreign volume or network names it', async (t) => {
  const volume: ContainerSpec = {
    ...spec,
    volumes: [{ volume: 'database', path: '/var/lib/tenantry', readOnly: false }],
  }
  const network: ContainerSpec = { ...spec, networks: [{ network: 'bridge', aliases: [] }] }
  t.throws(() => create(volume, json(containerBody(volume))), {
    message: 'the volume database does not have a name of Tenantry',
  })
  t.throws(() => create(network, json(containerBody(network))), {
    message: 'the network bridge does not have a name of Tenantry',
  })
})

t.test('Only a container for files has a writable root, and it has nothing else', async (t) => {
  const writable = helperBody(helper)
  t.throws(() => create({ name: spec.name }, writable), rejected, 'under the name of another container')
  t.throws(() => create(helper, json(containerBody(helper))), rejected, 'with a read-only root')
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
    t.throws(() => create(attempt, helperBody(attempt)), rejected, `attempt ${at}`)
})
