// Every container that Tenantry runs is confined. The tests check each field that the Engine stores, and the limits from inside.
import { createServer, type AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { once } from 'node:events'
import t from 'tap'
import { openScene, until } from '#test/support/docker.ts'
import { freePort } from '#test/support/postgres.ts'

t.test('the Engine stores every field of the hardened template', async (t) => {
  const scene = openScene(t)
  const { host, rawDocker, labels, signal, name } = scene
  const network = scene.network('net')
  await host.createNetwork(network, signal)
  await host.createVolume({ name: name('data'), labels }, signal)
  await host.createVolume({ name: name('secrets'), labels }, signal)
  const port = await freePort()
  const spec = scene.container('worker', {
    command: ['sleep', '601'],
    environment: { MODE: 'production', EMPTY: '' },
    volumes: [
      { volume: name('data'), path: '/var/lib/data', readOnly: false },
      { volume: name('secrets'), path: '/run/secrets', readOnly: true },
    ],
    scratch: { '/tmp': 'mode=1777', '/run/own': 'size=1m,uid=10001' },
    networks: [{ network: network.name, aliases: ['worker'] }],
    published: [{ containerPort: 4401, hostAddress: '127.0.0.1', hostPort: port }],
    health: { command: ['test', '-d', '/tmp'], intervalSeconds: 7, timeoutSeconds: 3, retries: 4, startSeconds: 20 },
    stopSeconds: 17,
  })
  await host.createContainer(spec, signal)
  const { Config, HostConfig, Mounts } = await rawDocker.getContainer(spec.name).inspect()

  t.match(Config, {
    User: '10001:10001',
    Cmd: ['sleep', '601'],
    Tty: false,
    OpenStdin: false,
    StopTimeout: 17,
    Labels: {
      'tenantry.installation': labels.installation,
      'tenantry.stack': labels.stack,
      'tenantry.service': labels.service,
      'tenantry.spec': labels.spec,
    },
    Healthcheck: { Test: ['CMD', 'test', '-d', '/tmp'], Interval: 7e9, Timeout: 3e9, Retries: 4, StartPeriod: 20e9 },
    ExposedPorts: { '4401/tcp': {} },
  })
  t.ok(['MODE=production', 'EMPTY='].every((variable) => Config.Env.includes(variable)))
  const emptyFields = [
    'CapAdd',
    'Devices',
    'Binds',
    'VolumesFrom',
    'GroupAdd',
    'ExtraHosts',
    'Links',
    'DeviceCgroupRules',
    'DeviceRequests',
    'Dns',
  ]
  for (const [field, value] of Object.entries<unknown>({ ...HostConfig }).filter(([field]) =>
    emptyFields.includes(field),
  )) {
    t.ok(value === null || (Array.isArray(value) && value.length === 0), `${field} is empty`)
  }
  t.match(HostConfig, {
    Privileged: false,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges:true'],
    ReadonlyRootfs: true,
    Tmpfs: { '/tmp': 'mode=1777,size=64m', '/run/own': 'size=1m,uid=10001' },
    NetworkMode: network.name,
    PortBindings: { '4401/tcp': [{ HostIp: '127.0.0.1', HostPort: String(port) }] },
    PublishAllPorts: false,
    IpcMode: 'private',
    CgroupnsMode: 'private',
    PidMode: '',
    UTSMode: '',
    UsernsMode: '',
    CgroupParent: '',
    Memory: spec.resources.memoryBytes,
    MemorySwap: spec.resources.memoryBytes,
    NanoCpus: 500_000_000,
    PidsLimit: 32,
    OomKillDisable: false,
    Init: false,
    AutoRemove: false,
    Sysctls: { 'net.ipv4.ip_forward': '0', 'net.ipv4.tcp_orphan_retries': '4' },
    RestartPolicy: { Name: 'unless-stopped', MaximumRetryCount: 0 },
    LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
  })
  t.same(HostConfig.Ulimits, [
    { Name: 'nofile', Soft: 16_384, Hard: 16_384 },
    { Name: 'core', Soft: 0, Hard: 0 },
  ])
  t.ok(HostConfig.MaskedPaths?.includes('/proc/kcore'))
  t.ok(HostConfig.ReadonlyPaths?.includes('/proc/sys'))
  t.same(
    Mounts.map(({ Type, Name, Destination, RW }) => ({ Type, Name, Destination, RW })).sort((a, b) =>
      a.Destination < b.Destination ? -1 : 1,
    ),
    [
      { Type: 'volume', Name: name('secrets'), Destination: '/run/secrets', RW: false },
      { Type: 'volume', Name: name('data'), Destination: '/var/lib/data', RW: true },
    ],
  )
})

t.test('a process inside a container has no privileges and cannot exceed its limits', async (t) => {
  const scene = openScene(t)
  const { host, labels, signal, name } = scene
  await host.createVolume({ name: name('data'), labels }, signal)
  const worker = await scene.run('worker', {
    user: '10001:10001',
    scratch: { '/tmp': 'mode=1777,size=1m' },
    volumes: [{ volume: name('data'), path: '/run/secrets', readOnly: true }],
  })
  const inside = async (script: string) => {
    const { code, stdout, stderr } = await host.exec(worker, ['sh', '-c', script], { signal })
    return { code, text: (stdout + stderr).trim() }
  }
  t.match(await inside('id -u; id -g'), { code: 0, text: '10001\n10001' })
  const status = (await inside('cat /proc/1/status')).text
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
    t.match(status, new RegExp(`${set}:\\s+0{16}\n`))
  t.match(status, /NoNewPrivs:\s+1\n/)
  t.match(status, /Seccomp:\s+2\n/, 'seccomp filters')
  for (const location of ['/', '/etc', '/var', '/run/secrets'])
    t.match(await inside(`touch ${location}/new`), { code: 1, text: /Read-only file system|Permission denied/ })
  t.match(await inside('mount | grep " / "'), { text: /\(ro,/ })
  t.match(await inside('grep " /tmp " /proc/mounts'), { text: /nosuid,nodev,noexec.*size=1024k/ })
  t.match(await inside('cp /bin/true /tmp/program && /tmp/program'), { code: 126 })
  t.match(await inside('head -c 2000000 /dev/zero > /tmp/big'), { code: 1, text: /No space left/ })
  t.match(await inside('cat /proc/sys/net/ipv4/ip_forward; ulimit -c; ulimit -n'), { text: '0\n0\n16384' })
  for (const attempt of [
    'echo 1 > /proc/sys/net/ipv4/ip_forward',
    'chown 0 /tmp',
    'unshare -r true',
    'unshare -m true',
    'mknod /tmp/disk b 8 0',
    'mount -t tmpfs none /tmp',
    'cat /proc/kcore',
    'dmesg',
    'setpriv --reuid=0 true',
    'ulimit -n 20000',
    'nsenter -t 1 -m true',
    'ls /dev/disk /dev/sda',
  ]) {
    t.not((await inside(attempt)).code, 0, attempt)
  }
  t.match(await inside('for i in $(seq 100); do sleep 5 & done'), {
    code: 2,
    text: /Cannot fork|Resource temporarily unavailable/,
  })
})

t.test('a container on an internal network reaches neither the host nor another network', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const listener = createServer((socket) => socket.end('reached'))
  listener.listen(0, '0.0.0.0')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  const { port } = listener.address() as AddressInfo
  const [one, two] = [scene.network('one'), scene.network('two')]
  await host.createNetwork(one, signal)
  await host.createNetwork(two, signal)
  // bash is the TCP client, and perl, which the base image contains, is the server.
  const serverCommand = [
    'perl',
    '-MIO::Socket::INET',
    '-e',
    'my $s = IO::Socket::INET->new(Listen => 5, LocalPort => 7777, ReuseAddr => 1) or die; ' +
      'while (my $c = $s->accept) { print $c "reached\\n"; close $c }',
  ]
  const at = (network: { subnet: string }, host: number) => network.subnet.replace('.0/24', `.${host}`)
  const internalWorker = await scene.run('internal', { networks: [{ network: one.name, aliases: ['internal'] }] })
  await scene.run('neighbour', {
    command: serverCommand,
    networks: [{ network: one.name, aliases: ['neighbour'], address: at(one, 20) }],
  })
  await scene.run('foreign', {
    command: serverCommand,
    networks: [{ network: two.name, aliases: ['foreign'], address: at(two, 20) }],
  })
  const reach = async (from: string, location: string, port: number) => {
    const script = `timeout 1 bash -c 'exec 3<>/dev/tcp/${location}/${port} && head -c 7 <&3'`
    return (await host.exec(from, ['bash', '-c', script], { signal })).stdout
  }
  const eventually = (from: string, location: string, port: number) =>
    until(async () => (await reach(from, location, port)) || undefined)
  t.equal(await eventually(internalWorker, 'neighbour', 7777), 'reached', 'the container reaches its own network')
  const hostAddresses = Object.values(networkInterfaces())
    .flat()
    .filter((address) => address?.family === 'IPv4' && !address.internal)
    .map((address) => address?.address ?? '')
  for (const address of new Set([at(one, 1), at(two, 1), ...hostAddresses.slice(0, 2)]))
    t.equal(await reach(internalWorker, address, port), '', `the host at ${address}`)
  t.equal(await reach(internalWorker, at(two, 20), 7777), '', 'another network')
  t.equal(await reach(internalWorker, 'foreign', 7777), '', "another network's names")

  const open = scene.network('open', { internal: false, hostAddress: true })
  await host.createNetwork(open, signal)
  const free = await scene.run('free', { networks: [{ network: open.name, aliases: ['free'] }] })
  t.equal(await eventually(free, at(open, 1), port), 'reached', 'a container on an open network reaches the host')
  t.equal(await reach(free, at(one, 20), 7777), '', 'the internal network is not reachable from the open one')
})
