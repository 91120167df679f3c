// Hardened containers of our images for one test file, on the engine of TENANTRY_DOCKER_HOST. All are removed at the end.
import { randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import Docker from 'dockerode'
import { pack } from 'tar-stream'
import type { Test } from 'tap'
import type { ImageName } from '#images/catalogue.ts'

const waitMilliseconds = 30_000
const pollMilliseconds = 20

/** The IDs of the images' users. None is root. */
export const users: Record<ImageName, number> = {
  postgres: 10_002,
  'tenant-runtime': 10_001,
  gateway: 10_001,
  'control-plane': 10_001,
  caddy: 10_003,
  'cluster-member': 10_002,
  etcd: 10_004,
}
const dataPaths: Record<ImageName, string | undefined> = {
  postgres: '/var/lib/postgresql',
  'tenant-runtime': '/var/lib/tenantry',
  gateway: '/var/lib/tenantry',
  'control-plane': undefined,
  caddy: '/var/lib/caddy',
  'cluster-member': '/var/lib/postgresql',
  etcd: '/var/lib/etcd',
}

export function testDocker(): Docker {
  const host = process.env['TENANTRY_DOCKER_HOST'] ?? ''
  if (!host.startsWith('unix:///'))
    throw new Error('TENANTRY_DOCKER_HOST must name the Docker Engine of the tests (unix:///…); `npm test` sets it')
  return new Docker({ socketPath: host.slice('unix://'.length) })
}

export interface RunOptions {
  command?: string[]
  entrypoint?: string[]
  environment?: Record<string, string>
  /** A volume for the image's data. */
  data?: string
  /** A volume for /run/secrets. */
  secrets?: string
  network?: string
  alias?: string
}

export interface ExecResult {
  code: number
  output: string
}

export interface Running {
  container: Docker.Container
  exec(command: string[], environment?: Record<string, string>): Promise<ExecResult>
  /** Returns the output of both streams so far. */
  logs(): Promise<string>
  isRunning(): Promise<boolean>
  /** Waits until the container has ended, and returns its exit code. */
  ended(): Promise<number>
}

export type Sandbox = ReturnType<typeof createSandbox>

export function createSandbox(t: Test) {
  const docker = testDocker()
  const label = `tenantry.test=${randomBytes(8).toString('hex')}`
  const labels = Object.fromEntries([label.split('=')]) as Record<string, string>
  const filters = { label: [label] }
  t.teardown(async () => {
    for (const { Id: id } of await docker.listContainers({ all: true, filters }))
      await docker.getContainer(id).remove({ force: true, v: true })
    for (const { Name: name } of (await docker.listVolumes({ filters })).Volumes) await docker.getVolume(name).remove()
    for (const { Id: id } of await docker.listNetworks({ filters })) await docker.getNetwork(id).remove()
  })

  const volume = async (): Promise<string> => {
    const Name = `tenantry-test-${randomBytes(8).toString('hex')}`
    await docker.createVolume({ Name, Labels: labels })
    return Name
  }

  const create = (image: ImageName, options: RunOptions): Promise<Docker.Container> => {
    const { command, entrypoint, environment = {}, data, secrets, network = 'none', alias } = options
    const user = users[image]
    const tmpfs =
      image === 'postgres'
        ? { '/tmp': 'size=64m', '/run/postgresql': `size=1m,mode=0700,uid=${user},gid=${user}` }
        : { '/tmp': 'size=64m' }
    return docker.createContainer({
      Image: `tenantry/${image}:latest`,
      Labels: labels,
      ...(command === undefined ? {} : { Cmd: command }),
      ...(entrypoint === undefined ? {} : { Entrypoint: entrypoint }),
      Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
      HostConfig: {
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        PidsLimit: 128,
        Memory: 512 * 2 ** 20,
        NanoCpus: 2e9,
        Tmpfs: tmpfs,
        NetworkMode: network,
        Binds: [
          ...(data === undefined ? [] : [`${data}:${dataPaths[image] ?? '/data'}`]),
          ...(secrets === undefined ? [] : [`${secrets}:/run/secrets:ro`]),
        ],
      },
      ...(alias === undefined ? {} : { NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [alias] } } } }),
    })
  }

  const start = async (image: ImageName, options: RunOptions = {}): Promise<Running> => {
    const container = await create(image, options)
    await container.start()
    return running(container)
  }

  /** Writes the files through a container that is never started. */
  const writeSecrets = async (name: string, image: ImageName, files: Record<string, string>): Promise<void> => {
    const container = await docker.createContainer({
      Image: `tenantry/${image}:latest`,
      Labels: labels,
      HostConfig: { Binds: [`${name}:/run/secrets`] },
    })
    const tar = pack()
    for (const [file, content] of Object.entries(files))
      tar.entry({ name: file, mode: 0o400, uid: users[image], gid: users[image] }, content)
    tar.finalize()
    await container.putArchive(await buffer(tar), { path: '/run/secrets' })
    await container.remove()
  }

  return {
    docker,
    volume,
    start,
    /** Creates a network without external access. */
    async network(subnet: string): Promise<string> {
      const name = `tenantry-test-${randomBytes(8).toString('hex')}`
      await docker.createNetwork({ Name: name, Internal: true, Labels: labels, IPAM: { Config: [{ Subnet: subnet }] } })
      return name
    },
    /** Creates a volume of files that only the image's user can read. */
    async secrets(image: ImageName, files: Record<string, string>): Promise<string> {
      const name = await volume()
      await writeSecrets(name, image, files)
      return name
    },
    writeSecrets,
    /** Runs a shell as the image's user on a volume, and returns its output. @throws Error when it fails */
    async shell(image: ImageName, data: string, script: string): Promise<string> {
      const { ended, logs } = await start(image, { data, entrypoint: ['/bin/bash', '-euc', script] })
      const code = await ended()
      if (code !== 0) throw new Error(`the shell ended with ${code}: ${await logs()}`)
      return logs()
    },
  }
}

function running(container: Docker.Container): Running {
  return {
    container,
    async exec(command, environment = {}) {
      const exec = await container.exec({
        Cmd: command,
        Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
        AttachStdout: true,
        AttachStderr: true,
      })
      const output = unframed(await buffer(await exec.start({})))
      const { ExitCode: code } = await exec.inspect()
      return { code: code ?? -1, output: output.trim() }
    },
    logs: async () => unframed(await container.logs({ stdout: true, stderr: true, follow: false })),
    isRunning: async () => (await container.inspect()).State.Running,
    async ended() {
      const { StatusCode: code } = (await container.wait()) as { StatusCode: number }
      return code
    },
  }
}

/** Returns both streams as one text. The engine sends frames: the stream (1 byte), nothing (3), the size (4), the bytes. */
function unframed(frames: Buffer): string {
  const parts: Buffer[] = []
  for (let at = 0; at + 8 <= frames.length;) {
    const end = at + 8 + frames.readUInt32BE(at + 4)
    parts.push(frames.subarray(at + 8, end))
    at = end
  }
  return Buffer.concat(parts).toString('utf8')
}

/** @throws Error that names `what` when the check does not hold in time */
export async function until(what: string, check: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + waitMilliseconds
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, pollMilliseconds))
  }
}
