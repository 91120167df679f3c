// Replaces a tenant's own home with a backup, while the tenant runs or after it has lost its volumes. The new home is
// created in full and compared next to the old one. The old one is used until then, and is replaced in one transaction
// of Postgres, so that one of them always exists. An interrupted call can be repeated at any point.
import { dedicatedDatabase, homeRoles, type ServicePasswords } from '../homes/index.ts'
import { identifier, literal } from '../platform/identifiers.ts'
import { hasCluster, silentHosts, type Snapshot } from '../reconcile/index.ts'
import type { Job } from './backup.ts'
import { BackupError } from './backup-error.ts'
import { wantedBlobs } from './blob-index.ts'
import { endOfNames, linkBlobs, removeBlobs } from './blob-scripts.ts'
import { whileHeld } from './collection-hold.ts'
import { asLogin, asSuperuser, filesScript, inPostgres, runtimeData, type HomeLocation } from './home-location.ts'
import { ownLocation, presentTenant, regionOf, type JobDeps } from './job-deps.ts'
import { loadDatabase, loadFilesInto, type Load } from './load-home.ts'
import type { Login } from './login.ts'
import { startAgain, startClusterAgain } from './lost-home.ts'
import { openPsql } from './psql-session.ts'
import { freshCountersSql } from './rehome-sql.ts'
import { asSystem } from './seal-home.ts'

const server = 'postgres'
const renewMilliseconds = 60_000
const pollMilliseconds = 100

/** Returns the names on the tenant's own Postgres and next to its blobs. */
function namesOf({ operationId }: Job) {
  const suffix = operationId.replaceAll('-', '')
  return { fresh: `restore_${suffix}`, old: `replaced_${suffix}`, staging: `${runtimeData}/restoring-${suffix}` }
}

/** The home, and the names of what replaces it. */
interface Replacement extends ReturnType<typeof namesOf> {
  own: HomeLocation
  /** Whether the homes may have been exchanged. */
  mayBeSwapped: boolean
}

/**
 * Replaces the home.
 * @throws BackupError, EngineError, OperationSuperseded
 */
export async function replaceHome(
  job: Job,
  before: Snapshot,
  load: Load,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  if (before.desired !== 'active' || (before.status !== 'ready' && before.status !== 'failed')) {
    throw new BackupError(
      'NOT_RUNNING',
      `The tenant is ${before.status}. Only a ready or failed tenant can be restored.`,
    )
  }
  const tenant = await onPresentHost(before, deps, signal)
  const isReplaced = tenant.isReplaced === true
  const names = namesOf(job)
  const mayBeLost = tenant.status === 'failed' || isReplaced
  if (mayBeLost) await load.step('services')
  const own =
    mayBeLost && hasCluster(tenant)
      ? await startClusterAgain(tenant, names.fresh, deps, signal)
      : await ownLocation(deps, tenant, signal)
  // An earlier attempt may have exchanged the homes.
  const replacement: Replacement = { own, ...names, mayBeSwapped: job.attempts > 0 }
  try {
    if (mayBeLost && !hasCluster(tenant)) await startAgain(tenant, own, names.fresh, deps, signal)
    await fillAndSwap(tenant, replacement, load, deps, signal)
    if (isReplaced) await deps.hosts.endReplacement(tenant.id, true, deps.epoch)
  } catch (cause) {
    if (isReplaced) await putBack(tenant, replacement, deps)
    throw cause
  }
  await load.step('renew')
  await renewed(tenant.id, undefined, deps, signal)
  await load.step('clean up')
  await removeOld(replacement, load, signal)
  await deps.ledger.finish(job, deps.epoch)
}

/** Creates the new home, and exchanges it for the old one. */
async function fillAndSwap(
  tenant: Snapshot,
  replacement: Replacement,
  load: Load,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  const { own, fresh, old, staging } = replacement
  if ((await databases(own, signal)).includes(old)) return
  const { home } = regionOf(deps, tenant.regionId)
  const location: HomeLocation = { ...own, database: fresh, blobs: `${staging}/files` }
  // The restored home is written with the newest password.
  if (tenant.servicePasswordsDue) await home(tenant).setServicePasswords(tenant.id, servicePasswordsOf(tenant))
  try {
    await stage(tenant, location, staging, load, signal)
    const fill = (until: AbortSignal) => loadFilesInto(tenant.id, { ...load, location }, until)
    if (own.bucket === undefined) await fill(signal)
    await whileHeld(own, tenant.id, deps.clock, signal, async (held) => {
      // No row refers to the files in the bucket yet.
      if (own.bucket !== undefined) await fill(held)
      await load.step('replace')
      // The usage of the old home is read before it is replaced. The runtime observes the functions that still run.
      await deps.readHome(tenant.id, held)
      await beginCounters(tenant, location, deps, held)
      replacement.mayBeSwapped = true
      await swap(replacement, held)
    })
  } catch (cause) {
    await unstage(own, fresh, staging, deps.clock.timeout(renewMilliseconds)).catch((error: unknown) =>
      deps.log.warn({ tenant: tenant.id, err: error }, 'The files of a failed restore could not be removed.'),
    )
    throw cause
  }
}

/** Lets the home return with its former host, unless the new one has the restored home, or may have it. */
async function putBack({ id }: Snapshot, { own, old, mayBeSwapped }: Replacement, deps: JobDeps): Promise<void> {
  const signal = deps.clock.timeout(renewMilliseconds)
  try {
    if (mayBeSwapped && (await databases(own, signal)).includes(old)) return
    await deps.hosts.endReplacement(id, false, deps.epoch)
  } catch (error) {
    deps.log.warn(
      { tenant: id, err: error },
      'The lost host was not recorded again after a failed restore. The next restore continues on the other one.',
    )
  }
}

/**
 * Returns the tenant on a host that responds: a single database whose host is lost gets another one. The former data appears again with
 * that host, where nothing reaches it.
 * @throws BackupError FAILED if a host that does not respond is not lost yet; EngineError REGION_FULL
 */
async function onPresentHost(tenant: Snapshot, deps: JobDeps, signal: AbortSignal): Promise<Snapshot> {
  const [host] = hasCluster(tenant) ? [] : silentHosts(tenant, regionOf(deps, tenant.regionId))
  if (host === undefined) return tenant
  const moved = await deps.hosts.replace(tenant, deps.epoch, signal)
  if (moved !== undefined) return moved
  throw new BackupError(
    'FAILED',
    `The host "${host}" with the tenant's database does not respond, and is not lost yet. Mark it as lost, or restore into a new tenant.`,
  )
}

/**
 * Resets the counters of the restored home, because the usage of the old home was counted until now. Changes that the
 * tenant has made to its own home can make this fail, which does not stop the restore.
 */
async function beginCounters(
  tenant: Snapshot,
  location: HomeLocation,
  { log }: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  await asSystem(
    location,
    tenant.id,
    (login) => asLogin(location, login, freshCountersSql(tenant.id), signal),
    signal,
  ).catch((cause: unknown) => {
    signal.throwIfAborted()
    log.warn({ tenant: tenant.id, err: cause }, 'The counters of a restored home could not be reset.')
  })
}

function servicePasswordsOf({ secrets }: Snapshot): ServicePasswords {
  const [[runtime = ''], [ddl = '']] = [secrets.runtime_password, secrets.ddl_password]
  return { runtime, ddl }
}

const ddlLogin = (tenant: Snapshot): Login => ({
  role: homeRoles(tenant.id).ddl,
  password: servicePasswordsOf(tenant).ddl,
})

async function stage(
  tenant: Snapshot,
  location: HomeLocation,
  staging: string,
  load: Load,
  signal: AbortSignal,
): Promise<void> {
  await unstage(location, location.database, staging, signal)
  await asSuperuser(location, server, `create database ${identifier(location.database)} template template0`, signal)
  await load.step('database')
  await loadDatabase({ ...load, location, login: ddlLogin(tenant), newId: undefined }, signal)
}

async function unstage(
  location: HomeLocation,
  database: string,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  await asSuperuser(
    location,
    server,
    `alter database ${identifier(dedicatedDatabase)} with allow_connections true;\n` +
      `drop database if exists ${identifier(database)} with (force)`,
    signal,
  )
  if (location.bucket === undefined) await filesScript(location, 'rm -rf "$1"', [directory], { signal })
}

/**
 * Replaces the old home with the new one. The first statement ends the use of the old home; the last one commits the
 * new one.
 */
async function swap({ own, fresh, old, staging }: Replacement, signal: AbortSignal): Promise<void> {
  const home = identifier(dedicatedDatabase)
  await asSuperuser(
    own,
    server,
    `alter database ${home} with allow_connections false;\n${endSessionsSql(dedicatedDatabase, fresh)}`,
    signal,
  )
  if (own.bucket === undefined) await filesScript(own, linkBlobs, [staging, own.blobs], { signal })
  await asSuperuser(
    own,
    server,
    [
      endSessionsSql(dedicatedDatabase, fresh),
      'begin',
      `alter database ${home} rename to ${identifier(old)}`,
      `alter database ${identifier(fresh)} rename to ${home}`,
      'commit',
    ].join(';\n'),
    signal,
  )
}

function endSessionsSql(...names: string[]): string {
  return `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname in (${names.map(literal).join(', ')})`
}

async function databases(location: HomeLocation, signal: AbortSignal): Promise<string[]> {
  const session = openPsql(inPostgres(location), server, undefined, [], signal)
  try {
    return await session.rows('select datname from pg_database')
  } finally {
    await session.close()
  }
}

/**
 * Increments the generation and waits until the runtime has seen it and evicted what it cached of the old home.
 * @param homeVersion the migrations of the restored home; undefined when the reconciler must apply the newest ones
 */
export async function renewed(
  tenantId: string,
  homeVersion: string | undefined,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  const generation = await deps.ledger.renew(tenantId, homeVersion, deps.epoch)
  for (let waited = 0; waited < renewMilliseconds; waited += pollMilliseconds) {
    const { observedGeneration } = await presentTenant(deps, tenantId)
    if (observedGeneration >= generation) return
    await deps.clock.sleep(pollMilliseconds, signal)
  }
  throw new BackupError('FAILED', 'The data is restored, but the runtime does not use it yet.')
}

async function removeOld({ own, old, staging }: Replacement, { files }: Load, signal: AbortSignal): Promise<void> {
  async function* names() {
    for await (const { id } of wantedBlobs(files)) yield Buffer.from(`${id}\n`)
    yield Buffer.from(`${endOfNames}\n`)
  }
  // A sweep of the runtimes removes what remains in a bucket.
  const isOnVolume = own.bucket === undefined
  if (isOnVolume) await filesScript(own, removeBlobs, [staging, own.blobs], { input: names(), signal })
  await asSuperuser(own, server, `drop database if exists ${identifier(old)} with (force)`, signal)
  if (isOnVolume) await filesScript(own, 'rm -rf "$1"', [staging], { signal })
}
