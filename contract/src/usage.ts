// Counters that gateways push. They are cumulative per instance of a source, so that repeated and reordered pushes are
// harmless.
import { Type, type Static } from 'typebox'
import { TenantId } from './ids.ts'

/**
 * Meters. All are sums except `connections_peak`, which is the maximum in the hour. Their dimensions are:
 * - `requests`: group, method, status class; requests that count for the tenant's quota and bill, because a runtime
 *   received and did not reject them (`rejectedHeader`)
 * - `rejected_requests`: group, method, status class; requests that the gateway rejected before forwarding, or the
 *   runtime before it accessed anything of the tenant; they use no quota and cost nothing
 * - `refused_requests`: group; requests over a quota or a rate limit; they use no quota and cost nothing
 * - `egress_bytes`: group; `http_fetch` is the group of what functions send to other hosts
 * - `latency`: group and `bucket`; how many of `requests` had a response within the bucket's bound
 * - `connections_peak`, `connection_milliseconds`: none; long-lived connections, and the sum of their durations
 * - `function_…`: none; usage of the invocations that began in the hour.
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

/**
 * Upper bounds of the buckets of `latency` in whole milliseconds, each included in its bucket. A last bucket `inf`
 * follows.
 */
export const latencyBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000] as const

/** Dimensions of a counter. Those that a meter does not have are empty strings. */
export const CounterKey = Type.Object({
  tenant_id: TenantId,
  /** Start of the UTC hour, ISO 8601. */
  hour: Type.String(),
  meter: Meter,
  /** Group of routes: `storage`, `rest`, `functions`, `other`. */
  group: Type.String(),
  method: Type.String(),
  /** Class of the response's status: `2xx` … `5xx`. */
  status_class: Type.String(),
  /** Bucket of `latency`: one of `latencyBounds`, or `inf`. */
  bucket: Type.String(),
})
export type CounterKey = Static<typeof CounterKey>

/** A counter with its current value, cumulative since the start of its source. */
export const Counter = Type.Object({ ...CounterKey.properties, value: Type.Integer({ minimum: 0 }) })
export type Counter = Static<typeof Counter>

/** The changed counters that a source pushes to the control plane (`internalPaths.usage`). */
export const UsagePush = Type.Object({
  /** Stable name of the gateway, for example `gateway-local-0`. */
  source: Type.String(),
  /** New UUID of each start of the source. */
  boot: Type.String(),
  counters: Type.Array(Counter),
  /**
   * Start of a UTC hour in ISO 8601. All counts of the source's earlier hours, of earlier instances too, are in this
   * push or were acknowledged. Absent if the source does not report this.
   */
  complete_until: Type.Optional(Type.String()),
  /**
   * Whether the source has ended and all its counts were acknowledged, so that hours close without it until it pushes
   * again.
   */
  stopped: Type.Optional(Type.Literal(true)),
})
export type UsagePush = Static<typeof UsagePush>

/** The control plane's confirmation that it has stored a push. */
export const UsageResponse = Type.Object({
  accepted: Type.Literal(true),
  /** The control plane's clock in ISO 8601, which determines the hours. */
  now: Type.String(),
})
export type UsageResponse = Static<typeof UsageResponse>

const Amount = Type.String({ pattern: '^[0-9]{1,30}$' })

/** Usage of a tenant's home in one UTC hour, as decimal texts. An invocation belongs to the hour in which it began. */
export const HomeHour = Type.Object({
  /** Start of the hour in ISO 8601. */
  hour: Type.String({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:00:00\\.000Z$' }),
  file_byte_seconds: Amount,
  function_invocations: Amount,
  function_milliseconds: Amount,
  function_cpu_microseconds: Amount,
  function_memory_kib_milliseconds: Amount,
  /** Bytes that functions sent to other hosts. A runtime of an earlier version does not report them. */
  function_egress_bytes: Type.Optional(Amount),
  /** Realtime messages, sent and delivered. A runtime of an earlier version does not report them. */
  realtime_messages: Type.Optional(Amount),
})
export type HomeHour = Static<typeof HomeHour>

/** A runtime's response with the usage of a tenant's home, by hour. */
export const HomeCounters = Type.Object({
  tenant_id: TenantId,
  /** UUID of the counters. It changes if the counters begin again, for example in a home from a backup. */
  books: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
  /** Time in ISO 8601 at which the counters began. */
  began: Type.String(),
  /** Time of the read in ISO 8601, by the home's clock. */
  at: Type.String(),
  /** Stored bytes of documents; those of files follow. */
  document_bytes: Type.Integer({ minimum: 0 }),
  file_bytes: Type.Integer({ minimum: 0 }),
  hours: Type.Array(HomeHour),
})
export type HomeCounters = Static<typeof HomeCounters>

/** A runtime's response with the tenant's stored bytes and counts. */
export const TenantStorageUsage = Type.Object({
  tenant_id: TenantId,
  file_bytes: Type.Integer({ minimum: 0 }),
  file_count: Type.Integer({ minimum: 0 }),
  document_bytes: Type.Integer({ minimum: 0 }),
  function_invocations: Type.Integer({ minimum: 0 }),
  /** Realtime messages of this month. A runtime of an earlier version does not report them. */
  realtime_messages: Type.Optional(Type.Integer({ minimum: 0 })),
})
export type TenantStorageUsage = Static<typeof TenantStorageUsage>
