// What should run for a tenant: the services that an engine makes exist. Pure; an engine reads it.
import { createHash } from 'node:crypto'

export interface HealthCheck {
  path: string
  port: number
  intervalSeconds: number
}

export interface Resources {
  memoryBytes: number
  /** Thousandths of a core. */
  cpuMillis: number
  pids: number
}

export interface Service {
  name: string
  image: string
  command: readonly string[]
  environment: Readonly<Record<string, string>>
  /** Names of secrets; an engine hands them over as files, never in the environment. */
  secrets: readonly string[]
  /** Volume → path inside. */
  volumes: Readonly<Record<string, string>>
  networks: readonly string[]
  health: HealthCheck
  resources: Resources
  replicas: number
  /** `stop-first` for what must not run twice, databases above all. */
  replace: 'start-first' | 'stop-first'
}

export interface Stack {
  /** The tenant's id. */
  id: string
  services: readonly Service[]
}

/** Equal for equal services, whatever the order of their keys: a difference means that the service must be replaced. */
export function specHash(service: Service): string {
  return createHash('sha256').update(canonical(service)).digest('hex')
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`
}
