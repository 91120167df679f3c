// Limits of what a tenant stores in the service's tables of its home, by plan: functions, schemas, events and records of
// invocations; and of its messages on realtime channels. Pure.
import type { Limits } from '@tenantry/contract'
import { readPlanPairs } from './plan-pairs.ts'

/** Limits by plan. Null is unlimited, as is a plan that is not named. */
type ByPlan<T> = Readonly<Record<string, T | null>>

/** The limits of a kind of which more is rejected. */
interface Room {
  /** Maximum number. */
  count: number
  /** Maximum bytes of all together. */
  bytes: number
}

/** Limits of what the service's tables of a home contain, by plan. */
export interface HomeLimits {
  /** Functions, with the bytes of their modules. */
  functions: ByPlan<Room>
  /** Schemas, with the bytes of their texts. */
  schemas: ByPlan<Room>
  /** Events older than `days`, or older than the newest `bytes`, are deleted. */
  events: ByPlan<{ days: number; bytes: number }>
  /** Records of invocations older than `days`, or older than the newest `count`, are deleted. */
  invocations: ByPlan<{ days: number; count: number }>
  /** Messages on realtime channels that clients may send per second, and the maximum bytes of one. */
  realtime: ByPlan<{ messages: number; bytes: number }>
}

/** The limits of plans that the operator's settings do not name. */
export const defaultHomeLimits: HomeLimits = {
  functions: {
    Free: { count: 50, bytes: 100_000_000 },
    Pro: { count: 500, bytes: 1_000_000_000 },
    Enterprise: null,
  },
  schemas: { Free: { count: 200, bytes: 4_000_000 }, Pro: { count: 1_000, bytes: 16_000_000 }, Enterprise: null },
  events: {
    Free: { days: 7, bytes: 64_000_000 },
    Pro: { days: 7, bytes: 256_000_000 },
    Enterprise: { days: 30, bytes: 1_000_000_000 },
  },
  invocations: {
    Free: { days: 30, count: 100_000 },
    Pro: { days: 30, count: 1_000_000 },
    Enterprise: { days: 90, count: 10_000_000 },
  },
  realtime: {
    Free: { messages: 100, bytes: 256_000 },
    Pro: { messages: 500, bytes: 3_000_000 },
    Enterprise: null,
  },
}

const maxDays = 365

type RoomSetting = 'TENANTRY_FUNCTION_LIMITS' | 'TENANTRY_SCHEMA_LIMITS'
type RetentionSetting = 'TENANTRY_EVENT_LIMITS' | 'TENANTRY_INVOCATION_LIMITS'
type RealtimeSetting = 'TENANTRY_REALTIME_LIMITS'

/**
 * Reads the settings `TENANTRY_FUNCTION_LIMITS`, `TENANTRY_SCHEMA_LIMITS`, `TENANTRY_EVENT_LIMITS`,
 * `TENANTRY_INVOCATION_LIMITS` and `TENANTRY_REALTIME_LIMITS`.
 * @param text returns a setting, for example `Free=20/50000000,Pro=none`; other plans have their defaults
 * @throws Error that names the setting and the part that is wrong
 */
export function readHomeLimits(
  text: (name: RoomSetting | RetentionSetting | RealtimeSetting) => string | undefined,
): HomeLimits {
  const room = (name: RoomSetting, defaults: ByPlan<Room>) =>
    readPlanPairs(text(name) ?? '', {
      name,
      form: 'COUNT/BYTES',
      defaults,
      max: [1_000_000, Number.MAX_SAFE_INTEGER],
      from: (count, bytes) => ({ count, bytes }),
    })
  const retention = <T>(
    name: RetentionSetting,
    second: string,
    defaults: ByPlan<T>,
    from: (days: number, second: number) => T,
  ): ByPlan<T> =>
    readPlanPairs(text(name) ?? '', {
      name,
      form: `DAYS/${second}`,
      defaults,
      max: [maxDays, Number.MAX_SAFE_INTEGER],
      from,
    })
  return {
    functions: room('TENANTRY_FUNCTION_LIMITS', defaultHomeLimits.functions),
    schemas: room('TENANTRY_SCHEMA_LIMITS', defaultHomeLimits.schemas),
    events: retention('TENANTRY_EVENT_LIMITS', 'BYTES', defaultHomeLimits.events, (days, bytes) => ({ days, bytes })),
    invocations: retention('TENANTRY_INVOCATION_LIMITS', 'COUNT', defaultHomeLimits.invocations, (days, count) => ({
      days,
      count,
    })),
    realtime: readPlanPairs(text('TENANTRY_REALTIME_LIMITS') ?? '', {
      name: 'TENANTRY_REALTIME_LIMITS',
      form: 'MESSAGES/BYTES',
      defaults: defaultHomeLimits.realtime,
      max: [100_000, 3_000_000],
      from: (messages, bytes) => ({ messages, bytes }),
    }),
  }
}

/** Returns the limits of a plan as its tenants' runtimes receive them. */
export function toRuntimeLimits(
  limits: HomeLimits,
  plan: string,
): Pick<
  Limits,
  | 'functions'
  | 'function_bytes'
  | 'schemas'
  | 'schema_bytes'
  | 'event_days'
  | 'event_bytes'
  | 'invocation_days'
  | 'invocations'
  | 'realtime_messages'
  | 'realtime_payload_bytes'
> {
  return {
    functions: limits.functions[plan]?.count ?? null,
    function_bytes: limits.functions[plan]?.bytes ?? null,
    schemas: limits.schemas[plan]?.count ?? null,
    schema_bytes: limits.schemas[plan]?.bytes ?? null,
    event_days: limits.events[plan]?.days ?? null,
    event_bytes: limits.events[plan]?.bytes ?? null,
    invocation_days: limits.invocations[plan]?.days ?? null,
    invocations: limits.invocations[plan]?.count ?? null,
    realtime_messages: limits.realtime[plan]?.messages ?? null,
    realtime_payload_bytes: limits.realtime[plan]?.bytes ?? null,
  }
}
