// Which networks, volumes, limits and commands the Docker proxy passes: those of our own client, and no others.
import t from 'tap'
import {
  changed,
  command,
  installation,
  limits,
  network,
  passed,
  rejected,
  region,
  rules,
  stack,
  volume,
  type Json,
} from './support/calls.ts'

t.test('Only networks, volumes, limits and commands of our own client pass', async (t) => {
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
      t.throws(() => passed(method, path, changed(body, at, value)), rejected, `${path} ${at} ${JSON.stringify(value)}`)
    for (const value of [undefined, null, [], 'x', 1])
      t.throws(() => passed(method, path, value), rejected, `${path} ${JSON.stringify(value)}`)
  }
  const proxy = {
    ...changed(network, 'Name', `tenantry-${region}-door`),
    Internal: false,
    Labels: { 'tenantry.installation': installation, 'tenantry.stack': region },
  }
  t.doesNotThrow(() => passed('POST', '/networks/create', proxy), 'an external network where a gateway is published')
  t.throws(
    () => passed('POST', '/networks/create', proxy, { ...rules, published: [] }),
    rejected,
    'no external network where none is published',
  )
})

t.test('On several hosts, only overlay networks of our own client pass', async (t) => {
  const severalHosts = { ...rules, spansHosts: true }
  const overlay: Json = {
    ...network,
    Driver: 'overlay',
    Attachable: true,
    IPAM: { Driver: 'default', Config: [{ Subnet: '10.201.1.64/26' }] },
    Options: {},
  }
  const create = (body: Json) => passed('POST', '/networks/create', body, severalHosts)
  t.same(create(overlay).body, overlay)
  t.doesNotThrow(() => create(changed(overlay, 'Options', { encrypted: '' })))
  t.doesNotThrow(() =>
    create(changed(overlay, 'IPAM.Config', [{ Subnet: '10.201.0.0/25', IPRange: '10.201.0.64/26' }])),
  )
  const changes: [path: string, value: unknown][] = [
    ['Name', 'tenantry-net'],
    ['Name', 'ingress'],
    ['Driver', 'bridge'],
    ['Driver', 'macvlan'],
    ['Internal', false],
    ['Attachable', false],
    ['Ingress', true],
    ['Scope', 'swarm'],
    ['ConfigFrom', { Network: 'x' }],
    ['EnableIPv6', true],
    ['Options', { encrypted: 'true' }],
    ['Options', { 'com.docker.network.driver.overlay.vxlanid_list': '4096' }],
    ['Options', { 'com.docker.network.bridge.inhibit_ipv4': 'true' }],
    ['IPAM.Driver', 'other'],
    ['IPAM.Config', []],
    ['IPAM.Config', [{ Subnet: '192.168.0.0/24' }]],
    ['IPAM.Config', [{ Subnet: '10.202.0.0/26' }]],
    ['IPAM.Config', [{ Subnet: '10.201.1.65/26' }]],
    ['IPAM.Config', [{ Subnet: '10.201.1.64/26', Gateway: '10.201.1.65' }]],
    ['IPAM.Config', [{ Subnet: '10.201.1.64/26', IPRange: '10.201.2.0/26' }]],
    ['IPAM.Config', [{ Subnet: '10.201.1.64/26', IPRange: '10.201.1.0/24' }]],
    ['IPAM.Config', [{ Subnet: '10.201.1.64/26', IPRange: 'x' }]],
    ['Labels', {}],
    ['Labels', { 'tenantry.installation': 'another', 'tenantry.stack': stack }],
  ]
  for (const [at, value] of changes)
    t.throws(() => create(changed(overlay, at, value)), rejected, `${at} ${JSON.stringify(value)}`)
  t.throws(() => create(network), rejected, 'a network of one host')
  t.throws(() => passed('POST', '/networks/create', overlay), rejected, 'an overlay network on a single host')
  t.doesNotThrow(
    () =>
      create({
        ...changed(overlay, 'Name', `tenantry-${region}-door`),
        Internal: false,
        Labels: { 'tenantry.installation': installation, 'tenantry.stack': region },
      }),
    'the network on which the gateways are published',
  )
})
