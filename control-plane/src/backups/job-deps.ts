// The dependencies of all backup jobs, and how they find regions, tenants and files.
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Engine } from '../engines/index.ts'
import { dedicatedDatabase, type HomeMigration } from '../homes/index.ts'
import type { Region, Snapshot } from '../reconcile/index.ts'
import type { Job } from './backup.ts'
import { BackupError, OperationSuperseded } from './backup-error.ts'
import type { BackupLedger } from './backup-ledger.ts'
import type { BackupRecords } from './backup-record.ts'
import type { BackupTarget } from './backup-target.ts'
import { blobsOf, type HomeLocation } from './home-location.ts'
import { openFiles, type BackupFiles } from './parts.ts'

export interface JobDeps {
  ledger: BackupLedger
  target: BackupTarget
  records: BackupRecords
  regions: ReadonlyMap<string, Pick<Region, 'engine' | 'images' | 'stack' | 'awaitDatabase'>>
  /** Returns the tenant as it is now; undefined when there is none. */
  tenant: (tenantId: string) => Promise<Snapshot | undefined>
  /** Reads the tenant's home for the ledger. Errors are logged. */
  readHome: (tenantId: string, signal: AbortSignal) => Promise<void>
  /** The home migrations of this version. */
  migrations: readonly HomeMigration[]
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  epoch: bigint
}

/**
 * Returns the region with its engine.
 * @throws BackupError NO_ENGINE
 */
export function regionOf(
  { regions }: Pick<JobDeps, 'regions'>,
  id: string,
): Pick<Region, 'images' | 'stack' | 'awaitDatabase'> & { engine: Engine } {
  const region = regions.get(id)
  if (region?.engine === undefined) throw new BackupError('NO_ENGINE', `The region ${id} has no engine for services.`)
  return { ...region, engine: region.engine }
}

/**
 * Returns the tenant.
 * @throws OperationSuperseded when it is deleted
 */
export async function presentTenant({ tenant }: Pick<JobDeps, 'tenant'>, tenantId: string): Promise<Snapshot> {
  const found = await tenant(tenantId)
  if (found === undefined || found.desired === 'deleted')
    throw new OperationSuperseded(`The tenant ${tenantId} is deleted.`)
  return found
}

/** Returns the location of a tenant's home in its own services. */
export function ownLocation(engine: Engine, tenantId: string): HomeLocation {
  return { engine, stack: tenantId, filesService: 'runtime', database: dedicatedDatabase, blobs: blobsOf(tenantId) }
}

export function filesOf({ target }: Pick<JobDeps, 'target'>, { backup, key }: Job, signal: AbortSignal): BackupFiles {
  return openFiles(target, backup.id, key, signal)
}

export function stepOf(
  { ledger, epoch }: Pick<JobDeps, 'ledger' | 'epoch'>,
  job: Job,
): (name: string) => Promise<void> {
  return (name) => ledger.step(job, name, epoch)
}
