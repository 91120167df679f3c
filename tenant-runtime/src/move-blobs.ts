// A command that moves tenants' blobs from the fallback store to the store that the runtime writes to, while it serves. It
// has the environment of the runtime, and reads the tenants from the runtime's directory.
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { readOrExit } from '@tenantry/contract'
import { readConfig } from './config.ts'
import { Connections, defaultConnectionLimits } from './database/connections.ts'
import { RuntimeError } from './errors.ts'
import { openBackend } from './storage/backend/open-backend.ts'
import { PairedBackend } from './storage/backend/paired.ts'
import { dropOldStore, moveTenant, type MoveReport } from './storage/move-tenant.ts'
import type { Tenant } from './tenancy/tenant.ts'
import { TenantRegistry } from './tenancy/tenant-registry.ts'

const maxAttempts = 5

const usage = `usage: move-blobs [--drop] [TENANT…]

Copies blobs that are only in TENANTRY_STORAGE_FALLBACK to TENANTRY_STORAGE_BACKEND, and verifies them, for all tenants of this
runtime or for those whose IDs are given. With --drop it removes the moved blobs from the fallback.
`

const { values: options, positionals: named } = parseArgs({
  options: { drop: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  allowPositionals: true,
})
if (options.help) {
  process.stdout.write(usage)
  process.exit(0)
}

const config = readOrExit(() => readConfig(process.env))
const pair = await openPair()

const connections = new Connections({ ...defaultConnectionLimits, total: 8 })
const registry = new TenantRegistry({
  controlUrl: config.controlUrl,
  internalToken: config.internalToken,
  data: config.data,
  region: config.region,
  share: config.share,
  connections,
  fetch,
  onChange: () => undefined,
  onError: (error) => process.stderr.write(`${error.message}\n`),
})
await registry.load()
const tenants = named.length === 0 ? [...registry.all()] : named.flatMap((id) => registry.get(id) ?? unknown(id))

const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => stopping.abort(new Error('Stopped. Blobs that were moved remain moved.')))
const work = { pair, pause: () => pause(1_000, undefined, { signal: stopping.signal }), signal: stopping.signal }

for (const tenant of tenants) await withRetries(() => (options.drop ? drop(tenant) : move(tenant)), tenant.id)
report(`${tenants.length} tenants`)
await connections.close()
process.exit()

async function openPair(): Promise<PairedBackend> {
  const backend = await openBackend(config.storage, config.data)
  if (!(backend instanceof PairedBackend))
    throw new Error('TENANTRY_STORAGE_FALLBACK is not set, so there is nothing to move.')
  await backend.start()
  return backend
}

async function move(tenant: Tenant): Promise<void> {
  const onProgress = ({ copied }: MoveReport) => {
    if (copied % 1_000 === 0) report(`${tenant.id}: ${copied} files copied`)
  }
  const { objects, copied, copiedBytes, errors } = await moveTenant({ ...work, tenant, onProgress })
  report(
    `${tenant.id}: ${copied} files copied, ${copiedBytes} bytes; ` +
      `${objects - errors.length} of ${objects} objects verified in ${pair.primary.name}`,
  )
  for (const error of errors) failed(tenant.id, error)
}

async function drop(tenant: Tenant): Promise<void> {
  await dropOldStore({ ...work, tenant })
  report(`${tenant.id}: dropped from ${pair.fallback.name}`)
}

/** Retries a step, because a store or a database that is briefly unavailable must not end hours of work. */
async function withRetries(step: () => Promise<void>, tenantId: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      stopping.signal.throwIfAborted()
      await step()
      return
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const isTemporary = error instanceof RuntimeError && error.status === 503 && attempt < maxAttempts
      if (!isTemporary) {
        failed(tenantId, message)
        return
      }
      const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
      process.stderr.write(`${tenantId}: ${message}${cause}; retrying\n`)
      await pause(attempt * 1_000)
    }
  }
}

function unknown(id: string): [] {
  failed(id, 'This runtime does not serve the tenant.')
  return []
}

function report(line: string): void {
  process.stdout.write(`${line}\n`)
}

function failed(tenantId: string, error: string): void {
  process.exitCode = 1
  process.stderr.write(`${tenantId}: ${error}\n`)
}
