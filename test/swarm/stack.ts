// A platform on three hosts that only `deploy/setup --swarm` and Compose set up, as docs/operate/several-hosts.md describes.
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
import type { Test } from 'tap'
import { clusterState } from '#control-plane/clusters/cluster-state.ts'
import { ensureCompose } from '#scripts/compose.ts'
import { until } from '#test/support/docker.ts'
import type { ApiResponse } from '#test/support/docker-platform.ts'
import { readyRegion } from '#test/support/ready-region.ts'
import { startS3Server } from '#test/support/s3-server.ts'
import { startSwarmLab, type LabHost } from '#test/support/swarm-lab.ts'
import { forward } from '#test/support/swarm-platform.ts'

const run = promisify(execFile)
const project = new URL('../../', import.meta.url).pathname
/** The domain of the platform. */
export const domain = 'apps.example.org'
const [controlPort, gatewayPort, postgresPort, httpsPort] = [4400, 8080, 5433, 443]

/** Hosts with or without a platform. */
export type Stack = Awaited<ReturnType<typeof openStack>>
/** A platform that serves tenants. */
export type StackPlatform = Awaited<ReturnType<typeof connectStack>>

/** Starts three hosts without a platform, and an S3 server. */
export async function openStack(t: Pick<Test, 'teardown'>) {
  const lab = await startSwarmLab(t)
  const [s3, compose] = [await startS3Server(), await ensureCompose()]
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-stack-'))
  t.teardown(async () => {
    await Promise.all([s3.stop(), rm(directory, { recursive: true, force: true })])
  })
  const files = join(directory, 'platform')
  const storage = new URL(s3.settings.endpoint ?? '')
  storage.host = (await forward(t, lab.here, Number(storage.port))).address
  const secret = join(directory, 's3-secret-key')
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
  /** Runs Compose for a host. The command is repeated if Docker does not find a network, as the guide requires. @returns its output */
  const composeOn = async (host: LabHost, ...args: string[]): Promise<string> => {
    const own = join(files, 'hosts', host.id)
    const common = [
      '--project-directory',
      own,
      '--env-file',
      join(own, '.env'),
      '--file',
      join(own, 'docker-compose.yml'),
    ]
    for (let attempt = 1; ; attempt++) {
      try {
        return await compose([...common, ...args], { DOCKER_HOST: `unix://${host.socket}` })
      } catch (error) {
        if (attempt === 3 || !/network \S+ not found|attaching to network failed/.test(String(error))) throw error
      }
    }
  }
  const hostOptions = lab.hosts.flatMap(({ id, address, socket }) => [
    '--host',
    `${id}=${address},docker-socket=${socket}`,
  ])
  const setupArguments = [...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]), ...hostOptions]
  return {
    lab,
    s3,
    /** Directory of the test's own files. */
    directory,
    /** Directory of the platform's files. */
    files,
    /** URL at which the hosts reach the S3 server. */
    s3Endpoint: storage.origin,
    /** Options of `deploy/setup --swarm` for these hosts. */
    setupArguments,
    /** Runs `deploy/setup --swarm`, with further options. @returns its output */
    async setUp(...more: string[]): Promise<string> {
      const env = { ...process.env, DOCKER_HOST: `unix://${first.socket}` }
      return (await run(join(project, 'deploy/setup'), ['--swarm', ...setupArguments, ...more], { env })).stdout
    },
    compose: composeOn,
    /** Starts or replaces the containers of a host. */
    up: async (host: LabHost, ...more: string[]): Promise<void> =>
      void (await composeOn(host, 'up', '--detach', ...more)),
  }
}

/** Sets the platform up. */
export async function startPlatform(t: Test): Promise<StackPlatform> {
  const stack = await openStack(t)
  await stack.setUp()
  for (const host of stack.lab.hosts) await stack.up(host)
  return connectStack(stack)
}

/** Waits until the platform is ready. @param knownKey a platform key; absent: the first one, which a control plane has written */
export async function connectStack({ lab, files, directory, up }: Stack, knownKey?: string) {
  const [first] = lab.hosts
  const controlHosts = lab.hosts.slice(0, 2)
  const controlUrl = (host: LabHost) => `http://${host.address}:${controlPort}`
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
  const writtenKey = async () => {
    const read = ['exec', 'tenantry-control-plane', 'cat', '/var/lib/tenantry/platform-key']
    const found = await Promise.all(controlHosts.map((host) => host.docker(...read).catch(() => undefined)))
    return found.find((one) => one !== undefined)
  }
  const key = knownKey ?? (await explained('No control plane has written the platform key.', until(writtenKey, 240)))
  const callOn = async (host: LabHost, method: string, path: string, body?: unknown): Promise<ApiResponse> => {
    const response = await fetch(`${controlUrl(host)}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
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
  const isReady = (host: LabHost) =>
    readyRegion(controlUrl(host), key).then(
      (isReady) => isReady === true,
      () => false,
    )
  /** Waits until the region is ready. @returns the host of the control plane that leads */
  const untilReady = async (): Promise<LabHost> => {
    const ready = async () => {
      const are = await Promise.all(controlHosts.map(isReady))
      return controlHosts.find((_, at) => are[at])
    }
    return explained('The region is not ready.', until(ready, 300))
  }
  await untilReady()
  const authorityFile = join(files, 'authorities/clients.pem')
  const authority = await readFile(authorityFile, 'utf8')
  const names = join(directory, 'names')
  await writeFile(names, `127.0.0.1 localhost\n${first.address} ${domain}\n`)
  return {
    lab,
    key,
    call,
    up,
    logs,
    explained,
    untilReady,
    /** URL of the control plane on a host. */
    controlUrl,
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
