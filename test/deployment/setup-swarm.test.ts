// `deploy/setup --swarm` with a `docker` of the test: the files of all hosts, who may read them, and what a second run changes.
import { cp, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { X509Certificate } from 'node:crypto'
import t from 'tap'
import { readConfig } from '#control-plane/config.ts'
import { readPlatformOptions } from '#control-plane/deployment/platform-options.ts'
import { readProxyConfig } from '#docker-proxy/config.ts'
import { hostOptions, hosts, openSetup, options, type Definition } from './support/open-setup.ts'

t.test('Each host gets the containers of its part, with limits and without secrets in the environment', async (t) => {
  const { setUp, compose, all, read } = await openSetup(t)
  await setUp([...options, ...hostOptions()])
  const everywhere = ['watchdog', 'docker-proxy', 'caddy']
  const services = async (host: string) => Object.keys((await compose(host)).services).sort()
  const database = (number: number) => [`etcd-${number}`, `postgres-${number}`]
  t.same(await services('n1'), [...everywhere, ...database(1), 'router-1', 'control-plane'].sort())
  t.same(await services('n2'), [...everywhere, ...database(2), 'router-2', 'control-plane'].sort())
  t.same(await services('n3'), [...everywhere, ...database(3)].sort())
  t.same(await services('n4'), [...everywhere].sort())

  const secrets = Object.values(await all('secrets')).map(({ text }) => text.trim())
  t.equal(secrets.length, 6)
  for (const host of ['n1', 'n2', 'n3', 'n4']) {
    const text = await read(`hosts/${host}/docker-compose.yml`)
    for (const secret of secrets) t.notOk(text.includes(secret), `the Compose file of ${host} has no secret`)
    const { services: found, networks, volumes } = await compose(host)
    for (const [name, service] of Object.entries(found)) {
      t.match(
        service,
        {
          container_name: `tenantry-${name}`,
          image: /^tenantry\/[a-z-]+:latest$/,
          user: /^1000[1-4]:1000[1-4]$/,
          restart: 'always',
          read_only: true,
          cap_drop: ['ALL'],
          security_opt: ['no-new-privileges:true'],
          mem_limit: /^\d+m$/,
          cpus: Number,
          pids_limit: Number,
        },
        `${name} on ${host}`,
      )
      for (const network of Object.keys(service.networks ?? {})) t.ok(network in networks, `${name}: ${network}`)
      for (const volume of service.volumes ?? []) {
        if (typeof volume === 'string') t.ok((volume.split(':')[0] ?? '') in volumes, volume)
        else if (volume.source.startsWith('./')) t.ok(volume.read_only, volume.source)
        else
          t.match(volume, {
            source: host === 'n3' ? '/run/other.sock' : '/var/run/docker.sock',
            target: '/run/docker.sock',
          })
      }
    }
    t.equal(found['docker-proxy']?.group_add?.[0], host === 'n3' ? '77' : '998')
    t.equal(found['watchdog']?.network_mode, 'none')
    const withSocket = Object.entries(found).filter(([, { volumes: mounted = [] }]) =>
      JSON.stringify(mounted).includes('docker.sock'),
    )
    t.same(withSocket.map(([name]) => name).sort(), ['docker-proxy', 'watchdog'])
    t.same(networks['engines'], { name: 'tenantry-engines', external: true })
  }
  const { services: first } = await compose('n1')
  t.same(first['control-plane']?.ports, ['127.0.0.1:4400:4400'])
  t.same(first['caddy']?.ports, ['0.0.0.0:80:8080', '0.0.0.0:443:8443'])
  t.same(first['etcd-1']?.networks, { database: { aliases: ['etcd-1'], ipv4_address: '10.200.0.76' } })
  t.match(first['etcd-1']?.entrypoint?.join(' '), /etcd-access add control-database/)
  t.equal((await compose('n2')).services['etcd-2']?.entrypoint, undefined)
  t.same(first['postgres-1']?.networks, { database: { aliases: ['postgres-1', 'postgres-1-n1'] } })
  t.same(first['router-1']?.networks, { database: { aliases: ['database'] } })
})

t.test('The control planes and the Docker proxies accept their files, which only their users can read', async (t) => {
  const { setUp, compose, all, files, read } = await openSetup(t)
  await setUp([...options, ...hostOptions()])
  const users: Record<string, number> = {
    'control-plane': 10_001,
    'docker-proxy': 10_001,
    'postgres-1': 10_002,
    caddy: 10_003,
    'etcd-1': 10_004,
  }
  for (const [path, { mode, owner }] of Object.entries(await all('hosts/n1'))) {
    t.equal(mode, 0o400, path)
    t.equal(owner, users[path.split('/')[2] ?? ''] ?? 0, path)
  }
  t.equal((await stat(join(files, 'hosts/n1'))).mode & 0o777, 0o700, 'other users of the host cannot reach them')

  /** Replaces the paths of a container by those of the files. */
  const onHost = (host: string, { environment = {}, volumes = [] }: Definition) =>
    Object.fromEntries(
      Object.entries(environment).map(([name, value]) => {
        const mount = volumes.find(
          (one) => typeof one !== 'string' && value.startsWith(one.target) && one.source.startsWith('./'),
        )
        if (mount === undefined || typeof mount === 'string') return [name, value]
        return [name, join(files, 'hosts', host, mount.source, value.slice(mount.target.length))]
      }),
    )
  for (const host of ['n1', 'n2']) {
    const control = (await compose(host)).services['control-plane']
    if (control === undefined) throw new Error(`no control plane on ${host}`)
    const environment = onHost(host, control)
    const regions = environment['TENANTRY_REGIONS_FILE'] ?? ''
    const secretKey = join(files, `hosts/${host}/control-plane/secrets/s3-secret-key`)
    await writeFile(
      `${regions}.here`,
      (await readFile(regions, 'utf8')).replace('/run/secrets/s3-secret-key', secretKey),
    )
    const config = readConfig({ ...environment, TENANTRY_REGIONS_FILE: `${regions}.here` })
    t.match(config, {
      installation: (await read('installation')).trim(),
      controlDatabaseUrl: /@database:5432\/postgres$/,
    })
    t.match(config.regions[0], {
      id: 'local',
      engine: 'swarm',
      s3SecretKey: 'the secret key of S3',
      docker: {
        hosts: [
          { id: 'n1', host: 'tcp://10.200.0.8:2376', address: '10.99.0.1', zone: 'rack-1' },
          { id: 'n2' },
          { id: 'n3' },
          { id: 'n4' },
        ],
        control_containers: [
          { host: 'n1', container: control.container_name },
          { host: 'n2', container: control.container_name },
        ],
      },
    })
  }
  for (const host of ['n1', 'n2', 'n3', 'n4']) {
    const proxy = (await compose(host)).services['docker-proxy']
    if (proxy === undefined) throw new Error(`no Docker proxy on ${host}`)
    const { remote, rules } = readProxyConfig(onHost(host, proxy))
    const address = `10.200.0.${7 + Number(host.slice(1))}`
    t.equal(new X509Certificate(remote?.tls.cert ?? '').subjectAltName, `IP Address:${address}`)
    t.same(proxy.networks, { engines: { ipv4_address: address } })
    t.match(rules, {
      spansHosts: true,
      attachedContainers: ['tenantry-control-plane', 'tenantry-caddy'],
      published: [`10.99.0.${host.slice(1)}:8080`, `10.99.0.${host.slice(1)}:5432`],
    })
  }
  t.match(JSON.parse(await read('hosts/n2/postgres-2/secrets/patroni.yml')), {
    scope: 'control-database',
    name: 'postgres-2-n2',
    etcd3: { username: 'control-database', password: (await read('hosts/n1/etcd-1/secrets/user-password')).trim() },
  })
  t.match(await read('hosts/n4/caddy/caddy/Caddyfile'), /dynamic a proxied-gateway 4401/)
  const [certificate = ''] = (await read('hosts/n4/caddy/secrets/certificate.pem')).split(
    /(?<=-----END CERTIFICATE-----\n)/,
  )
  t.equal(new X509Certificate(certificate).subjectAltName, 'DNS:apps.example.org, DNS:*.apps.example.org')
})

t.test('A second run changes nothing, and a changed file only what uses it', async (t) => {
  const { setUp, all, compose, files, directory, read } = await openSetup(t)
  await setUp([...options, ...hostOptions()])
  const [before, proxy] = [await all('.'), (await compose('n1')).services['docker-proxy']]
  await setUp([...options, ...hostOptions()])
  t.same(await all('.'), before)
  const networks = (await readFile(join(directory, 'calls'), 'utf8'))
    .split('\n')
    .filter((call) => call.startsWith('network create'))
  t.equal(networks.length, 2, 'each network is created once')
  t.match(
    networks[0],
    /--driver overlay --attachable --internal .*--subnet 10\.200\.0\.0\/26 --ip-range 10\.200\.0\.32\/27 tenantry-engines$/,
  )

  const label = async (host: string, service: string) =>
    (await compose(host)).services[service]?.labels['org.tenantry.files']
  const [control, caddy] = [await label('n1', 'control-plane'), await label('n1', 'caddy')]
  await writeFile(
    join(files, 'regions.json'),
    (await read('regions.json')).replace('"egress": {}', '"egress": {},\n      "warm_stacks": 1'),
  )
  await writeFile(join(files, 'control-plane.env'), 'TENANTRY_AUDIT_DAYS=90\n')
  await setUp([...options, ...hostOptions()])
  t.not(await label('n1', 'control-plane'), control)
  t.equal(await label('n1', 'caddy'), caddy)
  t.same((await compose('n1')).services['docker-proxy'], proxy)
  t.match(await read('hosts/n2/control-plane/secrets/regions.json'), /"warm_stacks": 1/)
  t.equal((await compose('n2')).services['control-plane']?.environment?.['TENANTRY_AUDIT_DAYS'], '90')
})

t.test('Only with a certificate of the operator, browsers are required to use HTTPS', async (t) => {
  const { setUp, compose, files, read } = await openSetup(t)
  /** Returns the part of the Caddyfile that the setting selects. */
  const selected = async () => {
    const tls = (await compose('n1')).services['caddy']?.environment?.['TENANTRY_TLS'] ?? ''
    const [, snippet = ''] =
      new RegExp(`\\(tls-${tls}\\) \\{\\n(.*?)\\n\\}`, 's').exec(await read('hosts/n1/caddy/caddy/Caddyfile')) ?? []
    return snippet
  }
  const certificates = '\ttls /run/secrets/certificate.pem /run/secrets/key.pem'
  await setUp([...options, ...hostOptions()])
  t.equal(await selected(), certificates)
  await cp(join(files, 'hosts/n1/caddy/secrets'), join(files, 'certificates'), { recursive: true })
  await setUp([...options, ...hostOptions(), '--tls', 'files'])
  t.equal(await selected(), `${certificates}\n\theader Strict-Transport-Security max-age=31536000`)
})

t.test('With a control database of the operator, no cluster is made for it', async (t) => {
  const { setUp, compose, directory, read } = await openSetup(t)
  const file = join(directory, 'url')
  await writeFile(file, 'postgresql://postgres:secret@db.example.org/control\n')
  await setUp([...options, ...hostOptions(), '--control-database-url-file', file])
  const { services, networks } = await compose('n1')
  t.same(Object.keys(services).sort(), ['caddy', 'control-plane', 'docker-proxy', 'watchdog'])
  t.notOk('database' in networks)
  t.equal(
    await read('hosts/n1/control-plane/secrets/control-database-url'),
    'postgresql://postgres:secret@db.example.org/control\n',
  )
})

t.test('Options that cannot work are rejected', async (t) => {
  const cases: [args: string[], message: RegExp][] = [
    [[...options, ...hostOptions(hosts.slice(0, 2))], /Invalid value of --host: 2 of them\. Allowed: 3 to 16 hosts/],
    [[...options, ...hostOptions(['n1', ...hosts])], /Invalid value of --host: n1\. Allowed: ID=ADDRESS/],
    [[...options, ...hostOptions(['n1=10.99.0.9', ...hosts])], /Two hosts have the same id\./],
    [[...options, ...hostOptions(['n0=10.99.0.1', ...hosts])], /Two hosts have the same address\./],
    [[...options, ...hostOptions(['n0=10.99.0.256', ...hosts])], /Invalid value of --host: n0=10\.99\.0\.256\./],
    [
      [...options, ...hostOptions(['n0=10.99.0.5,disk=ssd', ...hosts])],
      /Invalid value of --host: n0=10\.99\.0\.5,disk=ssd\./,
    ],
    [[...options, ...hostOptions(), '--tls', 'acme'], /Invalid value of --tls: acme\. Allowed: internal, files\./],
    [[...options, ...hostOptions(), '--platform-range', '10.210.0.0/24'], /Invalid value of --platform-range/],
    [[...options, ...hostOptions(), '--platform-range', '10.200.0.0/16'], /Invalid value of --platform-range/],
    [[...options, ...hostOptions(), '--network-range', '10.0.0.0/24'], /--network-range: .* too small/],
    [[...options, ...hostOptions(), '--https-port', '0'], /Invalid value of --https-port: 0\. Allowed: 1 to 65535\./],
    [[...options, ...hostOptions(), '--docker-group', 'docker'], /Invalid value of --docker-group: docker\./],
    [[...options, ...hostOptions(), '--unknown', 'x'], /--unknown/],
    [['--docker-group', '998', ...hostOptions()], /Invalid value of --domain/],
    [['--docker-group', '998', '--domain', 'a.b', '--s3-bucket', 'x', ...hostOptions()], /belong together/],
  ]
  for (const [args, message] of cases)
    t.throws(() => readPlatformOptions(args), { name: 'ConfigurationError', message }, args.at(-1) ?? '')
})
