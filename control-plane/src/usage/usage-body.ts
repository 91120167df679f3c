// The bodies of usage, as JSON and CSV.
import { Type, type Static } from 'typebox'
import type { Correction } from './closed-usage.ts'
import { amountNames, type AmountName, type Amounts } from './hour-bucket.ts'
import { monthText } from '../platform/months.ts'
import type { Usage, UsagePage, UsageSeries } from './usage.ts'
import { csv } from '../http/csv.ts'

/** The resources that usage is broken down by, as the API names them (specification, section 2.6). */
export const resourceNames = [
  'api_requests',
  'storage',
  'egress',
  'realtime_connections',
  'realtime_messages',
  'functions',
] as const
export type ResourceName = (typeof resourceNames)[number]

const amountsOf: Record<ResourceName, readonly AmountName[]> = {
  api_requests: ['requests'],
  egress: ['egressBytes'],
  storage: ['documentByteSeconds', 'fileByteSeconds'],
  realtime_connections: ['connectionsPeak', 'connectionMilliseconds'],
  realtime_messages: ['realtimeMessages'],
  functions: [
    'functionInvocations',
    'functionMilliseconds',
    'functionCpuMicroseconds',
    'functionMemoryKibMilliseconds',
  ],
}

const Numbers = Type.Record(Type.String(), Type.Integer())
const MaybeInteger = Type.Union([Type.Integer(), Type.Null()])
const Digits = Type.Record(Type.String(), Type.String(), {
  description: 'Whole numbers as decimal digits, by name; exact at any size',
})
const ComponentUsage = Type.Object({
  cpu_seconds: Type.Union([Type.Number(), Type.Null()], { description: 'Since its container was started' }),
  memory_bytes: MaybeInteger,
  disk_bytes: MaybeInteger,
})

const MonthBase = {
  month: Type.String(),
  missing_sources: Type.Array(Type.String(), {
    description: 'Sources that may still have counts of hours that should be closed by now',
  }),
  period: Type.Object({ start: Type.String(), end: Type.String() }),
}
const TenantMonthBase = {
  tenant_id: Type.String(),
  ...MonthBase,
  incomplete: Type.Boolean({ description: 'True while counts of the month may still arrive' }),
}

const CorrectionBody = Type.Object({
  number: Type.Integer(),
  hour: Type.String(),
  amounts: Digits,
  billed_month: Type.String(),
  recorded_at: Type.String(),
  previous_hash: Type.String(),
  hash: Type.String(),
})

export const UsageBody = Type.Object({
  ...TenantMonthBase,
  resources: Type.Partial(
    Type.Object({
      api_requests: Type.Object({
        count: Type.Integer(),
        limit: MaybeInteger,
        refused: Type.Integer(),
        rejected: Type.Integer(),
        rejected_by_status: Numbers,
        by_group: Numbers,
        by_method: Numbers,
        by_status: Numbers,
        endpoints: Type.Array(
          Type.Object({ group: Type.String(), method: Type.String(), status: Type.String(), count: Type.Integer() }),
        ),
        latency_ms: Type.Record(Type.String(), Numbers, {
          description: 'By group: the requests that took at most so many milliseconds, and more than the bound before',
        }),
      }),
      storage: Type.Object({
        documents_bytes: MaybeInteger,
        documents_limit: MaybeInteger,
        documents_byte_hours: Type.Integer(),
        files_bytes: MaybeInteger,
        files_count: MaybeInteger,
        files_limit: MaybeInteger,
        files_byte_hours: Type.Integer(),
      }),
      egress: Type.Object({ bytes: Type.Integer(), by_group: Numbers }),
      realtime_connections: Type.Object({ peak: Type.Integer(), average: Type.Number(), limit: MaybeInteger }),
      realtime_messages: Type.Object({ count: Type.Integer() }),
      functions: Type.Object({
        invocations: MaybeInteger,
        duration_ms: Type.Integer(),
        cpu_ms: Type.Integer(),
        memory_mib_seconds: Type.Integer(),
      }),
    }),
  ),
  corrections: Type.Array(CorrectionBody),
  components: Type.Optional(
    Type.Record(Type.String(), ComponentUsage, {
      description:
        "The present usage of the tenant's own services by their names; null for a service that does not run or respond",
    }),
  ),
})

export const SeriesBody = Type.Object({
  ...TenantMonthBase,
  granularity: Type.Enum(['hour', 'day']),
  parts: Type.Array(
    Type.Object({
      start: Type.String(),
      closed: Type.Boolean(),
      amounts: Digits,
      previous_hash: Type.Optional(Type.String()),
      hash: Type.Optional(Type.String()),
    }),
  ),
  corrections: Type.Array(CorrectionBody),
})

export const UsagePageBody = Type.Object({
  ...MonthBase,
  tenants: Type.Array(
    Type.Object({
      tenant_id: Type.String(),
      name: Type.Union([Type.String(), Type.Null()], { description: 'Null for a deleted tenant' }),
      incomplete: Type.Boolean(),
      amounts: Digits,
    }),
  ),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
})

/** Returns the body of a tenant's usage of a month, with only the resources in `shown`. */
export function toUsageBody(
  { resources, corrections, ...usage }: Usage,
  shown: readonly ResourceName[],
): Static<typeof UsageBody> {
  const some: Static<typeof UsageBody>['resources'] = Object.fromEntries(shown.map((name) => [name, resources[name]]))
  return {
    ...usage,
    resources: some,
    corrections: corrections.map((correction) => toCorrectionBody(correction, shown)),
  }
}

export function toSeriesBody(
  { parts, corrections, ...series }: UsageSeries,
  shown: readonly ResourceName[],
): Static<typeof SeriesBody> {
  return {
    ...series,
    parts: parts.map(({ start, closed, amounts, link }) => ({
      start: start.toISOString(),
      closed,
      amounts: digits(amounts, shown),
      ...(link === undefined ? {} : { previous_hash: link.previous, hash: link.hash }),
    })),
    corrections: corrections.map((correction) => toCorrectionBody(correction, shown)),
  }
}

/** Returns the body of a page of tenants' usage. Amounts are decimal texts. */
export function toPageBody({ tenants, ...page }: UsagePage, nextCursor: string | null): Static<typeof UsagePageBody> {
  return {
    ...page,
    tenants: tenants.map(({ tenantId, name, totals, closedAt }) => ({
      tenant_id: tenantId,
      name,
      incomplete: closedAt === undefined,
      amounts: digits(totals, resourceNames),
    })),
    next_cursor: nextCursor,
  }
}

/** Writes a line for each figure: `resource`, `measure` (with the parts of a breakdown after dots), `value`. */
export function usageCsv(usage: Usage, shown: readonly ResourceName[]): string {
  return csv(['tenant_id', 'month', 'incomplete', 'resource', 'measure', 'value'], rowsOf(usage, shown))
}

function* rowsOf({ tenant_id: id, month, incomplete, resources }: Usage, shown: readonly ResourceName[]) {
  for (const resource of shown) {
    for (const [measure, value] of leaves('', resources[resource]))
      yield [id, month, incomplete, resource, measure, value] as const
  }
}

function* leaves(path: string, value: unknown): Generator<readonly [string, string | number | null]> {
  // Endpoints are named by their parts rather than by their index.
  if (Array.isArray(value)) {
    for (const { group, method, status, count } of value as Usage['resources']['api_requests']['endpoints'])
      yield [`${path}.${group}.${method}.${status}`, count]
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value)) yield* leaves(path === '' ? name : `${path}.${name}`, inner)
  } else if (typeof value === 'string' || typeof value === 'number' || value === null) yield [path, value]
}

/** Writes a line for each hour or day, then a line for each correction. */
export function seriesCsv(
  { tenant_id: id, granularity, parts, corrections }: UsageSeries,
  shown: readonly ResourceName[],
): string {
  const names = namesOf(shown)
  const header = [
    'tenant_id',
    'kind',
    'start',
    'closed',
    ...names.map(snake),
    'number',
    'billed_month',
    'previous_hash',
    'hash',
  ]
  return csv(header, [
    ...parts.map(({ start, closed, amounts, link }) => [
      id,
      granularity,
      start.toISOString(),
      closed,
      ...names.map((name) => amounts[name]),
      null,
      null,
      link?.previous ?? null,
      link?.hash ?? null,
    ]),
    ...corrections.map(({ number, hour, amounts, billedMonth, previous, hash }) => [
      id,
      'correction',
      hour.toISOString(),
      true,
      ...names.map((name) => amounts[name]),
      number,
      monthText(billedMonth),
      previous,
      hash,
    ]),
  ])
}

export function pageCsv({ month, tenants }: UsagePage): string {
  return csv(
    ['tenant_id', 'name', 'month', 'incomplete', ...amountNames.map(snake)],
    tenants.map(({ tenantId, name, totals, closedAt }) => [
      tenantId,
      name,
      month,
      closedAt === undefined,
      ...amountNames.map((amount) => totals[amount]),
    ]),
  )
}

function toCorrectionBody(
  { number, hour, amounts, billedMonth, recordedAt, previous, hash }: Correction,
  shown: readonly ResourceName[],
): Static<typeof CorrectionBody> {
  return {
    number,
    hour: hour.toISOString(),
    amounts: digits(amounts, shown),
    billed_month: monthText(billedMonth),
    recorded_at: recordedAt.toISOString(),
    previous_hash: previous,
    hash,
  }
}

function digits(amounts: Amounts, shown: readonly ResourceName[]): Record<string, string> {
  return Object.fromEntries(namesOf(shown).map((name) => [snake(name), String(amounts[name])]))
}

function namesOf(shown: readonly ResourceName[]): AmountName[] {
  return amountNames.filter((name) => shown.some((resource) => amountsOf[resource].includes(name)))
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
