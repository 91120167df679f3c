// The platform on three hosts, for tests: control planes in containers of two of them, a control database and an S3 server that
// outlive each host.
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chmod, cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { clusterState, type ClusterState } from '#control-plane/clusters/cluster-state.ts'
import { clusterMembers } from '#control-plane/stacks/cluster-services.ts'
import { regionStackId } from '#control-plane/stacks/region-stack.ts'
import { armedCommand, controlContainer, createArmedControlPlanes } from './armed-control-planes.ts'
import { until } from './docker.ts'
import { clusterImages, type ApiResponse } from './docker-platform.ts'
import { query, startPostgres } from './postgres.ts'
import { readyRegion } from './ready-region.ts'
import { startS3Server } from './s3-server.ts'
import { startSwarmLab, type LabHost, type SwarmLab } from './swarm-lab.ts'

const images = {
  postgres: 'tenantry/postgres:latest',
  runtime: 'tenantry/tenant-runtime:latest',
  gateway: 'tenantry/gateway:latest',
}
const controlImage = 'tenantry/control-plane:latest'
const [controlPort, gatewayPort, postgresPort] = [4400, 8080, 5433]

export interface SwarmPlatform {
  lab: SwarmLab
  /** URL of the control plane on the first host, and the first platform key. */
  controlUrl: string
  platformKey: string
  /** Calls the API of the first control plane that responds. */
  call(method: string, path: string, body?: unknown): Promise<ApiResponse>
  /** Ports of the gateways on all hosts, for HTTP and SQL. */
  gatewayPort: number
  postgresPort: number
  /** Waits until the API returns a tenant for which `holds` is true. @throws Error with the last response */
  until(
    tenantId: string,
    holds: (tenant: Record<string, unknown>) => boolean,
    seconds?: number,
  ): Promise<Record<string, unknown>>
  /** Runs a statement in the control database. @returns its rows */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** ID of the stack of the cluster that tenants share, which the following functions take like that of a tenant. */
  sharedCluster: string
  /** Returns the member of a cluster that is its primary, and the host that it runs on. */
  primaryOf(tenantId: string): Promise<{ member: string; host: LabHost }>
  /** Returns the names of a tenant's containers on a host, and of its volumes. */
  containersOf(host: LabHost, tenantId: string): Promise<string[]>
  volumesOf(host: LabHost, tenantId: string): Promise<string[]>
  /** Returns the keys of all objects in the bucket. */
  storedKeys(): Promise<string[]>
  /** Waits until the API shows a host for which `holds` is true. */
  untilHost(host: LabHost, holds: (shown: Record<string, unknown>) => boolean): Promise<void>
  /** Returns the host of the control plane that leads. */
  leader(): Promise<LabHost>
  /** The hosts with a control plane, and the functions that arm its failpoints. */
  controlHosts: readonly LabHost[]
  armed: ReturnType<typeof createArmedControlPlanes>
  /** Returns whether the region is ready; undefined if no control plane leads. */
  readiness(): Promise<boolean | undefined>
  /** Makes the S3 server reachable, or unreachable. */
  connectStorage(isConnected: boolean): void
  /** Kills the control database, which then starts again. */
  crashControlDatabase(): Promise<void>
  /** Waits until all members of a cluster follow the primary. */
  untilComplete(tenantId: string): Promise<void>
  /** Returns the ends of the control planes' logs. */
  logs(): Promise<string>
}

/** Starts the platform and waits until its region is ready. The end of the test removes it. */
export async function startSwarmPlatform(t: Test): Promise<SwarmPlatform> {
  const lab = await startSwarmLab(t)
  const [postgres, s3] = await Promise.all([startPostgres(), startS3Server()])
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-swarm-'))
  t.teardown(async () => {
    await Promise.all([postgres.stop(), s3.stop(), rm(directory, { recursive: true, force: true })])
  })
  const control = new URL(postgres.url('control'))
  const storage = new URL(s3.settings.endpoint ?? '')
  const [controlLink, storageLink] = [
    await forward(t, lab.here, Number(control.port)),
    await forward(t, lab.here, Number(storage.port)),
  ]
  control.host = controlLink.address
  storage.host = storageLink.address

  const file = (name: string, text: string) => writeFile(join(directory, name), text)
  const controlHosts = lab.hosts.slice(0, 2)
  const region = {
    id: 'local',
    engine: 'swarm',
    domain: 'localhost',
    gateway_url: `http://${lab.hosts[0].address}:${gatewayPort}`,
    swarm: {
      hosts: lab.hosts.map(({ id, engine, address }) => ({
        id,
        host: engine,
        tls_directory: '/etc/tenantry/tls',
        address,
      })),
      network_range: `10.${randomInt(64, 192)}.0.0/16`,
      images,
      clusters: clusterImages,
      control_url: `http://control-plane:${controlPort}`,
      control_containers: controlHosts.map(({ id }) => ({ host: id, container: controlContainer })),
      gateway: { port: gatewayPort, postgres_port: postgresPort },
      egress: {},
      storage: {
        backend: 's3',
        s3: {
          endpoint: storage.origin,
          region: s3.settings.region,
          bucket: s3.settings.bucket,
          prefix: s3.settings.prefix,
          path_style: true,
          access_key_id: s3.settings.accessKeyId,
          secret_access_key_file: '/etc/tenantry/s3-secret',
        },
      },
    },
  }
  const backupTarget = { name: 'bucket', s3: { ...region.swarm.storage.s3, prefix: 'backups/' } }
  await Promise.all([
    file('internal-token', randomBytes(32).toString('base64url')),
    file('master-key', randomBytes(32).toString('base64')),
    file('regions.json', JSON.stringify([region])),
    file('s3-secret', s3.settings.secretAccessKey),
    file('targets.json', JSON.stringify([backupTarget])),
    cp(lab.hosts[0].tlsDirectory, join(directory, 'tls'), { recursive: true }),
  ])
  // The containers' user is not the one of the test.
  for (const path of ['.', 'tls', ...['ca', 'cert', 'key'].map((name) => `tls/${name}.pem`)])
    await chmod(join(directory, path), 0o755)
  const environment = {
    TENANTRY_HOST: '0.0.0.0',
    TENANTRY_PORT: String(controlPort),
    TENANTRY_LOG_LEVEL: 'warn',
    TENANTRY_CONTROL_DATABASE_URL: control.href,
    TENANTRY_INTERNAL_TOKEN_FILE: '/etc/tenantry/internal-token',
    TENANTRY_MASTER_KEY_FILE: '/etc/tenantry/master-key',
    TENANTRY_REGIONS_FILE: '/etc/tenantry/regions.json',
    TENANTRY_PLATFORM_KEY_FILE: '/var/lib/tenantry/platform-key',
    TENANTRY_BACKUP_TARGETS_FILE: '/etc/tenantry/targets.json',
    // A busy machine may need longer than the default for what a hold does.
    TENANTRY_MOVE_HOLD_MILLISECONDS: '30000',
  }
  const start = (host: LabHost) =>
    host.docker(
      ...['run', '--detach', '--name', controlContainer, '--restart', 'always'],
      ...['--publish', `${host.address}:${controlPort}:${controlPort}`],
      ...['--volume', `${directory}:/etc/tenantry:ro`, '--volume', 'control:/var/lib/tenantry'],
      ...Object.entries(environment).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
      controlImage,
      ...armedCommand,
    )
  await Promise.all(controlHosts.map(start))
  const logs = async () =>
    (
      await Promise.all(controlHosts.map((host) => host.docker('logs', '--tail', '60', controlContainer).catch(String)))
    ).join('\n--\n')
  const named = async (host: LabHost, tenantId: string, ...command: string[]) =>
    (await host.docker(...command)).split('\n').filter((name) => name.startsWith(`tenantry-${tenantId}-`))

  /** Returns the end of what a member of a cluster has written, on each host. */
  const memberLogs = (cluster: string, member: string): Promise<string[]> =>
    Promise.all(
      lab.hosts.map(async (host) => {
        const names = await named(host, cluster, 'ps', '--all', '--format', '{{.Names}}').catch(() => [])
        const own = names.filter((name) => name.startsWith(`tenantry-${cluster}-${member}-`))
        const texts = await Promise.all(own.map((name) => host.docker('logs', '--tail', '60', name).catch(String)))
        return `${host.id}: ${own.join(' ')}\n${texts.join('\n')}`
      }),
    )
  const url = (host: LabHost) => `http://${host.address}:${controlPort}`
  const isUp = (host: LabHost) =>
    fetch(`${url(host)}/health`).then(
      ({ ok }) => ok,
      () => false,
    )
  const platformKey = await until(async () => {
    const areUp = await Promise.all(controlHosts.map(isUp))
    if (areUp.includes(false)) return undefined
    // The control plane that was there first has it.
    const read = ['exec', controlContainer, 'cat', '/var/lib/tenantry/platform-key']
    const keys = await Promise.all(controlHosts.map((host) => host.docker(...read).catch(() => undefined)))
    return keys.find((key) => key !== undefined)
  }, 120).catch(async (cause: unknown) => {
    throw new Error(`No control plane responds.\n${await logs()}`, { cause })
  })

  const callOn = async (host: LabHost, method: string, path: string, body?: unknown): Promise<ApiResponse> => {
    const response = await fetch(`${url(host)}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${platformKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    })
    const text = await response.text()
    return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> }
  }
  const call: SwarmPlatform['call'] = async (method, path, body) => {
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
  const conditionOn = (host: LabHost) => readyRegion(url(host), platformKey)
  /** Returns what the control planes know of the region, and what they do in the control database. */
  const describePlanes = async (): Promise<string> => {
    const known = await Promise.all(controlHosts.map((host) => callOn(host, 'GET', '/v1/regions').catch(String)))
    const sessions = await query(
      postgres.url('control'),
      `select (select epoch::text from installation), pid, client_addr::text, application_name, state, wait_event, query,
        (now() - state_change)::text as since
      from pg_stat_activity where backend_type = 'client backend' and (state <> 'idle' or application_name like '%leader')`,
    )
    return [...known, ...sessions].map((one) => JSON.stringify(one)).join('\n')
  }
  const conditions = () => Promise.all(controlHosts.map((host) => conditionOn(host).catch(() => undefined)))
  const leader = () =>
    until(async () => {
      const found = await conditions()
      return controlHosts[found.findIndex((isReady) => isReady !== undefined)]
    }, 60)
  const [{ name: installation }] = (await query(postgres.url('control'), 'select name from installation')) as [
    { name: string },
  ]
  const sharedCluster = regionStackId('local', installation)
  await until(async () => {
    // A control plane knows no key yet when it starts for the first time.
    return (await conditions()).includes(true) ? true : undefined
  }, 240).catch(async (cause: unknown) => {
    const members = await Promise.all(clusterMembers.map((member) => memberLogs(sharedCluster, member)))
    const planes = await describePlanes()
    throw new Error(`The region is not ready.\n${[planes, ...members.flat(), await logs()].join('\n')}`, { cause })
  })

  /** Returns the state of a cluster as a member reports it; undefined if none responds. */
  const clusterOf = async (tenantId: string): Promise<ClusterState | undefined> => {
    for (const host of lab.hosts) {
      const command = ['/usr/local/bin/http-get', '8008', '/cluster']
      const names = await host.docker('ps', '--format', '{{.Names}}').catch(() => '')
      const member = names.split('\n').find((name) => name.startsWith(`tenantry-${tenantId}-postgres-`))
      const found = member === undefined ? '' : await host.docker('exec', member, ...command).catch(() => '')
      const state = clusterState(found.slice(found.indexOf('\r\n\r\n') + 4))
      if (state?.primary !== undefined) return state
    }
    return undefined
  }

  return {
    lab,
    controlUrl: url(controlHosts[0] ?? lab.hosts[0]),
    platformKey,
    call,
    logs,
    leader,
    controlHosts,
    armed: createArmedControlPlanes({ directory, hosts: controlHosts, isUp, leader, logs }),
    readiness: async () => (await conditions()).find((isReady) => isReady !== undefined),
    connectStorage: storageLink.connect,
    crashControlDatabase: () => postgres.crash(),
    sharedCluster,
    primaryOf: (tenantId) =>
      until(async () => {
        const member = (await clusterOf(tenantId))?.primary
        if (member === undefined) return undefined
        for (const host of lab.hosts) {
          const names = await named(host, tenantId, 'ps', '--format', '{{.Names}}').catch(() => [])
          if (names.some((name) => name.startsWith(`tenantry-${tenantId}-${member}-`))) return { member, host }
        }
        return undefined
      }, 60),
    async untilComplete(tenantId) {
      await until(async () => {
        const state = await clusterOf(tenantId)
        const isComplete =
          state?.hasQuorum === true && state.candidates.length === 2 && state.notReplicating.length === 0
        return isComplete ? true : undefined
      }, 180).catch(async (cause: unknown) => {
        const state = await clusterOf(tenantId)
        const members = await Promise.all((state?.notReplicating ?? []).map((member) => memberLogs(tenantId, member)))
        const text = [JSON.stringify(state), ...members.flat(), await logs()].join('\n')
        throw new Error(`The cluster ${tenantId} is not complete: ${text}`, { cause })
      })
    },
    containersOf: (host, tenantId) => named(host, tenantId, 'ps', '--all', '--format', '{{.Names}}'),
    volumesOf: (host, tenantId) => named(host, tenantId, 'volume', 'ls', '--format', '{{.Name}}'),
    storedKeys: async () => (await s3.keys()).whole,
    async untilHost({ id }, holds) {
      await until(async () => {
        const { body } = await call('GET', '/v1/regions/local/hosts')
        const shown = (body['hosts'] as Record<string, unknown>[] | undefined)?.find(
          (one) => one['id'] === `local.${id}`,
        )
        return shown !== undefined && holds(shown) ? true : undefined
      }, 120)
    },
    gatewayPort,
    postgresPort,
    sql: (text, values) => query(postgres.url('control'), text, values),
    async until(tenantId, holds, seconds = 120) {
      const deadline = Date.now() + seconds * 1000
      for (;;) {
        const response = await call('GET', `/v1/tenants/${tenantId}`).catch(() => undefined)
        if (response !== undefined && holds(response.body)) return response.body
        if (Date.now() > deadline)
          throw new Error(`not in ${seconds} s: ${JSON.stringify(response?.body)}\n${await logs()}`)
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
    },
  }
}

/** A port of the lab's address that leads to a service at 127.0.0.1. */
interface Forwarded {
  /** The host and the port, `host:port`. */
  address: string
  /** Ends all connections and rejects new ones, or accepts them again. */
  connect(isConnected: boolean): void
}

/** Forwards a port of the lab's address of this machine to the same service at 127.0.0.1. */
export async function forward(t: Pick<Test, 'teardown'>, address: string, target: number): Promise<Forwarded> {
  const clients = new Set<Socket>()
  let isConnected = true
  const server = createServer((client) => {
    if (!isConnected) {
      client.destroy()
      return
    }
    const onward = connect(target, '127.0.0.1')
    clients.add(client)
    client.on('error', () => onward.destroy()).pipe(onward)
    onward.on('error', () => client.destroy()).pipe(client)
    client.on('close', () => {
      clients.delete(client)
      onward.destroy()
    })
    onward.on('close', () => client.destroy())
  })
  server.listen(0, address)
  await once(server, 'listening')
  t.teardown(() => server.close())
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('no port')
  return {
    address: `${address}:${bound.port}`,
    connect(connected) {
      isConnected = connected
      if (!connected) for (const client of clients) client.destroy()
    },
  }
}
