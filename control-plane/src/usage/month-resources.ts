// Converts a month's totals and counts into the API's resources. Pure.
import type { TenantStorageUsage } from '@tenantry/contract'
import type { Plan } from '../plans/index.ts'
import type { CellKey } from './meters.ts'
import { cellList } from './packed-cells.ts'
import type { MonthUsage } from './month-usage.ts'
import type { Usage } from './usage.ts'

interface MonthFigures {
  usage: MonthUsage
  /** The plan whose limits are returned. */
  plan: Plan | undefined
  /** The stored bytes that the runtime reports at present. */
  stored: TenantStorageUsage | undefined
  /** The elapsed part of the month. */
  elapsedMilliseconds: number
}

/**
 * Returns the resources. Amounts that may be too large for a JSON number are rounded down to larger units; the hours
 * are exact.
 */
export function monthResources({
  usage: { totals, cells },
  plan,
  stored,
  elapsedMilliseconds,
}: MonthFigures): Usage['resources'] {
  const counts = cellList(cells).map(({ key, value }) => ({ key, count: Number(value) }))
  const of = (meter: string) => counts.filter(({ key }) => key.meter === meter)
  const requests = of('requests')
  const rejected = of('rejected_requests')
  const latency: Record<string, Record<string, number>> = {}
  for (const { key, count } of of('latency').sort((a, b) => bound(a.key) - bound(b.key))) {
    const group = (latency[key.group] ??= {})
    group[key.bucket] = (group[key.bucket] ?? 0) + count
  }
  return {
    api_requests: {
      count: Number(totals.requests),
      limit: plan?.requestsPerMonth ?? null,
      refused: total(of('refused_requests')),
      rejected: total(rejected),
      rejected_by_status: sumBy(rejected, 'statusClass'),
      by_group: sumBy(requests, 'group'),
      by_method: sumBy(requests, 'method'),
      by_status: sumBy(requests, 'statusClass'),
      endpoints: requests.map(({ key, count }) => ({
        group: key.group,
        method: key.method,
        status: key.statusClass,
        count,
      })),
      latency_ms: latency,
    },
    storage: {
      documents_bytes: stored?.document_bytes ?? null,
      documents_limit: plan?.documentBytes ?? null,
      documents_byte_hours: Number(totals.documentByteSeconds / 3600n),
      files_bytes: stored?.file_bytes ?? null,
      files_count: stored?.file_count ?? null,
      files_limit: plan?.fileBytes ?? null,
      files_byte_hours: Number(totals.fileByteSeconds / 3600n),
    },
    egress: { bytes: Number(totals.egressBytes), by_group: sumBy(of('egress_bytes'), 'group') },
    realtime_connections: {
      peak: Number(totals.connectionsPeak),
      average: elapsedMilliseconds <= 0 ? 0 : Number(totals.connectionMilliseconds) / elapsedMilliseconds,
      limit: plan?.realtimeConnections ?? null,
    },
    // As with invocations below.
    realtime_messages: { count: Math.max(Number(totals.realtimeMessages), stored?.realtime_messages ?? 0) },
    functions: {
      // The runtime counts the month's invocations at once, while it has their records. The ledger counts them when the
      // home is read.
      invocations: Math.max(Number(totals.functionInvocations), stored?.function_invocations ?? 0),
      duration_ms: Number(totals.functionMilliseconds),
      cpu_ms: Number(totals.functionCpuMicroseconds / 1000n),
      memory_mib_seconds: Number(totals.functionMemoryKibMilliseconds / 1_024_000n),
    },
  }
}

function bound({ bucket }: CellKey): number {
  return bucket === 'inf' ? Infinity : Number(bucket)
}

function total(counts: readonly { count: number }[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0)
}

function sumBy(
  counts: readonly { key: CellKey; count: number }[],
  part: 'group' | 'method' | 'statusClass',
): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const { key, count } of counts) sums[key[part]] = (sums[key[part]] ?? 0) + count
  return sums
}
