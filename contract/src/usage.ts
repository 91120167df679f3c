// Counters that gateways push: cumulative per source incarnation, so that repeats and reordering do no harm.
import { Type, type Static } from 'typebox'
import { TenantId } from './ids.ts'

/**
 * Sums, but for `connections_peak`, which is the greatest value seen in the hour. What each is broken down by:
 * - `requests`: group, method, status class; those that the tenant's quota and bill know: they were sent to a runtime, which
 *   did not reject them (`rejectedHeader`)
 * - `rejected_requests`: group, method, status class; rejected by the gateway before they were sent, or by the runtime before it
 *   touched anything of the tenant: they use no quota and cost nothing
 * - `refused_requests`: group; over a quota or a rate limit: they use no quota and cost nothing
 * - `egress_bytes`: group
 * - `latency`: group and `bucket`; how many of `requests` were answered within the bucket's bound
 * - `connections_peak`, `connection_milliseconds`: nothing; connections that stay, and the sum of how long they were open
 * - `function_…`: nothing; what the invocations that began in the hour took
 */
export const Meter = Type.Union([
  Type.Literal('requests'),
  Type.Literal('rejected_requests'),
  Type.Literal('refused_requests'),
  Type.Literal('egress_bytes'),
  Type.Literal('latency'),
  Type.Literal('connections_peak'),
  Type.Literal('connection_milliseconds'),
  Type.Literal('function_invocations'),
  Type.Literal('function_milliseconds'),
  Type.Literal('function_cpu_microseconds'),
  Type.Literal('function_memory_kib_milliseconds'),
])
export type Meter = Static<typeof Meter>

/** Upper bounds of the buckets of `latency`, whole milliseconds, each bound belonging to its bucket; a last one follows, `inf`. */
export const latencyBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000] as const

/** What a counter is broken down by; empty strings where a meter has no such part. */
export const CounterKey = Type.Object({
  tenant_id: TenantId,
  /** Start of the UTC hour, ISO 8601. */
  hour: Type.String(),
  meter: Meter,
  /** `storage`, `rest`, `functions`, `other`. */
  group: Type.String(),
  method: Type.String(),
  /** `2xx` … `5xx`. */
  status_class: Type.String(),
  /** Of `latency`: one of `latencyBounds`, or `inf`. */
  bucket: Type.String(),
})
export type CounterKey = Static<typeof CounterKey>

/** A counter and its value so far, cumulative since the start of its source. */
export const Counter = Type.Object({ ...CounterKey.properties, value: Type.Integer({ minimum: 0 }) })
export type Counter = Static<typeof Counter>

/** All counters of a source that changed, as it pushes them to the control plane (`internalPaths.usage`). */
export const UsagePush = Type.Object({
  /** Stable name of the gateway, e.g. `gateway-local-0`. */
  source: Type.String(),
  /** Fresh UUID for each start of the source. */
  boot: Type.String(),
  counters: Type.Array(Counter),
  /**
   * Start of a UTC hour, ISO 8601: every count of the source's hours before it, of earlier incarnations too, is in this
   * push or was acknowledged. Without it nothing is said.
   */
  complete_until: Type.Optional(Type.String()),
  /** It has ended, and all that it ever counted was acknowledged: nobody waits for it any more, until it pushes again. */
  stopped: Type.Optional(Type.Literal(true)),
})
export type UsagePush = Static<typeof UsagePush>

/** The control plane has stored a push. */
export const UsageResponse = Type.Object({
  accepted: Type.Literal(true),
  /** The control plane's clock, ISO 8601. Hours are its hours. */
  now: Type.String(),
})
export type UsageResponse = Static<typeof UsageResponse>

const Amount = Type.String({ pattern: '^[0-9]{1,30}$' })

/** What a tenant's home used in one UTC hour, as far as it is known; decimal texts. A run belongs to the hour in which it began. */
export const HomeHour = Type.Object({
  /** Its start, ISO 8601. */
  hour: Type.String({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:00:00\\.000Z$' }),
  file_byte_seconds: Amount,
  function_invocations: Amount,
  function_milliseconds: Amount,
  function_cpu_microseconds: Amount,
  function_memory_kib_milliseconds: Amount,
})
export type HomeHour = Static<typeof HomeHour>

/** A runtime's answer: what a tenant's home used, hour by hour. */
export const HomeCounters = Type.Object({
  tenant_id: TenantId,
  /** UUID; another one where the books were begun anew, as in a home from a backup. */
  books: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
  /** ISO 8601: nothing before it is in them. */
  began: Type.String(),
  /** When they were read, by the home's clock. ISO 8601. */
  at: Type.String(),
  /** Stored now. */
  document_bytes: Type.Integer({ minimum: 0 }),
  file_bytes: Type.Integer({ minimum: 0 }),
  hours: Type.Array(HomeHour),
})
export type HomeCounters = Static<typeof HomeCounters>

/** A runtime's answer: what the tenant has stored now, in bytes and numbers. */
export const TenantStorageUsage = Type.Object({
  tenant_id: TenantId,
  file_bytes: Type.Integer({ minimum: 0 }),
  file_count: Type.Integer({ minimum: 0 }),
  document_bytes: Type.Integer({ minimum: 0 }),
  function_invocations: Type.Integer({ minimum: 0 }),
})
export type TenantStorageUsage = Static<typeof TenantStorageUsage>
