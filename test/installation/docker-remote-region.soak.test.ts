// A region whose Docker Engine is on another host: created, served, repaired and removed through TLS and a private link, with
// only the steps of docs/operate/remote-region.md. Its containers reach nothing else.
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chmod, chown, copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { dockerHost } from '#control-plane/engines/docker/docker-host.ts'
import { parseRange, regionAddress } from '#control-plane/stacks/subnets.ts'
import { engineSocket } from '#test/support/docker.ts'
import { removeAll, startDockerPlatform, testEngine } from '#test/support/docker-platform.ts'
import { freePort, query } from '#test/support/postgres.ts'
import { copyImages, startRemoteEngine } from '#test/support/remote-engine.ts'
import { startSshd } from '#test/support/sshd.ts'

const run = promisify(execFile)
const project = new URL('../../', import.meta.url).pathname
const images = {
  postgres: 'tenantry/postgres:latest',
  runtime: 'tenantry/tenant-runtime:latest',
  gateway: 'tenantry/gateway:latest',
}
const lines = (text: string) => text.split('\n').filter((line) => line !== '')

interface Tenant {
  id: string
  name: string
  key: string
  databaseUrl: string
}

t.test('A region on another host', { timeout: 900_000 }, async (t) => {
  const remote = await startRemoteEngine(t)
  await copyImages(Object.values(images), remote)
  const range = `10.${randomInt(192, 224)}.${randomInt(0, 16) * 16}.0/20`
  const hostThere = regionAddress(parseRange(range), 1)
  const [port, postgresPort] = await Promise.all([freePort(), freePort()])
  const gatewayUrl = `http://${remote.there}:${port}`
  let controlPort = 0
  const platform = await startDockerPlatform({
    deleteGraceSeconds: 0,
    regions: (given) => {
      controlPort = given
      return [
        {
          id: 'remote',
          engine: 'docker',
          domain: 'localhost',
          gateway_url: gatewayUrl,
          docker: {
            host: remote.host,
            tls_directory: remote.tlsDirectory,
            network_range: range,
            images,
            control_url: `http://${hostThere}:${given}`,
            gateway: { host_address: remote.there, port, postgres_port: postgresPort },
          },
        },
      ]
    },
  })
  t.teardown(() => platform.stop())
  const engine = dockerHost({ host: remote.host, tlsDirectory: remote.tlsDirectory })
  t.teardown(async () => {
    await platform.stopControlPlanes()
    await removeAll(engine, platform.installation)
    engine.close()
  })

  const create = async (name: string, plan: string, region: string): Promise<Tenant> => {
    const { status, body } = await platform.call('POST', '/v1/tenants', { name, plan, region }, { prefer: 'wait=60' })
    if (status !== 201 || body['status'] !== 'ready') throw new Error(`${name}: ${status} ${JSON.stringify(body)}`)
    return {
      id: String(body['tenant_id']),
      name,
      key: (body['keys'] as { secret_key: string }).secret_key,
      databaseUrl: String(body['database_url']),
    }
  }
  const call = async ({ name, key }: Tenant, method: string, path: string, body?: string): Promise<string> => {
    const init = {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'text/plain' }) },
      ...(body === undefined ? {} : { body }),
    }
    return fetch(`${gatewayUrl}/t/${name}${path}`, init).then(
      (response) => response.text(),
      () => '',
    )
  }
  const file = '/storage/v1/object/system/kept.txt'
  const ours = (...args: string[]) =>
    remote.shell('docker', ...args, '--filter', `label=tenantry.installation=${platform.installation}`)
  const containerOf = (stack: string, service: string) =>
    remote.shell(
      'docker',
      'ps',
      '-a',
      '--filter',
      `name=tenantry-${stack}`,
      '--filter',
      `label=tenantry.service=${service}`,
      '--format',
      '{{.Names}}',
    )
  const until = async (what: string, holds: () => Promise<boolean>, seconds = 90) => {
    const deadline = Date.now() + seconds * 1000
    while (!(await holds())) {
      if (Date.now() > deadline) throw new Error(`not in ${seconds} s: ${what}`)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }

  await t.test('Without the link the region starts its services, but its tenants do not become ready', async (t) => {
    await until("the region's services run", async () => lines(await ours('ps', '-q')).length === 3)
    const { body } = await platform.call('POST', '/v1/tenants', { name: 'early', plan: 'Pro', region: 'remote' })
    const early = await platform.until(String(body['tenant_id']), ({ reason }) => reason !== null, 120)
    t.match(early, { status: 'pending', reason: /^the (runtime|gateway|database) / })
    const local = await create('local', 'Free', 'local')
    t.ok(local.id, 'the other region accepts tenants')
  })

  await remote.route(`${range.split('/')[0]}/25`)
  const link = [
    '--network-range',
    range,
    '--link',
    remote.link,
    '--control',
    remote.here,
    '--control-port',
    String(controlPort),
  ]
  await t.test('deploy/remote-host opens the link, and a second run changes nothing', async (t) => {
    t.equal(
      await remote.shell(`${project}deploy/remote-host`, ...link),
      `ready: control_url http://${hostThere}:${controlPort}`,
    )
    const rules = await remote.shell('iptables-save')
    await remote.shell(`${project}deploy/remote-host`, ...link)
    const withoutCounters = (text: string) => text.replaceAll(/^[#:].*$/gm, '')
    t.equal(
      withoutCounters(await remote.shell('iptables-save')),
      withoutCounters(rules),
      'the rules are equal after a second run',
    )
    const { tenants } = (await platform.call('GET', '/v1/tenants?limit=100')).body as {
      tenants: { tenant_id: string; name: string }[]
    }
    await platform.until(
      tenants.find(({ name }) => name === 'early')?.tenant_id ?? '',
      ({ status }) => status === 'ready',
      120,
    )
  })

  const [paying, shared] = [await create('paying', 'Pro', 'remote'), await create('shared', 'Free', 'remote')]

  await t.test('The region serves tenants with and without their own database', async (t) => {
    for (const tenant of [paying, shared]) {
      await call(tenant, 'POST', file, `of ${tenant.name}`)
      t.equal(await call(tenant, 'GET', file), `of ${tenant.name}`)
      t.equal(new URL(tenant.databaseUrl).host, `${remote.there}:${postgresPort}`)
      await query(tenant.databaseUrl, 'create table kept (text text)')
      await query(tenant.databaseUrl, 'insert into kept values ($1)', [tenant.name])
      t.same(await query(tenant.databaseUrl, 'select text from kept'), [{ text: tenant.name }])
      await until(
        `${tenant.name} is healthy`,
        async () => (await platform.call('GET', `/v1/tenants/${tenant.id}/health`)).body['status'] === 'healthy',
      )
    }
    t.ok(lines(await ours('ps', '-q')).length >= 5, 'their containers run on the remote host')
    const { containers } = await platform.host.observe(
      { installation: platform.installation },
      AbortSignal.timeout(30_000),
    )
    t.same(
      containers.filter(({ labels }) => labels.stack.startsWith('t_')),
      [],
      'no tenant container runs on this host',
    )
  })

  await t.test('Killed and removed containers come back', async () => {
    for (const service of ['runtime', 'postgres']) {
      await remote.shell('docker', 'kill', await containerOf(paying.id, service))
      await until(`${service} is back`, async () => (await call(paying, 'GET', file)) === 'of paying')
    }
    const region = `region-remote-${platform.installation.slice(0, 8)}`
    for (const service of ['gateway', 'runtime-0', 'postgres']) {
      await remote.shell('docker', 'rm', '-f', await containerOf(region, service))
      await until(
        `${service} is back`,
        async () =>
          (await call(paying, 'GET', file)) === 'of paying' && (await call(shared, 'GET', file)) === 'of shared',
      )
    }
  })

  await t.test('Containers do not reach the internet, and on the link only the control plane', async (t) => {
    const outside = createServer((_request, response) => response.end()).listen(0, '0.0.0.0')
    await once(outside, 'listening')
    t.teardown(() => outside.close())
    const { port: worldPort } = outside.address() as { port: number }
    const reaches = (container: string, host: string, to: number) =>
      remote
        .shell(
          'docker',
          'exec',
          container,
          'timeout',
          '2',
          'bash',
          '-c',
          `exec 3<>/dev/tcp/${host}/${to} && echo reached`,
        )
        .then(
          (text) => text === 'reached',
          () => false,
        )
    const region = `region-remote-${platform.installation.slice(0, 8)}`
    t.ok(
      await reaches(await containerOf(region, 'gateway'), remote.world, worldPort),
      'the published gateway reaches the internet, so the address is reachable',
    )
    t.ok(
      await reaches(await containerOf(region, 'runtime-0'), hostThere, controlPort),
      "the region's runtime reaches the control plane",
    )
    for (const [stack, service] of [
      [region, 'runtime-0'],
      [region, 'postgres'],
      [paying.id, 'runtime'],
      [paying.id, 'postgres'],
    ] as const) {
      const container = await containerOf(stack, service)
      t.notOk(await reaches(container, remote.world, worldPort), `${service}: not the internet`)
      t.notOk(await reaches(container, '169.254.169.254', 80), `${service}: no cloud metadata`)
      t.notOk(await reaches(container, remote.here, controlPort), `${service}: not the control plane's host`)
      t.notOk(await reaches(container, remote.here, worldPort), `${service}: no other port of that host`)
      t.notOk(await reaches(container, remote.here, platform.postgres.port), `${service}: not the control database`)
      if (stack === paying.id)
        t.notOk(await reaches(container, hostThere, controlPort), `${service} of a tenant: not the control plane`)
    }
  })

  await t.test('Without the rules the link is closed, and the tenants are still served', async (t) => {
    const reachable = () =>
      fetch(`http://${regionAddress(parseRange(range), 11)}:4402/`, { signal: AbortSignal.timeout(3_000) }).then(
        (response) => response.status > 0,
        () => false,
      )
    t.ok(await reachable())
    await remote.shell(`${project}deploy/remote-host`, ...link, '--remove', 'yes')
    t.notOk(await reachable(), "the region's network is closed by default")
    t.equal(await call(paying, 'GET', file), 'of paying')
    t.notMatch(await remote.shell('iptables-save'), new RegExp(remote.here.replaceAll('.', '\\.')), 'no rule remains')
    await remote.shell(`${project}deploy/remote-host`, ...link)
    t.ok(await reachable())
  })

  await t.test('Deleted tenants leave no objects on the engine', async (t) => {
    const { tenants } = (await platform.call('GET', '/v1/tenants?limit=100')).body as {
      tenants: { tenant_id: string; region: string }[]
    }
    for (const { tenant_id: id } of tenants) {
      t.match(await platform.call('DELETE', `/v1/tenants/${id}?purge=true`, undefined, { prefer: 'wait=60' }), {
        body: { operation: { state: 'succeeded' } },
      })
    }
    for (const kind of [
      ['ps', '-a', '--format', '{{.Names}}'],
      ['network', 'ls', '--format', '{{.Name}}'],
      ['volume', 'ls', '--format', '{{.Name}}'],
    ]) {
      t.same(
        lines(await ours(...kind)).filter((name) => name.includes('-t_')),
        [],
        kind.join(' '),
      )
    }
  })
})

t.test(
  "The control plane's image reaches an engine by SSH with the key in its user's home",
  { timeout: 300_000 },
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'tenantry-ssh-'))
    t.teardown(() => rm(directory, { recursive: true }))
    await mkdir(join(directory, 'server'))
    const { port, identityFile, knownHostsFile } = await startSshd(t, join(directory, 'server'), engineSocket())
    const home = join(directory, 'home')
    await mkdir(home)
    for (const [from, to] of [
      [identityFile, 'id_ed25519'],
      [knownHostsFile, 'known_hosts'],
    ] as const) {
      await copyFile(from, join(home, to))
      await chown(join(home, to), 10_001, 10_001)
      await chmod(join(home, to), 0o600)
    }
    await chown(home, 10_001, 10_001)
    await chmod(home, 0o700)
    const script = `
    import { dockerHost } from '/app/control-plane/src/engines/docker/docker-host.ts'
    const host = dockerHost({ host: 'ssh://root@127.0.0.1:${port}' })
    console.log(JSON.stringify(await host.info(AbortSignal.timeout(30_000))))
    host.close()`
    const hardened = [
      '--read-only',
      '--cap-drop',
      'ALL',
      '--security-opt',
      'no-new-privileges',
      '--tmpfs',
      '/tmp',
      '--user',
      '10001:10001',
      '--network',
      'host',
    ]
    const { stdout } = await run('docker', [
      '-H',
      testEngine(),
      'run',
      '--rm',
      ...hardened,
      '--mount',
      `type=bind,source=${home},target=/var/lib/tenantry/.ssh,readonly`,
      'tenantry/control-plane:latest',
      '--input-type=module',
      '--eval',
      script,
    ])
    t.match(JSON.parse(stdout), { apiVersion: /^1\./ })
  },
)
