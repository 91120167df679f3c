// Counters that gateways push: cumulative per source incarnation, so that repeats and reordering do no harm.
import { Type, type Static } from 'typebox'
import { TenantId } from './ids.ts'

/** `requests` and `egress_bytes` are sums; `connections_peak` is the greatest value seen in the hour. */
export const Meter = Type.Union([
  Type.Literal('requests'),
  Type.Literal('egress_bytes'),
  Type.Literal('connections_peak'),
])
export type Meter = Static<typeof Meter>

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
})
export type CounterKey = Static<typeof CounterKey>

export const Counter = Type.Object({ ...CounterKey.properties, value: Type.Integer({ minimum: 0 }) })
export type Counter = Static<typeof Counter>

export const UsagePush = Type.Object({
  /** Stable name of the gateway, e.g. `gateway-local-0`. */
  source: Type.String(),
  /** Fresh UUID for each start of the source. */
  boot: Type.String(),
  counters: Type.Array(Counter),
})
export type UsagePush = Static<typeof UsagePush>

/** A runtime's answer: what the tenant has stored now, in bytes and numbers. */
export const TenantStorageUsage = Type.Object({
  tenant_id: TenantId,
  file_bytes: Type.Integer({ minimum: 0 }),
  file_count: Type.Integer({ minimum: 0 }),
  document_bytes: Type.Integer({ minimum: 0 }),
  function_invocations: Type.Integer({ minimum: 0 }),
})
export type TenantStorageUsage = Static<typeof TenantStorageUsage>
