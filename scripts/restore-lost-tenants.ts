// `npm run restore-lost-tenants`: after the loss of a host or its disk, restores each dedicated tenant whose volumes
// are gone from its newest complete backup, through the operators' API. It can be repeated, because it checks each time
// what is gone.
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
}

interface Backup {
  id: string
  state: string
  created: string
}

interface Operation {
  id: string
  state: string
  error: string | null
  finished: string | null
}

const { values: options } = parseArgs({
  options: {
    'control-url': { type: 'string', default: 'http://127.0.0.1:4400' },
    /** File of an admin key. Without it, the key is in the variable KEY. */
    'key-file': { type: 'string' },
  },
})
const key = options['key-file'] === undefined ? process.env['KEY'] : await readFile(options['key-file'], 'utf8')
if (key === undefined || key.trim() === '') throw new Error('An admin key is missing. Set KEY, or --key-file.')
const authorization = `Bearer ${key.trim()}`

/** Maximum number of restores that the control plane carries out at once. */
const maxConcurrency = 2
const pollMilliseconds = 1_000
/** Time after which a tenant that is still not failed is restarted, so that the control plane checks it. */
const noticeMilliseconds = 30_000
const failMilliseconds = 180_000

const lost = await lostTenants()
if (lost.length === 0) console.log('No tenant has lost a volume.')
let failures = 0
const queue = [...lost]
await Promise.all(
  Array.from({ length: maxConcurrency }, async () => {
    for (let tenant = queue.shift(); tenant !== undefined; tenant = queue.shift()) {
      const outcome = await restore(tenant).catch((error: unknown) =>
        error instanceof Error ? error.message : String(error),
      )
      if (outcome !== undefined) failures++
      console.log(`${tenant.tenant_id} (${tenant.name}): ${outcome ?? 'restored'}`)
    }
  }),
)
process.exitCode = failures === 0 ? 0 : 1

async function lostTenants(): Promise<Tenant[]> {
  const found: Tenant[] = []
  for (const tenant of await listAll<Tenant>('/v1/tenants', 'tenants')) {
    if (tenant.isolation === 'schema-per-tenant' || tenant.status === 'deleting') continue
    const { differences } = await call<{ differences: { component: string; field: string; observed: unknown }[] }>(
      'GET',
      `/v1/tenants/${tenant.tenant_id}/drift`,
    )
    const isGone = (volume: string) =>
      differences.some(
        ({ component, field, observed }) =>
          component === `volume/${volume}` && field === 'existence' && observed === 'absent',
      )
    if (isGone('data') || isGone('files')) found.push(tenant)
  }
  return found
}

/** Restores a tenant. @returns the reason of a failure; undefined after a success */
async function restore(tenant: Tenant): Promise<string | undefined> {
  const path = `/v1/tenants/${tenant.tenant_id}`
  const backups = await listAll<Backup>(`${path}/backups`, 'backups')
  const newest = backups.filter(({ state }) => state === 'complete').at(-1)
  if (newest === undefined) return 'it has no complete backup'
  if (tenant.status === 'paused') await call('POST', `${path}/wake`, {})
  if (tenant.status === 'suspended') await call('PATCH', path, { suspended: false })
  await waitUntilFailed(path)
  const { operation } = await call<{ operation: Operation }>('POST', `/v1/backups/${newest.id}/restore`, {
    into: 'same',
  })
  for (let now = operation; ; now = await call<Operation>('GET', `/v1/operations/${operation.id}`)) {
    if (now.finished !== null) {
      if (now.state !== 'succeeded')
        return `the restore of the backup ${newest.id} ended with the state "${now.state}": ${now.error ?? 'no reason was reported'}`
      break
    }
    await sleep(pollMilliseconds)
  }
  if (tenant.status === 'suspended') {
    const { suspend_reason, payment_required } = tenant
    await call('PATCH', path, {
      suspended: true,
      payment_required,
      ...(suspend_reason === null ? {} : { suspend_reason }),
    })
  }
  return undefined
}

/**
 * Waits until the control plane has found the tenant's volume missing, because only such a tenant can be restored in
 * place.
 */
async function waitUntilFailed(path: string): Promise<void> {
  let isRestarted = false
  for (let waited = 0; waited < failMilliseconds; waited += pollMilliseconds) {
    const { status } = await call<Tenant>('GET', path)
    if (status === 'failed') return
    if (waited >= noticeMilliseconds && !isRestarted) {
      await call('POST', `${path}/restart`, {})
      isRestarted = true
    }
    await sleep(pollMilliseconds)
  }
  throw new Error('The control plane does not report the tenant as failed.')
}

async function listAll<Item>(path: string, field: string): Promise<Item[]> {
  const items: Item[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: Record<string, unknown> = await call(
      'GET',
      `${path}?limit=1000${cursor === '' ? '' : `&cursor=${cursor}`}`,
    )
    items.push(...(page[field] as Item[]))
    cursor = page['next_cursor'] as string | null
  }
  return items
}

async function call<Body>(method: string, path: string, body?: object): Promise<Body> {
  const response = await fetch(`${options['control-url']}${path}`, {
    method,
    headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} was rejected with ${response.status}: ${text.slice(0, 500)}`)
  return JSON.parse(text) as Body
}
