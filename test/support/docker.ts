// A Docker Engine for one test. All objects that the test makes have its own installation label and are removed at its end.
import { randomBytes, randomInt } from 'node:crypto'
import Dockerode from 'dockerode'
import type { Test } from 'tap'
import type { ContainerSpec, Labels, NetworkSpec, Ownership } from '#control-plane/engines/container-host.ts'
import { connectDocker } from '#control-plane/engines/docker/docker-connection.ts'
import { dockerHost, type DockerHost } from '#control-plane/engines/docker/docker-host.ts'

export const image = 'debian:trixie-slim'

/** Returns the Engine's address. @throws Error when the environment has none: Docker tests never pass without an Engine */
export function engineAddress(): string {
  const address = process.env['TENANTRY_DOCKER_HOST']
  if (address === undefined || address === '') {
    throw new Error('these tests need a Docker Engine: set TENANTRY_DOCKER_HOST, e.g. unix:///var/run/docker.sock')
  }
  return address
}

/** Returns the path of the Engine's socket, for tests that put a proxy in front of it. */
export function engineSocket(): string {
  const url = new URL(engineAddress())
  if (url.protocol !== 'unix:') throw new Error('this test needs an Engine at a local socket, unix://')
  return url.pathname
}

export interface Scene {
  host: DockerHost
  /** A Docker client that bypasses Tenantry, for changes that an operator makes by hand. */
  rawDocker: Dockerode
  installation: string
  stack: string
  owned: Ownership & { stack: string }
  labels: Labels
  signal: AbortSignal
  /** Returns an object name that belongs to this test's stack. */
  name(suffix: string): string
  container(suffix: string, changes?: Partial<ContainerSpec>): ContainerSpec
  network(suffix: string, changes?: Partial<NetworkSpec>): NetworkSpec
  /** Creates and starts a container. @returns its name */
  run(suffix: string, changes?: Partial<ContainerSpec>): Promise<string>
}

export function openScene(t: Test): Scene {
  const address = engineAddress()
  const host = dockerHost({ host: address })
  const connection = connectDocker({ host: address })
  const installation = `test-${randomBytes(6).toString('hex')}`
  const stack = `t_${randomBytes(10).toString('hex')}`
  const labels: Labels = { installation, stack, service: 'worker', spec: '0123abcd' }
  const { signal } = new AbortController()
  const name = (suffix: string) => `tenantry-${stack}-${suffix}`
  t.teardown(async () => {
    await removeAll(connection.docker, installation)
    connection.close()
    host.close()
  })
  const scene: Scene = {
    host,
    rawDocker: connection.docker,
    installation,
    stack,
    owned: { installation, stack },
    labels,
    signal,
    name,
    container: (suffix, changes) => ({
      name: name(suffix),
      labels,
      image,
      command: ['sleep', '600'],
      environment: {},
      user: '10001:10001',
      volumes: [],
      scratch: {},
      networks: [],
      published: [],
      health: { command: ['true'], intervalSeconds: 60, timeoutSeconds: 5, retries: 3, startSeconds: 0 },
      resources: { memoryBytes: 64 * 1024 * 1024, cpuMillis: 500, pids: 32 },
      stopSeconds: 1,
      ...changes,
    }),
    network: (suffix, changes) => ({
      name: name(suffix),
      labels,
      subnet: randomSubnet(),
      internal: true,
      hostAddress: false,
      ...changes,
    }),
    async run(suffix, changes) {
      const spec = scene.container(suffix, changes)
      await host.createContainer(spec, signal)
      await host.startContainer(spec.name, signal)
      return spec.name
    },
  }
  return scene
}

export function randomSubnet(): string {
  return `10.${randomInt(160, 224)}.${randomInt(256)}.0/24`
}

/** Removes an installation's objects with Dockerode alone, without the code under test. */
async function removeAll(docker: Dockerode, installation: string): Promise<void> {
  const filters = { label: [`tenantry.installation=${installation}`] }
  for (const { Id } of await docker.listContainers({ all: true, filters }))
    await docker.getContainer(Id).remove({ force: true, v: true })
  for (const { Id } of await docker.listNetworks({ filters })) await docker.getNetwork(Id).remove()
  for (const { Name } of (await docker.listVolumes({ filters })).Volumes) await docker.getVolume(Name).remove()
}

/** Repeats a request until it returns a value. @throws Error after the given number of seconds */
export async function until<T>(request: () => Promise<T | undefined>, seconds = 30): Promise<T> {
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    const response = await request()
    if (response !== undefined) return response
    if (Date.now() > deadline) throw new Error(`The expected state was not reached within ${seconds} s.`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
