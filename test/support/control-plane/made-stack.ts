// The objects of a stack that has converged, for engines in memory.
import { containerName, networkName, secretsVolumeName, volumeName } from '#control-plane/stacks/object-names.ts'
import type { Service, Stack } from '#control-plane/stacks/stack.ts'
import {
  restartPolicy,
  type ObservedContainer,
  type ObservedNetwork,
  type ObservedVolume,
} from '#control-plane/engines/container-host.ts'
import { keyHash } from '#control-plane/keys/key-text.ts'

export const installation = 'stand-in'

export interface Changeable {
  containers: ObservedContainer[]
  networks: ObservedNetwork[]
  volumes: ObservedVolume[]
  unlabelledVolumes: string[]
}

/** Returns the objects of a stack that has converged. */
export function made(stack: Stack, before?: Changeable): Changeable {
  const labels = { installation, stack: stack.id }
  const stored = new Set(before?.containers.map(({ name }) => name))
  const services =
    stack.state === 'running'
      ? stack.services
      : stack.services.filter((service) => stored.has(containerName(stack.id, service)))
  const containers = services.map((service) => container(stack, service))
  return {
    containers,
    networks: stack.networks.map((network) => ({
      id: network.name,
      name: networkName(stack.id, network.name),
      labels,
      subnet: network.subnet,
      internal: network.internal,
      members: [
        ...containers.map(({ name }) => name),
        ...network.attachedContainers.map((attached) => attached.container),
      ],
      addresses: {},
    })),
    volumes: [
      ...stack.volumes.map(({ name, host }) => ({ name: volumeName(stack.id, name), labels, ...onHost(host) })),
      ...stack.services.map((service) => ({
        ...onHost(service.host),
        name: secretsVolumeName(stack.id, service),
        labels: { ...labels, service: service.name },
      })),
    ],
    unlabelledVolumes: [],
  }
}

function onHost(host: string | undefined) {
  return host === undefined ? {} : { host }
}

/** Returns the running container of a service, or the stopped one of a stopped stack. */
export function container(stack: Stack, service: Service): ObservedContainer {
  const name = containerName(stack.id, service)
  const isRunning = stack.state === 'running'
  const slots = service.networks.map(({ network, aliases, address = '' }) => [
    networkName(stack.id, network),
    { aliases, address },
  ])
  return {
    ...onHost(service.host),
    id: keyHash(name),
    name,
    labels: { installation, stack: stack.id, service: service.name, spec: name.slice(-8) },
    state: isRunning ? 'running' : 'exited',
    health: isRunning ? 'healthy' : 'none',
    exitCode: 0,
    startedAt: new Date().toISOString(),
    createdAt: new Date().toISOString(),
    restarts: 0,
    outOfMemory: false,
    imageId: service.image,
    resources: service.resources,
    restartPolicy,
    networks: Object.fromEntries(slots) as ObservedContainer['networks'],
  }
}
