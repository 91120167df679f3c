// The dependencies of all backup jobs, and how they find regions, tenants and files.
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Engine } from '../engines/index.ts'
import { dedicatedDatabase, type HomeMigration } from '../homes/index.ts'
import { hasCluster, type HostChoice, type Region, type Snapshot } from '../reconcile/index.ts'
import { superuserOf } from '../regions/index.ts'
import { componentServices, onHost } from '../stacks/index.ts'
import type { Archives } from './archive/open-archives.ts'
import type { Job } from './backup.ts'
import { BackupError, OperationSuperseded } from './backup-error.ts'
import type { BackupLedger } from './store-ledger.ts'
import type { BackupRecords } from './backup-record.ts'
import { blobsOf, type HomeLocation } from './home-location.ts'
import type { ScratchParts } from './scratch-stack.ts'
import type { BackupTargets } from './target-set.ts'
import type { RuntimeFiles } from './shared/runtime-files.ts'
import type { SharedLocation } from './shared/shared-server.ts'

/** The parts of a region that jobs use for tenants with services of their own. */
type EngineParts =
  | 'images'
  | 'stack'
  | 'awaitDatabase'
  | 'home'
  | 'primaryService'
  | 'memberRoles'
  | 'adoptData'
  | 'clusterOrigin'
  | 'openCluster'

export interface JobDeps {
  ledger: BackupLedger
  targets: BackupTargets
  records: BackupRecords
  /** The archives, from which a restore to a point in time makes its backup. */
  archives: Pick<Archives, 'files' | 'ledger'>
  regions: ReadonlyMap<string, Pick<Region, 'config' | 'engine' | 'runtimeUrls' | 'spansHosts' | EngineParts>>
  /** Chooses hosts in regions with several. */
  hosts: HostChoice
  /** Calls to shared runtimes about the files of one tenant. */
  runtimeFiles: (urls: readonly string[], tenantId: string) => RuntimeFiles
  /** Returns the tenant as it is now; undefined when there is none. */
  tenant: (tenantId: string) => Promise<Snapshot | undefined>
  /** Reads the tenant's home for the ledger. Errors are logged. */
  readHome: (tenantId: string, signal: AbortSignal) => Promise<void>
  /** The home migrations of this version. */
  migrations: readonly HomeMigration[]
  /** The pace at which a backup reads its tenant's home. */
  bytesPerSecond: number
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
): Pick<Region, EngineParts> & { engine: Engine } {
  const region = regions.get(id)
  if (region?.engine === undefined) throw new BackupError('NO_ENGINE', `The region ${id} has no engine for services.`)
  return { ...region, engine: region.engine }
}

/**
 * Returns the shared server of a region.
 * @throws BackupError NO_ENGINE
 */
export function sharedLocation({ regions }: Pick<JobDeps, 'regions'>, id: string, database: string): SharedLocation {
  const region = regions.get(id)
  if (region === undefined) throw new BackupError('NO_ENGINE', `The region ${id} is not configured.`)
  return { postgresUrl: superuserOf(region.config), database }
}

/**
 * Returns where a tenant that shares its region's database has its home and its files.
 * @throws BackupError NO_ENGINE, NOT_RUNNING
 */
export function sharedParts(deps: Pick<JobDeps, 'regions' | 'runtimeFiles'>, tenant: Snapshot) {
  const region = deps.regions.get(tenant.regionId)
  if (region === undefined) throw new BackupError('NO_ENGINE', `The region ${tenant.regionId} is not configured.`)
  if (tenant.database === undefined) throw new BackupError('NOT_RUNNING', 'The tenant has no shared database.')
  return {
    location: sharedLocation(deps, tenant.regionId, tenant.database),
    home: region.home(tenant),
    runtime: deps.runtimeFiles(region.runtimeUrls(tenant), tenant.id),
  }
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

/**
 * Returns the location of a tenant's home in its own services. In a cluster it is valid until the next failover.
 * @throws BackupError NO_ENGINE; EngineError
 */
export async function ownLocation(
  deps: Pick<JobDeps, 'regions' | 'runtimeFiles'>,
  tenant: Snapshot,
  signal: AbortSignal,
): Promise<HomeLocation> {
  const { engine, primaryService } = regionOf(deps, tenant.regionId)
  return {
    engine,
    stack: tenant.id,
    postgres: await primaryService(tenant, signal),
    filesServices: componentServices(tenant.isolation).runtime,
    database: dedicatedDatabase,
    blobs: blobsOf(tenant.id),
    ...bucketOf(deps, tenant),
  }
}

/**
 * Returns the field `bucket` of a tenant's location. The runtimes of a cluster on several hosts store files in the region's bucket, where
 * the runtimes that tenants share reach them, too.
 */
export function bucketOf(
  { regions, runtimeFiles }: Pick<JobDeps, 'regions' | 'runtimeFiles'>,
  tenant: Pick<Snapshot, 'id' | 'regionId' | 'isolation'>,
): Pick<HomeLocation, 'bucket'> {
  const region = regions.get(tenant.regionId)
  if (region?.spansHosts !== true || !hasCluster(tenant)) return {}
  const shared = { id: tenant.id, isolation: 'schema-per-tenant' } as const
  return { bucket: runtimeFiles(region.runtimeUrls(shared), tenant.id) }
}

/**
 * Returns the images of scratch services, and their host in a region with several.
 * @throws BackupError NO_ENGINE; EngineError
 */
export async function scratchParts(
  deps: Pick<JobDeps, 'regions' | 'hosts'>,
  regionId: string,
  signal: AbortSignal,
): Promise<ScratchParts> {
  const { images } = regionOf(deps, regionId)
  const host = await deps.hosts.forJob(regionId, signal)
  return { images: await images(signal), ...onHost({ host }) }
}

export function stepOf(
  { ledger, epoch }: Pick<JobDeps, 'ledger' | 'epoch'>,
  job: Job,
): (name: string) => Promise<void> {
  return (name) => ledger.step(job, name, epoch)
}
