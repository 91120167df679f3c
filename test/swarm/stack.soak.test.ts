// A platform on three hosts that only `deploy/setup --swarm` and Compose have set up: the demo passes for each isolation model, and
// control planes, control database and tenants continue after the loss of a host, while its containers are replaced, and when an empty
// machine replaces it, after which the loss of another one stops nothing.
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { clusterState } from '#control-plane/clusters/cluster-state.ts'
import { ensureCompose } from '#scripts/compose.ts'
import { until } from '#test/support/docker.ts'
import type { ApiResponse } from '#test/support/docker-platform.ts'
import { startS3Server } from '#test/support/s3-server.ts'
import { startSwarmLab, type LabHost } from '#test/support/swarm-lab.ts'
import { forward } from '#test/support/swarm-platform.ts'
import { emptyHost, untilEtcdServes } from './empty-host.ts'
import { startLoadedTenant } from './loaded-tenant.ts'
import { checkReplicationTls } from './replication-tls.ts'

const run = promisify(execFile)
const project = new URL('../../', import.meta.url).pathname
const domain = 'apps.example.org'
const [controlPort, gatewayPort, postgresPort, httpsPort] = [4400, 8080, 5433, 443]
const models = ['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant']

/** Sets the platform up as docs/operate/several-hosts.md describes. */
async function startPlatform(t: Test) {
  const lab = await startSwarmLab(t)
  const [s3, compose] = [await startS3Server(), await ensureCompose()]
  const files = await mkdtemp(join(tmpdir(), 'tenantry-stack-'))
  t.teardown(async () => {
    await Promise.all([s3.stop(), rm(files, { recursive: true, force: true })])
  })
  const storage = new URL(s3.settings.endpoint ?? '')
  storage.host = (await forward(t, lab.here, Number(storage.port))).address
  const secret = join(files, 's3-secret-key')
  await writeFile(secret, s3.settings.secretAccessKey)
  const [first] = lab.hosts
  const range = randomInt(64, 192)
  const options: Record<string, string> = {
    domain,
    files,
    'docker-socket': first.socket,
    'network-range': `10.${range}.0.0/16`,
    'platform-range': `10.${range - 1}.0.0/24`,
    'control-address': 'host',
    'gateway-port': String(gatewayPort),
    'postgres-port': String(postgresPort),
    's3-endpoint': storage.origin,
    's3-bucket': s3.settings.bucket,
    's3-access-key-id': s3.settings.accessKeyId,
    's3-secret-key-file': secret,
    's3-path-style': 'true',
    's3-region': s3.settings.region,
    's3-prefix': s3.settings.prefix,
  }
  await run(
    join(project, 'deploy/setup'),
    [
      '--swarm',
      ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
      ...lab.hosts.flatMap(({ id, address, socket }) => ['--host', `${id}=${address},docker-socket=${socket}`]),
    ],
    { env: { ...process.env, DOCKER_HOST: `unix://${first.socket}` } },
  )
  /** Starts or replaces the containers of a host. The command is repeated if Docker does not find a network, as the guide requires. */
  const up = async (host: LabHost, ...more: string[]): Promise<void> => {
    const directory = join(files, 'hosts', host.id)
    const common = ['--project-directory', directory, '--env-file', join(directory, '.env')]
    const file = ['--file', join(directory, 'docker-compose.yml')]
    for (let attempt = 1; ; attempt++) {
      try {
        await compose([...common, ...file, 'up', '--detach', ...more], { DOCKER_HOST: `unix://${host.socket}` })
        return
      } catch (error) {
        if (attempt === 3 || !/network \S+ not found|attaching to network failed/.test(String(error))) throw error
      }
    }
  }
  for (const host of lab.hosts) await up(host)

  const controlHosts = lab.hosts.slice(0, 2)
  const logs = async () => {
    const of = (host: LabHost, name: string) => host.docker('logs', '--tail', '30', `tenantry-${name}`).catch(String)
    const parts = ['control-plane', 'docker-proxy', 'etcd-1', 'postgres-1', 'postgres-2', 'caddy']
    const all = await Promise.all(controlHosts.flatMap((host) => parts.map((part) => of(host, part))))
    return all.join('\n--\n')
  }
  const explained = async <T>(what: string, work: Promise<T>): Promise<T> =>
    work.catch(async (cause: unknown) => {
      throw new Error(`${what}\n${await logs()}`, { cause })
    })
  const key = await explained(
    'No control plane has written the platform key.',
    until(async () => {
      const read = ['exec', 'tenantry-control-plane', 'cat', '/var/lib/tenantry/platform-key']
      const found = await Promise.all(controlHosts.map((host) => host.docker(...read).catch(() => undefined)))
      return found.find((one) => one !== undefined)
    }, 240),
  )
  const callOn = async (host: LabHost, method: string, path: string, body?: unknown): Promise<ApiResponse> => {
    const response = await fetch(`http://${host.address}:${controlPort}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    })
    const text = await response.text()
    return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> }
  }
  const call = async (method: string, path: string, body?: unknown): Promise<ApiResponse> => {
    let failure: unknown
    for (const host of controlHosts) {
      try {
        return await callOn(host, method, path, body)
      } catch (cause) {
        failure = cause
      }
    }
    throw failure
  }
  const isReady = async (host: LabHost) => {
    const { body } = await callOn(host, 'GET', '/v1/regions').catch(() => ({ body: {} as Record<string, unknown> }))
    const [region] = (body['regions'] as { conditions: { type: string; status: string }[] }[] | undefined) ?? []
    return region?.conditions.find(({ type }) => type === 'Ready')?.status === 'True'
  }
  await explained(
    'The region is not ready.',
    until(async () => ((await Promise.all(controlHosts.map(isReady))).includes(true) ? true : undefined), 300),
  )
  const authorityFile = join(files, 'authorities/clients.pem')
  const authority = await readFile(authorityFile, 'utf8')
  const names = join(files, 'names')
  await writeFile(names, `127.0.0.1 localhost\n${first.address} ${domain}\n`)
  return {
    lab,
    call,
    up,
    logs,
    gatewayPort,
    postgresPort,
    controlHosts,
    /** Runs `npm run demo`, for which the domain has the address of the first host. @returns its output @throws with it if it fails */
    async demo(isolation: string): Promise<string> {
      const controlUrl = `http://${controlHosts[0]?.address ?? ''}:${controlPort}`
      const options = ['--control-url', controlUrl, '--key-file', '-', '--plan', 'Pro', '--isolation', isolation]
      const inside = 'mount --bind "$0" /etc/hosts && exec "$@"'
      const command = ['--mount', 'sh', '-c', inside, names, process.execPath, 'examples/demo.ts', ...options]
      const env = { ...process.env, NODE_EXTRA_CA_CERTS: authorityFile }
      const running = run('unshare', command, { cwd: project, env })
      running.child.stdin?.end(key)
      const { stdout } = await running
      return stdout
    },
    /** Sends a GET to Caddy on a host. @returns the status and the text; the status 0 if it does not respond */
    async viaCaddy(host: LabHost, path: string, token: string): Promise<{ status: number; text: string }> {
      const sent = request({
        host: host.address,
        port: httpsPort,
        path,
        servername: domain,
        ca: authority,
        agent: false,
        headers: { host: domain, authorization: `Bearer ${token}` },
        timeout: 10_000,
      })
      sent.on('timeout', () => sent.destroy(new Error('No response.')))
      sent.end()
      try {
        const [response] = (await once(sent, 'response')) as [IncomingMessage]
        return { status: response.statusCode ?? 0, text: await text(response) }
      } catch (error) {
        return { status: 0, text: String(error) }
      }
    },
    async until(id: string, holds: (tenant: Record<string, unknown>) => boolean, seconds = 240) {
      const found = until(async () => {
        const { body } = await call('GET', `/v1/tenants/${id}`).catch(() => ({ body: {} as Record<string, unknown> }))
        return holds(body) ? body : undefined
      }, seconds)
      return explained(`The tenant ${id} does not get the wanted state.`, found)
    },
    /** Waits until all members of the control database follow its primary. */
    async untilDatabaseComplete(): Promise<void> {
      const found = until(async () => {
        for (const [at, host] of lab.hosts.entries()) {
          const read = ['exec', `tenantry-postgres-${at + 1}`, '/usr/local/bin/http-get', '8008', '/cluster']
          const text = await host.docker(...read).catch(() => '')
          const state = clusterState(text.slice(text.indexOf('\r\n\r\n') + 4))
          if (state?.hasQuorum === true && state.candidates.length === 2 && state.notReplicating.length === 0)
            return true
        }
        return undefined
      }, 240)
      await explained('The control database is not complete.', found)
    },
    /** Returns the names of the platform's containers on a host that run. */
    async running(host: LabHost): Promise<string[]> {
      const label = 'label=com.docker.compose.project=tenantry'
      const names = await host.docker('ps', '--filter', label, '--format', '{{.Names}}')
      return names
        .split('\n')
        .filter((name) => name !== '')
        .sort()
    },
  }
}

t.test('A platform of deploy/setup --swarm continues after the loss of a host', { timeout: 2_700_000 }, async (t) => {
  const platform = await startPlatform(t)
  const { hosts } = platform.lab
  await platform.untilDatabaseComplete()
  const members = hosts.slice(0, 3).map((host, at) => ({ host, container: `tenantry-postgres-${at + 1}` }))
  const isReplica = [
    'psql',
    '-XAt',
    '-h',
    '/run/postgresql',
    '-U',
    'postgres',
    '-d',
    'postgres',
    '-c',
    'select pg_is_in_recovery()',
  ]
  const roles = await Promise.all(
    members.map(async ({ host, container }) => (await host.docker('exec', container, ...isReplica)).trim()),
  )
  const [primary, replica] = [members[roles.indexOf('f')], members[roles.indexOf('t')]]
  if (primary === undefined || replica === undefined)
    throw new Error(`The control database has the roles ${roles.join(', ')}.`)
  await checkReplicationTls(t, primary, primary.container.replace('tenantry-', ''), replica)
  const expected = new Map(
    await Promise.all(hosts.map(async (host) => [host.id, await platform.running(host)] as const)),
  )

  for (const isolation of models) {
    const output = await platform.demo(isolation)
    t.match(output, /create the tenant demo-/, `the demo passes with ${isolation}`)
    t.comment(output)
  }

  const single = await platform.call('POST', '/v1/tenants', {
    name: 'eve',
    plan: 'Enterprise',
    region: 'local',
    isolation: 'database-per-tenant',
  })
  t.match(single, { status: 201 })
  const singleId = String(single.body['tenant_id'])
  const secretKey = String((single.body['keys'] as Record<string, unknown>)['secret_key'])
  const loaded = [
    await startLoadedTenant(t, platform, 'ada', 'cluster-per-tenant'),
    await startLoadedTenant(t, platform, 'bob', 'schema-per-tenant'),
  ]
  await platform.until(singleId, ({ status }) => status === 'ready')
  const buckets = '/t/eve/storage/v1/bucket'
  for (const host of hosts) {
    const serves = async () => ((await platform.viaCaddy(host, buckets, secretKey)).status === 200 ? true : undefined)
    t.ok(await until(serves, 60), `Caddy on ${host.id} reaches the gateways`)
  }

  const { body } = await platform.call('GET', '/v1/regions/local/hosts')
  const shown = body['hosts'] as { id: string; services: { tenant_id: string }[] }[]
  const hasSingle = (host: LabHost) =>
    shown.some(({ id, services }) => id === `local.${host.id}` && services.some(({ tenant_id: of }) => of === singleId))
  const lost = platform.controlHosts.find((host) => !hasSingle(host))
  if (lost === undefined) throw new Error('no host to lose')
  const others = hosts.filter((host) => host !== lost)
  const acknowledged = async (rows: number) => {
    await Promise.all(loaded.map(async ({ writer }) => writer.acknowledged(writer.count() + rows, 120)))
    return loaded.map(({ writer }) => writer.takeMaxPause()).join(' and ')
  }
  await acknowledged(1)
  lost.kill()
  t.comment(`${lost.id} is lost, with pauses of ${await acknowledged(20)} ms`)
  const late = await until(async () => {
    const tenant = { name: 'fay', plan: 'Free', region: 'local' }
    const response = await platform.call('POST', '/v1/tenants', tenant).catch(() => undefined)
    return response?.status === 201 ? response : undefined
  }, 120).catch(async (cause: unknown) => {
    throw new Error(`No control plane creates a tenant.\n${await platform.logs()}`, { cause })
  })
  await platform.until(String(late.body['tenant_id']), ({ status }) => status === 'ready')
  for (const host of others) {
    const failed: object[] = []
    const serves = async () => {
      const response = await platform.viaCaddy(host, buckets, secretKey)
      if (response.status !== 200) failed.push(response)
      return response.status === 200 ? true : undefined
    }
    t.ok(await until(serves, 60), `Caddy on ${host.id} serves`)
    t.comment(`${failed.length} failed before, the first with ${JSON.stringify(failed[0])}`)
  }

  await lost.start()
  await until(async () => {
    const running = await platform.running(lost).catch(() => [])
    return JSON.stringify(running) === JSON.stringify(expected.get(lost.id)) ? true : undefined
  }, 240)
  await platform.untilDatabaseComplete()
  t.pass('all containers of the returned host run again, without a command')

  for (const host of hosts) {
    await platform.up(host, '--force-recreate')
    await platform.untilDatabaseComplete()
    t.comment(`the containers of ${host.id} were replaced, with pauses of ${await acknowledged(20)} ms`)
  }
  await emptyHost(lost, ['tenantry-watchdog', 'tenantry-docker-proxy'])
  t.comment(`${lost.id} was emptied, with pauses of ${await acknowledged(20)} ms`)
  await platform.up(lost)
  const number = hosts.indexOf(lost) + 1
  const [helper, another] = others
  if (helper === undefined || another === undefined) throw new Error('no other hosts')
  const replace = ['/usr/local/bin/etcd-access', 'replace', `etcd-${number}`]
  await helper.docker('exec', `tenantry-etcd-${hosts.indexOf(helper) + 1}`, ...replace)
  await untilEtcdServes(lost, /^tenantry-etcd-/)
  await platform.untilDatabaseComplete()
  await untilEtcdServes(lost, /^tenantry-region-.*-etcd-/)
  for (const { untilReady } of loaded) await untilReady()
  t.comment(`an empty machine has replaced ${lost.id}, with pauses of ${await acknowledged(20)} ms`)
  another.kill()
  t.comment(`${another.id} is lost after that, with pauses of ${await acknowledged(20)} ms`)
  await another.start()
  await platform.untilDatabaseComplete()
  for (const { untilReady, finish } of loaded) {
    await untilReady()
    await finish(t)
  }
  for (const host of hosts)
    t.notMatch(
      await host.docker('logs', 'tenantry-docker-proxy'),
      'Rejected a call',
      `no call on ${host.id} was rejected`,
    )
})
