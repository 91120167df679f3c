// A function's fields and their rules (specification, section 2.4). Pure.
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { RuntimeError } from '../errors.ts'
import { reservedCollections } from '../rest/registry/system-collections.ts'
import { checkHost } from './host/http-hosts.ts'
import { pageBytes } from './module/abi.ts'
import { checkSchedule } from './triggers/schedule.ts'
import { secretError } from './triggers/webhook-signature.ts'

const Operation = Type.Enum(['Insert', 'Update', 'Delete'])
const closed = { additionalProperties: false } as const

/** A trigger, as an externally tagged union (docs/functions.md). */
export const Trigger = Type.Union([
  Type.Literal('Http'),
  Type.Object(
    { Database: Type.Object({ table: Type.String({ minLength: 1, maxLength: 63 }), operation: Operation }, closed) },
    closed,
  ),
  Type.Object(
    {
      Schedule: Type.Object(
        {
          cron: Type.String({ minLength: 1, maxLength: 256 }),
          timezone: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
          missed: Type.Optional(Type.Enum(['run', 'skip'])),
        },
        closed,
      ),
    },
    closed,
  ),
  Type.Object({ Webhook: Type.Object({ secret: Type.String({ minLength: 1, maxLength: 1024 }) }, closed) }, closed),
])
export type Trigger = Static<typeof Trigger>

const megabyte = 1024 * 1024
const limits = { timeout: [1, 300], max_memory: [16 * megabyte, 512 * megabyte] } as const
const maxEnvironmentBytes = 32 * 1024
const maxHosts = 32
const roles = ['caller', 'service_role'] as const

export interface FunctionConfig {
  /** Maximum run time in seconds. */
  timeout: number
  /** Maximum memory in bytes. */
  max_memory: number
  environment: Record<string, string>
  /** The role of its host calls: that of the function's caller, or the service role. */
  role: 'caller' | 'service_role'
  /** Hosts from which the function may fetch. */
  http_hosts: string[]
}

export const defaultConfig: FunctionConfig = {
  timeout: 10,
  max_memory: 128 * megabyte,
  environment: {},
  role: 'caller',
  http_hosts: [],
}

export interface FunctionRecord {
  id: string
  name: string
  description: string
  trigger: Trigger
  wasmHash: string
  config: FunctionConfig
  enabled: boolean
  createdAt: string
  updatedAt: string
}

/** Whether a text is a valid name of a function. */
export function isName(name: string): boolean {
  return name.length <= 64 && /^[a-z][a-z0-9_-]*$/.test(name)
}

export function checkName(name: string): string {
  if (name.length < 1 || name.length > 64) throw invalid('Field "name" must have 1 to 64 characters.')
  if (!isName(name))
    throw invalid('Field "name" must start with a lowercase letter and contain only a-z, 0-9, _ and -.')
  return name
}

export function checkDescription(description: string): string {
  if (description.length > 4_096 || description.includes('\0'))
    throw invalid('Field "description" must have at most 4096 characters, without NUL.')
  return description
}

export function checkTrigger(value: unknown, now: Date): Trigger {
  if (!Value.Check(Trigger, value)) {
    throw invalid(
      'Field "trigger" must be "Http", {"Database":{"table":…,"operation":"Insert"|"Update"|"Delete"}}, ' +
        '{"Schedule":{"cron":…,"timezone"?:…,"missed"?:"run"|"skip"}} or {"Webhook":{"secret":…}}.',
    )
  }
  if (value === 'Http') return value
  if ('Schedule' in value) checkSchedule(value.Schedule, now)
  if ('Database' in value && reservedCollections.has(value.Database.table))
    throw invalid(
      `Field "trigger": "${value.Database.table}" is a table of the service. Use a collection or a table of your own.`,
    )
  const error = 'Webhook' in value ? secretError(value.Webhook.secret) : undefined
  if (error !== undefined) throw invalid(`Field "trigger": ${error}`)
  return value
}

/** Parses a stored trigger. @returns undefined for an invalid text, which only the tenant's own SQL can have written */
export function storedTrigger(text: string, now: Date): Trigger | undefined {
  try {
    return checkTrigger(JSON.parse(text), now)
  } catch {
    return undefined
  }
}

/** Clamps a stored configuration to the limits, because the tenant can change the table. */
export function withinLimits(config: FunctionConfig): FunctionConfig {
  const stored: Readonly<Record<string, unknown>> = { ...config }
  const clamp = (name: 'timeout' | 'max_memory') =>
    Math.min(Math.max(Number(stored[name]) || defaultConfig[name], limits[name][0]), limits[name][1])
  const hosts = stored['http_hosts']
  return {
    timeout: clamp('timeout'),
    max_memory: clamp('max_memory'),
    environment: typeof config.environment === 'object' ? config.environment : {},
    role: stored['role'] === 'service_role' ? 'service_role' : 'caller',
    http_hosts: Array.isArray(hosts) ? hosts.slice(0, maxHosts).filter(isHost) : [],
  }
}

/** Applies a merge patch to a configuration; `null` removes a variable. @throws RuntimeError INVALID_FUNCTION */
export function mergeConfig(before: FunctionConfig, change: unknown): FunctionConfig {
  const { timeout, max_memory, environment, role, http_hosts, ...others } = asObject(change, 'config')
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw invalid(
      `Unknown field "config.${unknown.slice(0, 100)}". Allowed: timeout, max_memory, environment, role, http_hosts.`,
    )
  return {
    timeout: integer(timeout, before.timeout, 'timeout', 'seconds'),
    max_memory: integer(max_memory, before.max_memory, 'max_memory', 'bytes'),
    environment: mergeEnvironment(before.environment, environment),
    role: role === undefined ? before.role : checkRole(role),
    http_hosts: http_hosts === undefined ? before.http_hosts : checkHosts(http_hosts),
  }
}

function checkRole(value: unknown): FunctionConfig['role'] {
  const role = roles.find((known) => known === value)
  if (role === undefined) throw invalid('Field "config.role" must be "caller" or "service_role".')
  return role
}

function checkHosts(value: unknown): string[] {
  if (!Array.isArray(value) || value.length > maxHosts)
    throw invalid(`Field "config.http_hosts" must be a list of at most ${maxHosts} hosts.`)
  return value.map((host: unknown) => {
    if (typeof host !== 'string') throw invalid('Field "config.http_hosts" must be a list of strings.')
    try {
      return checkHost(host)
    } catch (cause) {
      if (cause instanceof SyntaxError)
        throw new RuntimeError('INVALID_FUNCTION', `Field "config.http_hosts": ${cause.message}`, { cause })
      throw cause
    }
  })
}

function isHost(value: unknown): value is string {
  try {
    return typeof value === 'string' && checkHost(value) === value
  } catch {
    return false
  }
}

function integer(value: unknown, before: number, name: 'timeout' | 'max_memory', unit: string): number {
  if (value === undefined) return before
  const [min, max] = limits[name]
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw invalid(`Field "config.${name}" must be an integer from ${min} to ${max} (${unit}).`)
  }
  return value
}

function mergeEnvironment(before: Record<string, string>, change: unknown): Record<string, string> {
  if (change === undefined) return before
  const merged = new Map(Object.entries(before))
  for (const [name, value] of Object.entries(asObject(change, 'config.environment'))) {
    const shown = `Field "config.environment.${name.slice(0, 100)}"`
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name))
      throw invalid(`${shown}: A name must have only letters, digits and _, and no digit first.`)
    if (name.startsWith('TENANTRY_')) throw invalid(`${shown}: Names that begin with TENANTRY_ are reserved.`)
    if (value === null) {
      merged.delete(name)
      continue
    }
    if (typeof value !== 'string' || value.includes('\0')) throw invalid(`${shown} must be a string without NUL.`)
    merged.set(name, value)
  }
  const bytes = [...merged].reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0)
  if (bytes > maxEnvironmentBytes)
    throw invalid(`Field "config.environment" has ${bytes} bytes. At most ${maxEnvironmentBytes} are allowed.`)
  return Object.fromEntries(merged)
}

/** Checks that the module's initial memory is within the function's limit. @throws RuntimeError INVALID_FUNCTION */
export function checkFits(memory: { initial: number } | undefined, config: FunctionConfig): void {
  const needed = (memory?.initial ?? 0) * pageBytes
  if (needed > config.max_memory) {
    throw invalid(`The module starts with ${needed} bytes of memory, but "config.max_memory" is ${config.max_memory}.`)
  }
}

function asObject(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(`Field "${field}" must be an object.`)
  return value as Record<string, unknown>
}

function invalid(message: string): RuntimeError {
  return new RuntimeError('INVALID_FUNCTION', message)
}
