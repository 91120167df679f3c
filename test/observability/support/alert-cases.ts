// For each alert rule: series with which it fires, series with which it does not, and what it then states.

/** One alert rule as promtool tests it. Values are in promtool's notation, one for each interval: `start+step x count`. */
export interface AlertCase {
  /** The time between two values, and between two evaluations. */
  interval: '1m' | '1h'
  /** Series with which the alert fires at `at`. */
  fires: Record<string, string>
  /** Series with which it does not fire at that time, nor at any other. */
  quiet: Record<string, string>
  /** The time of the evaluation after the first values, such as `5m`. */
  at: string
  /** Labels of the alert, without its severity. */
  labels: Record<string, string>
  summary: string
}

/** Minutes from which on a test has one value an hour. */
const longMinutes = 180

const always = (value: number, minutes: number) => `${value}x${minutes}`
const gateway = { job: 'tenantry-gateway', instance: 'g:1' }
const region = { region: 'eu' }
const inGateway = 'job="tenantry-gateway",instance="g:1"'

/** A gauge without labels that is over its bound for a time. */
function over(name: string, bound: number, minutes: number, summary: string, value = bound + 60): AlertCase {
  const isLong = minutes >= longMinutes
  const intervals = isLong ? minutes / 60 : minutes
  return {
    interval: isLong ? '1h' : '1m',
    fires: { [name]: always(value, intervals + 2) },
    quiet: { [name]: always(bound, intervals + 2) },
    at: `${intervals + 1}${isLong ? 'h' : 'm'}`,
    labels: labelsOf(name),
    summary,
  }
}

/** A counter that grows each minute, against one that has grown once before. */
function grows(name: string, minutes: number, labels: Record<string, string>, summary: string): AlertCase {
  return {
    interval: '1m',
    fires: { [name]: `0+1x${minutes + 5}` },
    quiet: { [name]: always(7, minutes + 5) },
    at: `${minutes + 4}m`,
    labels,
    summary,
  }
}

function labelsOf(series: string): Record<string, string> {
  return Object.fromEntries([...series.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]))
}

const served = (status: string) => `tenantry_gateway_requests_total{${inGateway},outcome="served",status="${status}"}`
const bucket = (le: string) => `tenantry_gateway_request_seconds_bucket{${inGateway},le="${le}"}`
const bound = (name: string, of: string) => `tenantry_gateway_bound_${name}{${inGateway},bound="${of}"}`
const dump = 'tenantry_control_database_dump_timestamp_seconds{target="second"}'
const failedVerifications = 'tenantry_backup_jobs_total{kind="verify",outcome="failed"}'
const certificate = `tenantry_gateway_sql_certificate_end_seconds{${inGateway}}`
const day = 1_440

/** All alert rules by name. */
export const alertCases: Record<string, AlertCase> = {
  TenantryPartDown: {
    interval: '1m',
    fires: { [`up{${inGateway}}`]: '1x1 0x5' },
    quiet: { [`up{${inGateway}}`]: '1x1 0x0 1x5', 'up{job="other",instance="o"}': '0x7' },
    at: '5m',
    labels: gateway,
    summary: 'tenantry-gateway at g:1 does not respond',
  },
  TenantryRegionNotReady: {
    interval: '1m',
    fires: { 'tenantry_region_ready{region="eu"}': '1 0x5' },
    quiet: { 'tenantry_region_ready{region="eu"}': '1 0 1x5' },
    at: '3m',
    labels: region,
    summary: 'The region eu is not ready',
  },
  TenantryQueueStuck: over('tenantry_queue_oldest_seconds', 60, 1, 'Tenants have waited for the reconciler for 2m 0s'),
  TenantryReconciliationsFail: grows(
    'tenantry_reconciliations_total{outcome="failed"}',
    15,
    { outcome: 'failed' },
    'Reconciliations of tenants fail',
  ),
  TenantrySweepSlow: over('tenantry_sweep_seconds{region="eu"}', 10, 5, 'The sweep of the region eu takes 12s', 12),
  TenantryRegionCorrected: grows(
    'tenantry_region_corrections_total{region="eu"}',
    30,
    region,
    'The stack of the region eu was repaired repeatedly',
  ),
  TenantryDatabaseOverLimit: over(
    'tenantry_shared_database_limit_ratio{region="eu",database="tenantry_homes_1"}',
    1,
    30,
    'The shared database tenantry_homes_1 in the region eu exceeds its limit',
    2,
  ),
  TenantryOrphans: over('tenantry_orphans{region="eu"}', 0, 180, '2 stacks in the region eu have no tenant', 2),
  TenantryRequestsFail: {
    interval: '1m',
    fires: { [served('2xx')]: '0+90x20', [served('5xx')]: '0+10x20' },
    quiet: { [served('2xx')]: '0+96x20', [served('5xx')]: '0+4x20' },
    at: '16m',
    labels: { instance: 'g:1' },
    summary: '10% of the served requests of g:1 fail',
  },
  TenantryRequestsSlow: {
    interval: '1m',
    fires: { [bucket('2')]: '0+90x30', [bucket('5')]: '0+100x30', [bucket('+Inf')]: '0+100x30' },
    quiet: { [bucket('2')]: '0+96x30', [bucket('5')]: '0+100x30', [bucket('+Inf')]: '0+100x30' },
    at: '20m',
    labels: { instance: 'g:1' },
    summary: 'The 95th percentile of the response times of g:1 is over 2 s',
  },
  TenantryGatewayNearBound: {
    interval: '1m',
    fires: { [bound('used', 'requests')]: '90x8', [bound('limit', 'requests')]: '100x8' },
    quiet: {
      [bound('used', 'requests')]: '80x8',
      [bound('limit', 'requests')]: '100x8',
      [bound('used', 'requests_per_tenant')]: '100x8',
      [bound('limit', 'requests_per_tenant')]: '100x8',
    },
    at: '6m',
    labels: { ...gateway, bound: 'requests' },
    summary: 'g:1 uses 90% of its bound requests',
  },
  TenantryGatewayRejects: {
    ...grows(bound('rejections_total', 'connections'), 10, { ...gateway, bound: 'connections' }, ''),
    summary: 'g:1 rejects clients because of its bound connections',
  },
  TenantryGatewayMemory: {
    interval: '1m',
    fires: { [`process_resident_memory_bytes{${inGateway}}`]: '1073741824x12' },
    quiet: {
      [`process_resident_memory_bytes{${inGateway}}`]: '700000000x12',
      'process_resident_memory_bytes{job="tenantry-runtime",instance="r"}': '1073741824x12',
    },
    at: '11m',
    labels: gateway,
    summary: 'g:1 uses 1GiB of memory',
  },
  TenantrySqlCertificateEnds: {
    interval: '1m',
    // The evaluation is an hour after 1970.
    fires: { [certificate]: always(86_400 + 3_660, 63) },
    quiet: {
      [certificate]: always(31 * 86_400 + 3_660, 63),
      'tenantry_gateway_sql_certificate_end_seconds{instance="none"}': '0x63',
    },
    at: '61m',
    labels: gateway,
    summary: 'The certificate of the SQL port of g:1 ends in 1d 0h 0m 0s',
  },
  TenantryRuntimeOutOfMemory: {
    ...grows(
      'tenantry_runtime_budget_rejections_total{instance="r:1",budget="bodies",share="total"}',
      5,
      { instance: 'r:1', budget: 'bodies', share: 'total' },
      'The runtime r:1 rejects requests, because its budget of bodies is used up',
    ),
    quiet: { 'tenantry_runtime_budget_rejections_total{instance="r:1",budget="bodies",share="tenant"}': '0+1x10' },
  },
  TenantryRealtimeLinkLost: {
    interval: '1m',
    fires: {
      'tenantry_runtime_realtime_links{instance="r:1"}': '1x10',
      'tenantry_runtime_realtime_siblings{instance="r:1"}': '2x10',
    },
    quiet: {
      'tenantry_runtime_realtime_links{instance="r:1"}': '1x10',
      'tenantry_runtime_realtime_siblings{instance="r:1"}': '1x10',
      'tenantry_runtime_realtime_links{instance="r:2"}': '0x10',
      'tenantry_runtime_realtime_siblings{instance="r:2"}': '0x10',
    },
    at: '6m',
    labels: { instance: 'r:1' },
    summary: 'The runtime r:1 receives no realtime messages of another runtime',
  },
  TenantryRealtimeMessagesDropped: grows(
    'tenantry_runtime_realtime_dropped_total{instance="r:1",reason="link_full"}',
    5,
    { instance: 'r:1', reason: 'link_full' },
    'The runtime r:1 drops realtime messages between runtimes (link_full)',
  ),
  TenantryFilesLost: over(
    'tenantry_storage_phantoms{region="eu"}',
    0,
    0,
    '3 requested objects in the region eu have lost their files',
    3,
  ),
  TenantryFilesNotCleanedUp: {
    ...over('tenantry_storage_backlog{region="eu"}', 0, 60, 'Files in the region eu are not cleaned up', 1),
    quiet: { 'tenantry_storage_backlog{region="eu"}': '1x30 0x40', 'tenantry_storage_orphans{region="eu"}': '0x70' },
  },
  TenantrySqlSessionsOverLimit: grows(
    'tenantry_sql_sessions_ended_total{region="eu",reason="TooMuchMemory",action="terminated"}',
    60,
    { region: 'eu', reason: 'TooMuchMemory' },
    'SQL sessions in the region eu exceed a limit (TooMuchMemory)',
  ),
  TenantryUsageNotClosed: over(
    'tenantry_usage_open_seconds',
    14_400,
    5,
    'Hours of usage have not closed for 5h 0m 0s',
    18_000,
  ),
  TenantryUsageSourcesMissing: over(
    'tenantry_usage_missing_sources{kind="gateway"}',
    0,
    60,
    '1 gateways do not report usage',
    1,
  ),
  TenantryUsageHomesMissing: over(
    'tenantry_usage_missing_sources{kind="home"}',
    0,
    180,
    'The usage of 4 homes is missing',
    4,
  ),
  TenantryMonthNotClosed: over(
    'tenantry_usage_open_month_seconds',
    14_400,
    5,
    'The last month is not closed for all tenants',
  ),
  TenantryHomesNotRead: grows(
    'tenantry_home_readings_total{outcome="failed"}',
    30,
    { outcome: 'failed' },
    'Homes cannot be read for the ledger',
  ),
  TenantryInvoicesFail: over(
    'tenantry_invoices_missing{month="2026-10",reason="failed"}',
    0,
    15,
    '2 invoices of 2026-10 cannot be made',
    2,
  ),
  TenantryInvoicesMissing: over(
    'tenantry_invoices_missing{month="2026-10",reason="not_closed"}',
    0,
    day,
    '2 invoices of 2026-10 wait for usage',
    2,
  ),
  TenantryInvoicesOutdated: over(
    'tenantry_invoices_missing{month="2026-10",reason="outdated"}',
    0,
    60,
    '2 invoices of 2026-10 are made again and again',
    2,
  ),
  TenantryLeasesFail: grows(
    'tenantry_lease_calls_total{outcome="failed"}',
    5,
    { outcome: 'failed' },
    'Gateways get no leases',
  ),
  TenantryWebhooksDelayed: over(
    'tenantry_webhook_oldest_seconds',
    3_600,
    5,
    'A message to a webhook has been pending for 2h 0m 0s',
    7_200,
  ),
  TenantryWebhooksDead: over(
    'tenantry_webhook_deliveries{state="dead"}',
    0,
    0,
    '5 messages to webhooks were given up',
    5,
  ),
  TenantryBackupsFail: {
    ...grows(failedVerifications, 0, { kind: 'verify', outcome: 'failed' }, 'A verify of a tenant failed'),
    // The first failure since the control plane started.
    fires: { [failedVerifications]: '0x2 1x3' },
  },
  TenantryBackupTooOld: over(
    'tenantry_backup_oldest_seconds{kind="complete"}',
    90_000,
    5,
    'The newest backup of some tenant is 1d 6h 0m 0s old',
    108_000,
  ),
  TenantryProofTooOld: over(
    'tenantry_backup_oldest_seconds{kind="proven"}',
    14 * 86_400,
    60,
    'The last proof of some tenant is 15d 0h 0m 0s old',
    15 * 86_400,
  ),
  TenantryBackupMissing: over(
    'tenantry_backup_tenants_without{kind="complete"}',
    0,
    day,
    '1 tenants with a schedule have no complete backup',
    1,
  ),
  TenantryProofMissing: over(
    'tenantry_backup_tenants_without{kind="proven"}',
    0,
    7 * day,
    '1 tenants with a schedule have no proven backup',
    1,
  ),
  TenantryBackupFilesMissing: over('tenantry_backups_missing', 0, 10, '1 complete backups have lost their files', 1),
  TenantryBackupsUnknown: over('tenantry_backups_unknown', 0, 60, '1 backups are not known to the control database', 1),
  TenantryBackupsNotCopied: over('tenantry_backups_uncopied', 0, 360, '1 backups are not in all targets', 1),
  TenantryBackupTargetGone: {
    interval: '1m',
    fires: { 'tenantry_backup_target_available{target="second"}': '0x63' },
    quiet: { 'tenantry_backup_target_available{target="second"}': '0x30 1x40' },
    at: '61m',
    labels: { target: 'second' },
    summary: 'The backup target second does not respond',
  },
  TenantryControlDatabaseNotDumped: {
    interval: '1m',
    // The time of a target without any dump is 1970, when the test begins.
    fires: { [dump]: '0x250' },
    quiet: { [dump]: '0+60x250' },
    at: '4h',
    labels: { target: 'second' },
    summary: 'The newest dump of the control database in second is 4h 0m 0s old',
  },
  TenantryArchiveLags: over('tenantry_archive_lag_seconds', 300, 5, 'The archive of some tenant lacks 6m 0s'),
  TenantryArchiveFailed: over('tenantry_archives_failed', 0, 60, '2 tenants cannot be restored to a moment', 2),
}
