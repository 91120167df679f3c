// What should run for a tenant or a region: networks, volumes and services that an engine makes exist. Pure; an engine reads it.
import { createHash } from 'node:crypto'
import type { SecretText } from './secret-text.ts'

/** How a host finds out whether a service answers. */
export interface HealthCheck {
  /** Argument array that runs inside; exit code 0 is healthy. */
  command: readonly string[]
  intervalSeconds: number
  timeoutSeconds: number
  /** Failures in a row that make it unhealthy. */
  retries: number
  /** Failures this long after the start do not count. */
  startSeconds: number
}

/** Limits of one service's container; `pids` bounds its processes and threads. */
export interface Resources {
  memoryBytes: number
  /** Thousandths of a core. */
  cpuMillis: number
  pids: number
}

/** A service's place on one of its stack's networks. */
export interface Attachment {
  network: string
  aliases: readonly string[]
  /** A fixed address; undefined: any of the subnet. */
  address?: string
}

/** A port of a service that the host forwards to it. */
export interface Published {
  containerPort: number
  /** Address and port on the host. */
  hostAddress: string
  hostPort: number
}

/** A program that should run as one container, with everything that it needs. */
export interface Service {
  name: string
  /** An image's digest, `sha256:…` or `name@sha256:…`; a name alone could mean another image tomorrow. */
  image: string
  command: readonly string[]
  environment: Readonly<Record<string, string>>
  /** File name below `/run/secrets` → text. Handed over as files, never in the environment. */
  secrets: Readonly<Record<string, SecretText>>
  /** Volume → path inside. */
  volumes: Readonly<Record<string, string>>
  /** Path inside → mount options, for what may be written but need not be kept. */
  scratch: Readonly<Record<string, string>>
  networks: readonly Attachment[]
  published: readonly Published[]
  /** Other stacks attach it to their networks. Any other service is on its own stack's networks only. */
  isAttached: boolean
  health: HealthCheck
  /** May be changed while it runs; everything else means a new container. */
  resources: Resources
  user: string
  /** Seconds between the request to stop and the end. */
  stopSeconds: number
  /** `stop-first` for what must not run twice, databases above all. */
  replace: 'start-first' | 'stop-first'
}

/** A container that is not the stack's own, but belongs on one of its networks: the region's gateway. */
export interface AttachedContainer {
  container: string
  alias: string
  /** A fixed address; undefined: any of the subnet. */
  address?: string
}

/** A network of a stack. Only the stack's services and the attached containers are on it. */
export interface Network {
  name: string
  /** CIDR; given, because an engine's own pools hold few networks. */
  subnet: string
  /** No way out but to those attached. */
  internal: boolean
  /** Whether the host itself has an address on it. */
  hostAddress: boolean
  attachedContainers: readonly AttachedContainer[]
}

/** A volume of a stack: what outlives its containers. */
export interface Volume {
  name: string
  /** It has held data: when it is gone, that is a failure, and no reason to make an empty one. */
  mustExist: boolean
  /**
   * Its program starts on an empty one only where the control plane has permitted that inside of it. Permission is given with
   * a container that is created while `mustExist` is false; the program uses it up.
   */
  isGuarded: boolean
}

/** All that should exist on an engine for one tenant or one region. */
export interface Stack {
  /** The tenant's id, or `region-<region>`. */
  id: string
  /** Suspended and paused stacks are stopped; their data stays. */
  state: 'running' | 'stopped'
  networks: readonly Network[]
  volumes: readonly Volume[]
  services: readonly Service[]
}

/** Equal for equal services, whatever the order of their keys: a difference means that the container must be replaced. */
export function specHash(service: Service): string {
  const { resources: _resources, replace: _replace, stopSeconds: _stopSeconds, isAttached, ...replacing } = service
  // Containers carry hashes that were made with this key; another key would replace all of them.
  return createHash('sha256')
    .update(canonical({ ...replacing, isGuest: isAttached }))
    .digest('hex')
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`
}
