// `npm run restore-lost-tenants`: after the loss of a host or its disk, restores each tenant whose volumes or home are gone
// from its newest complete backup, through the operators' API. It can be repeated, because it checks each time what is gone.
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

interface Tenant {
  tenant_id: string
  name: string
  isolation: string
  status: string
  suspend_reason: string | null
  payment_required: boolean
  conditions: { type: string; status: string; reason: string; observed_at: string }[]
}

interface Backup {
  id: string
  state: string
  created: string
}

interface Operation {
  id: string
  kind: string
  state: string
  error: string | null
  finished: string | null
}

const { values: options } = parseArgs({
  options: {
    'control-url': { type: 'string', default: 'http://127.0.0.1:4400' },
    /** File of an admin key. Without it, the key is in the variable KEY. */
    'key-file': { type: 'string' },
    /**
     * Time at which the control plane was started on a new host. Then backups that the control database does not know are
     * adopted, and tenants that share a database or have a cluster are restored too.
     */
    since: { type: 'string' },
  },
})
const key = options['key-file'] === undefined ? process.env['KEY'] : await readFile(options['key-file'], 'utf8')
if (key === undefined || key.trim() === '') throw new Error('An admin key is missing. Set KEY, or --key-file.')
const authorization = `Bearer ${key.trim()}`

/** The time before which no observation of a tenant counts; undefined on a host that is not new. */
const since = options.since === undefined ? undefined : Date.parse(options.since)
/** Maximum number of restores that the control plane carries out at once. */
const maxConcurrency = 2
const pollMilliseconds = 1_000
/** Time after which a tenant with its own services that is still not failed is restarted, so that the control plane checks it. */
const noticeMilliseconds = 30_000
const failMilliseconds = 300_000
/** Time within which the control plane has observed the homes of all tenants on new hosts, where it starts all services. */
const observeMilliseconds = 600_000

if (since !== undefined) await adoptUnknown()
let failures = 0
const lost = await lostTenants()
if (lost.length === 0 && failures === 0) console.log('No tenant has lost its data.')
const queue = [...lost]
await Promise.all(
  Array.from({ length: maxConcurrency }, async () => {
    for (let tenant = queue.shift(); tenant !== undefined; tenant = queue.shift()) {
      const { text, isFailure } = await restore(tenant).catch((error: unknown) => ({
        text: error instanceof Error ? error.message : String(error),
        isFailure: true,
      }))
      if (isFailure) failures++
      console.log(`${tenant.tenant_id} (${tenant.name}): ${text}`)
    }
  }),
)
process.exitCode = failures === 0 ? 0 : 1

/** Adopts the backups that were made after the control database was dumped. */
async function adoptUnknown(): Promise<void> {
  // The control plane finds them when it compares the targets, which it does at its start.
  for (let waited = 0; !(await isCompared()); waited += pollMilliseconds) {
    if (waited >= failMilliseconds) throw new Error('The control plane has not compared its backup targets.')
    await sleep(pollMilliseconds)
  }
  for (const { id, adoptable } of await listAll<{ id: string; adoptable: boolean }>('/v1/backups', 'backups', {
    state: 'unknown',
  })) {
    if (adoptable) await call('POST', `/v1/backups/${id}/adopt`)
    console.log(`backup ${id}: ${adoptable ? 'adopted' : 'it cannot be adopted'}`)
  }
}

async function isCompared(): Promise<boolean> {
  return (await request('GET', '/metrics')).includes('tenantry_backup_target_available{')
}

async function lostTenants(): Promise<Tenant[]> {
  const found: Tenant[] = []
  const deadline = Date.now() + observeMilliseconds
  for (const tenant of await listAll<Tenant>('/v1/tenants', 'tenants')) {
    if (tenant.status === 'deleting') continue
    try {
      if (tenant.isolation === 'schema-per-tenant') {
        if (since !== undefined && (await hasLostHome(tenant, since, deadline))) found.push(tenant)
      } else if ((await hasLostVolume(tenant)) || (await hasLostCluster(tenant, deadline))) found.push(tenant)
    } catch (error) {
      failures++
      console.log(`${tenant.tenant_id} (${tenant.name}): ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return found
}

/** Whether a cluster that runs began again without data, because all its members are gone. */
async function hasLostCluster(tenant: Tenant, deadline: number): Promise<boolean> {
  if (tenant.isolation !== 'cluster-per-tenant' || since === undefined || isHalted(tenant)) return false
  return hasLostHome(tenant, since, deadline)
}

/**
 * Whether the home of a tenant that shares a database, or has a cluster, is gone. While its Postgres starts, the tenant is failed for other
 * reasons.
 */
async function hasLostHome({ tenant_id }: Tenant, after: number, deadline: number): Promise<boolean> {
  for (;;) {
    const { conditions } = await call<Tenant>('GET', `/v1/tenants/${tenant_id}`)
    const home = conditions.find(({ type }) => type === 'Home')
    if (home !== undefined && Date.parse(home.observed_at) >= after) {
      if (home.reason === 'HomeMissing') return true
      if (home.status === 'True') return false
    }
    if (Date.now() >= deadline) throw new Error('The control plane has not observed its home.')
    await sleep(pollMilliseconds)
  }
}

async function hasLostVolume(tenant: Tenant): Promise<boolean> {
  const gone = await goneVolumes(tenant)
  // The volumes of a cluster that runs may be empty. One that is stopped gets no empty ones.
  const isGone = isHalted(tenant) && ['data-1', 'data-2', 'data-3'].every((volume) => gone.has(volume))
  return gone.has('files') || (tenant.isolation === 'cluster-per-tenant' ? isGone : gone.has('data'))
}

/** Returns the names of the tenant's volumes that do not exist. */
async function goneVolumes({ tenant_id }: Tenant): Promise<Set<string>> {
  const { differences } = await call<{ differences: { component: string; field: string; observed: unknown }[] }>(
    'GET',
    `/v1/tenants/${tenant_id}/drift`,
  )
  const gone = differences.filter(({ field, observed }) => field === 'existence' && observed === 'absent')
  return new Set(gone.flatMap(({ component }) => /^volume\/(.+)$/.exec(component)?.[1] ?? []))
}

/** Restores a tenant. @returns the result for the operator */
async function restore(tenant: Tenant): Promise<{ text: string; isFailure: boolean }> {
  const path = `/v1/tenants/${tenant.tenant_id}`
  const backups = await listAll<Backup>(`${path}/backups`, 'backups')
  const newest = backups.filter(({ state }) => state === 'complete').at(-1)
  if (newest === undefined) return { text: 'it has no complete backup', isFailure: true }
  const wasSuspended = isHalted(tenant) && (await resume(path))
  await waitUntilFailed(tenant)
  const { operation } = await call<{ operation: Operation }>('POST', `/v1/backups/${newest.id}/restore`, {
    into: 'same',
  })
  for (let now = operation; ; now = await call<Operation>('GET', `/v1/operations/${operation.id}`)) {
    if (now.finished !== null) {
      if (now.state !== 'succeeded')
        return {
          text: `the restore of the backup ${newest.id} ended with the state "${now.state}": ${now.error ?? 'no reason was reported'}`,
          isFailure: true,
        }
      break
    }
    await sleep(pollMilliseconds)
  }
  if (wasSuspended) {
    const { suspend_reason, payment_required } = tenant
    await call('PATCH', path, {
      suspended: true,
      payment_required,
      ...(suspend_reason === null ? {} : { suspend_reason }),
    })
  }
  return { text: `restored from the backup of ${newest.created}`, isFailure: false }
}

/** Whether the tenant is suspended or paused, or was when it was last observed. One whose data is gone is `failed`. */
function isHalted({ status, conditions }: Tenant): boolean {
  if (status === 'suspended' || status === 'paused') return true
  return conditions.some(({ type, reason }) => type === 'Runtime' && reason === 'Halted')
}

/** Resumes or wakes a tenant. Other tenants stay as they are. @returns whether it was suspended */
async function resume(path: string): Promise<boolean> {
  const { operation } = await call<{ operation: Operation }>('PATCH', path, { suspended: false })
  await call('POST', `${path}/wake`, {})
  return operation.kind === 'resume'
}

/**
 * Waits until the control plane has found the tenant's volume or home missing, because only such a tenant can be restored in
 * place. A cluster fails for other reasons while it begins again, which it does unless its files are gone.
 */
async function waitUntilFailed(tenant: Tenant): Promise<void> {
  const path = `/v1/tenants/${tenant.tenant_id}`
  const hasService = tenant.isolation !== 'schema-per-tenant'
  const begins = tenant.isolation === 'cluster-per-tenant' && !(await goneVolumes(tenant)).has('files')
  let isRestarted = false
  for (let waited = 0; waited < failMilliseconds; waited += pollMilliseconds) {
    const { status, conditions } = await call<Tenant>('GET', path)
    const isMissing = conditions.some(({ type, reason }) => type === 'Home' && reason === 'HomeMissing')
    if (status === 'failed' && (isMissing || (hasService && !begins))) return
    if (waited >= noticeMilliseconds && !isRestarted && hasService && !begins) {
      await call('POST', `${path}/restart`, {})
      isRestarted = true
    }
    await sleep(pollMilliseconds)
  }
  throw new Error('The control plane does not report the tenant as failed.')
}

async function listAll<Item>(path: string, field: string, query: Record<string, string> = {}): Promise<Item[]> {
  const items: Item[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const parameters = new URLSearchParams({ ...query, limit: '1000', ...(cursor === '' ? {} : { cursor }) })
    const page: Record<string, unknown> = await call('GET', `${path}?${parameters.toString()}`)
    items.push(...(page[field] as Item[]))
    cursor = page['next_cursor'] as string | null
  }
  return items
}

async function call<Body>(method: string, path: string, body?: object): Promise<Body> {
  return JSON.parse(await request(method, path, body)) as Body
}

async function request(method: string, path: string, body?: object): Promise<string> {
  const response = await fetch(`${options['control-url']}${path}`, {
    method,
    headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} was rejected with ${response.status}: ${text.slice(0, 500)}`)
  return text
}
