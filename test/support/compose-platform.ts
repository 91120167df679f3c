// Runs the platform of docker-compose.yml on the test's engine. deploy/setup gives it names, ports and networks of its own.
import { execFile } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type Dockerode from 'dockerode'
import type { Test } from 'tap'
import { connectDocker } from '#control-plane/engines/docker/docker-connection.ts'
import { ensureCompose } from '#scripts/compose.ts'
import { exists } from '#scripts/debian-packages.ts'
import { engineAddress, engineSocket, until } from './docker.ts'
import { freePort } from './postgres.ts'

const run = promisify(execFile)
const project = new URL('../../', import.meta.url).pathname

export interface ComposePlatform {
  name: string
  region: string
  /** Path of the file with the settings that deploy/setup has chosen. */
  settings: string
  docker: Dockerode
  installation: string
  controlUrl: string
  httpUrl: string
  httpsPort: number
  postgresPort: number
  keyFile: string
  key: string
  /** PEM certificate of Caddy's own authority. */
  certificate: string
  certificateFile: string
  /** Contents of the secret files. */
  secrets: string[]
  /** Output of the first run of deploy/setup. */
  setupOutput: string
  /** Runs deploy/setup again with the same options. @returns its output */
  setUp(): Promise<string>
  container(service: string): Promise<Dockerode.Container>
  /** Runs a program in a service's container. @returns its exit code and output */
  inside(service: string, command: readonly string[]): Promise<{ code: number; output: string }>
}

export async function startComposePlatform(t: Test): Promise<ComposePlatform> {
  const compose = await ensureCompose()
  const { docker, close } = connectDocker({ host: engineAddress() })
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-compose-'))
  const name = `tenantry-${randomBytes(3).toString('hex')}`
  const region = `r${randomBytes(3).toString('hex')}`
  const settings = join(directory, 'settings')
  const [http, https, postgres, control] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const environment = { DOCKER_HOST: engineAddress() }
  const options = {
    name,
    region,
    files: directory,
    settings,
    address: '127.0.0.1',
    'docker-socket': engineSocket(),
    'network-range': `10.${randomInt(16, 64)}.${randomInt(0, 16) * 16}.0/20`,
    'http-port': String(http),
    'https-port': String(https),
    'postgres-port': String(postgres),
    'control-port': String(control),
  }
  const setUp = async () => {
    const { stdout, stderr } = await run(
      join(project, 'deploy/setup'),
      Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]),
    )
    return stdout + stderr
  }
  const setupOutput = await setUp()
  const composeFile = ['--env-file', settings, '--file', join(project, 'docker-compose.yml')]
  const installation = /^TENANTRY_INSTALLATION=(.*)$/m.exec(await readFile(settings, 'utf8'))?.[1] ?? ''
  t.teardown(async () => {
    // A test may have removed the platform already.
    if (await exists(settings)) await removePlatform(settings)
    close()
    await rm(directory, { recursive: true, force: true })
  })
  await compose([...composeFile, 'up', '--detach'], environment)

  const container = async (service: string) => {
    const filters = { label: [`com.docker.compose.project=${name}`, `com.docker.compose.service=${service}`] }
    const [found] = await docker.listContainers({ all: true, filters })
    if (found === undefined) throw new Error(`no container of ${service}`)
    return docker.getContainer(found.Id)
  }
  const inside: ComposePlatform['inside'] = async (of, command) => {
    const { id } = await container(of)
    return run('docker', ['exec', id, ...command], { env: { ...process.env, ...environment }, timeout: 30_000 }).then(
      ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
      (error: unknown) => ({ code: 1, output: error instanceof Error ? error.message : '' }),
    )
  }
  const fileOf = async (of: string, path: string) => {
    const { code, output } = await inside(of, ['cat', path])
    return code === 0 ? output : undefined
  }
  const controlUrl = `http://127.0.0.1:${control}`
  await until(
    async () =>
      fetch(`${controlUrl}/health`).then(
        (response) => (response.ok ? true : undefined),
        () => undefined,
      ),
    120,
  )
  const key = await until(() => fileOf('control-plane', '/var/lib/tenantry/platform-key'))
  const certificate = await until(() => fileOf('caddy', '/var/lib/caddy/pki/authorities/local/root.crt'))
  const [keyFile, certificateFile] = [join(directory, 'platform-key'), join(directory, 'root.crt')]
  await writeFile(keyFile, key)
  await writeFile(certificateFile, certificate)
  const secrets = await Promise.all(
    ['master-key', 'internal-token', 'superuser-password'].map((file) =>
      readFile(join(directory, 'secrets', file), 'utf8'),
    ),
  )
  return {
    name,
    region,
    settings,
    docker,
    installation,
    controlUrl,
    httpUrl: `http://127.0.0.1:${http}`,
    httpsPort: https,
    postgresPort: postgres,
    keyFile,
    key: key.trim(),
    setupOutput,
    setUp,
    container,
    certificate,
    certificateFile,
    secrets: [...secrets.map((text) => text.trim()), key.trim()],
    inside,
  }
}

/** Runs deploy/remove. @returns its output */
export async function removePlatform(settings: string): Promise<string> {
  const { stdout } = await run(join(project, 'deploy/remove'), ['--destroy-all-data', '--settings', settings], {
    timeout: 300_000,
  })
  return stdout
}

/** Returns the names of all containers, networks and volumes of the platform that the engine still has. */
export async function remaining({ docker, name, installation }: ComposePlatform): Promise<string[]> {
  const labels = [`com.docker.compose.project=${name}`, `tenantry.installation=${installation}`]
  const found = await Promise.all(
    labels.map(async (label) => {
      const filters = { label: [label] }
      const [containers, networks, volumes] = await Promise.all([
        docker.listContainers({ all: true, filters }),
        docker.listNetworks({ filters }),
        docker.listVolumes({ filters }),
      ])
      return [
        ...containers.flatMap(({ Names }) => Names),
        ...networks.map(({ Name }) => Name),
        ...volumes.Volumes.map(({ Name }) => Name),
      ]
    }),
  )
  return found.flat()
}

/** Requests a path of a host at the TLS port. @returns the status, or the error's code when the TLS handshake fails */
export async function overTls(
  { httpsPort, certificate }: ComposePlatform,
  host: string,
  path: string,
): Promise<number | string> {
  const call = request({
    host: '127.0.0.1',
    port: httpsPort,
    servername: host,
    path,
    ca: certificate,
    agent: false,
    headers: { host: `${host}:${httpsPort}` },
    timeout: 20_000,
  })
  call.end()
  try {
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode ?? 0
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'failed'
  }
}
