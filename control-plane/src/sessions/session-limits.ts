// Limits of the sessions of one tenant on a shared Postgres, by plan, and of all tenants of the server together. Pure.
import { ConfigurationError } from '@tenantry/contract'

/** Limits of what the sessions of one tenant hold together, and of the age of each. Infinity is unlimited. */
export interface SessionLimits {
  /** Bytes of memory of the tenant's backends, without the first 16 MiB of each. */
  memory_bytes: number
  /** Bytes of temporary files. */
  temporary_bytes: number
  /** Entries in the server's table of locks. */
  locks: number
  /** Bytes of write-ahead log in a minute. */
  wal_bytes: number
  /** Age of a transaction that has written. */
  transaction_seconds: number
  /** Time without a statement in a transaction that has written. */
  idle_seconds: number
  /** Age of a snapshot, which prevents that Postgres removes dead rows. */
  snapshot_seconds: number
}

/** Limits of the sessions of all tenants of a server together. The tenant with the greatest share is over the limit. */
export interface ServerLimits {
  memory_bytes: number
  /** Share of the server's table of locks, from 0 to 1. */
  locks_share: number
  /** Share of the queue of NOTIFY, from 0 to 1. */
  notifications_share: number
}

/** All limits of sessions. */
export interface SessionLimitsConfig {
  plans: Readonly<Record<string, SessionLimits>>
  server: ServerLimits
}

/** The limits that apply where the operator's setting names no others. */
export const defaultSessionLimits: SessionLimitsConfig = {
  plans: {
    Free: {
      memory_bytes: 256_000_000,
      temporary_bytes: 2_000_000_000,
      locks: 8_000,
      wal_bytes: 2_000_000_000,
      transaction_seconds: 60,
      idle_seconds: 30,
      snapshot_seconds: 600,
    },
    Pro: {
      memory_bytes: 512_000_000,
      temporary_bytes: 4_000_000_000,
      locks: 12_000,
      wal_bytes: 8_000_000_000,
      transaction_seconds: 300,
      idle_seconds: 30,
      snapshot_seconds: 3_600,
    },
    Enterprise: {
      memory_bytes: 1_000_000_000,
      temporary_bytes: 8_000_000_000,
      locks: 16_000,
      wal_bytes: 16_000_000_000,
      transaction_seconds: 900,
      idle_seconds: 60,
      snapshot_seconds: 14_400,
    },
  },
  server: { memory_bytes: 2_000_000_000, locks_share: 0.5, notifications_share: 0.25 },
}

const entry = /^([A-Za-z*][A-Za-z0-9_-]*|\*)\.([a-z_]+)=([0-9]{1,15}(?:\.[0-9]{1,6})?|none)$/

/**
 * Reads the setting `TENANTRY_SESSION_LIMITS`.
 * @param text for example `Free.memory_bytes=128000000,*.idle_seconds=10,server.locks_share=0.3`; `*` is every plan
 * @throws ConfigurationError that names the part that is wrong
 */
export function readSessionLimits(text: string): SessionLimitsConfig {
  const plans = new Map(Object.entries(defaultSessionLimits.plans).map(([plan, limits]) => [plan, { ...limits }]))
  const server = { ...defaultSessionLimits.server }
  const parts = text.split(',').map((part) => part.trim())
  for (const part of parts.filter((one) => one !== '')) {
    const [, owner, name = '', amount] = entry.exec(part) ?? []
    if (owner === undefined)
      throw new ConfigurationError(
        `TENANTRY_SESSION_LIMITS: "${part.slice(0, 100)}" is not PLAN.LIMIT=NUMBER, *.LIMIT=NUMBER or server.LIMIT=NUMBER.`,
      )
    const value = amount === 'none' ? Infinity : Number(amount)
    const own = plans.get(owner)
    if (owner === 'server') setLimit(server, name, value)
    else if (owner === '*') for (const limits of plans.values()) setLimit(limits, name, value)
    else if (own !== undefined) setLimit(own, name, value)
    else
      throw new ConfigurationError(
        `TENANTRY_SESSION_LIMITS: Unknown plan "${owner}". Allowed: ${[...plans.keys()].join(', ')}, *, server.`,
      )
  }
  return { plans: Object.fromEntries(plans), server }
}

function setLimit(limits: object, name: string, value: number): void {
  if (!Object.hasOwn(limits, name))
    throw new ConfigurationError(
      `TENANTRY_SESSION_LIMITS: Unknown limit "${name}". Allowed: ${Object.keys(limits).join(', ')}.`,
    )
  Object.assign(limits, { [name]: value })
}

/** Returns the limits of a plan. A plan without limits of its own has those of the lowest plan. */
export function limitsOfPlan({ plans }: SessionLimitsConfig, plan: string | undefined): SessionLimits {
  const limits = plans[plan ?? ''] ?? plans['Free']
  if (limits === undefined) throw new Error('The plan "Free" has no limits of sessions.')
  return limits
}
