// Starts a tenant again that has lost its volumes or its home, with empty ones, so that a backup can be restored into it.
// It creates no home: until the restored one is there, the reconciler reports the same status as before.
import { createHomeSql, homeConnectionLimits, prepareSharedDatabaseSql, newVerifiers } from '../homes/index.ts'
import { identifier } from '../platform/identifiers.ts'
import { silentHosts, type Snapshot } from '../reconcile/index.ts'
import type { Stack } from '../stacks/index.ts'
import { BackupError } from './backup-error.ts'
import { whileHeld } from './collection-hold.ts'
import { asSuperuser, type HomeLocation } from './home-location.ts'
import { ownLocation, regionOf, type JobDeps } from './job-deps.ts'

const server = 'postgres'
const readyTimeoutMilliseconds = 60_000
const pollMilliseconds = 1_000

/**
 * Creates the tenant's containers and missing volumes again. Existing volumes stay.
 * @param scratch the name of an unused database
 */
export async function startAgain(
  tenant: Snapshot,
  own: HomeLocation,
  scratch: string,
  deps: Pick<JobDeps, 'regions' | 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  const { engine, stack, awaitDatabase } = regionOf(deps, tenant.regionId)
  const wanted = await stack(tenant, signal)
  // A container keeps using its volumes, whatever they are, and a new container gives a database the permission to
  // begin.
  await engine.converge({ ...wanted, volumes: [], services: [] }, signal)
  await engine.converge(withEmptyVolumes(wanted), signal)
  await awaitDatabase(tenant, signal)
  await makeRoles(tenant, own, scratch, signal)
  await untilRuntimeResponds(tenant, own, deps, signal)
}

/**
 * Starts a failed cluster again, and creates its roles. A cluster that the region's etcd does not know begins with empty volumes where
 * there are none. Any other one stays as it is, because it cannot begin twice.
 * @param scratch the name of an unused database
 * @returns the location of its home
 * @throws BackupError FAILED if a host of the cluster does not respond, because a member there may have the data; EngineError
 */
export async function startClusterAgain(
  tenant: Snapshot,
  scratch: string,
  deps: Pick<JobDeps, 'regions' | 'runtimeFiles' | 'clock'>,
  signal: AbortSignal,
): Promise<HomeLocation> {
  const { engine, stack, awaitDatabase, clusterOrigin, openCluster } = regionOf(deps, tenant.regionId)
  if ((await clusterOrigin(tenant.id, signal)) === 'none') {
    const [host] = silentHosts(tenant, { engine })
    if (host !== undefined)
      throw new BackupError(
        'FAILED',
        `The host "${host}" of the tenant's cluster does not respond, and may have its data.`,
      )
    await openCluster(tenant, signal)
    await engine.converge(withEmptyVolumes(await stack(tenant, signal)), signal)
  }
  await awaitDatabase(tenant, signal)
  const own = await ownLocation(deps, tenant, signal)
  await makeRoles(tenant, own, scratch, signal)
  await untilRuntimeResponds(tenant, own, deps, signal)
  return own
}

/** Returns the stack whose missing volumes may be created. */
function withEmptyVolumes(stack: Stack): Stack {
  return { ...stack, volumes: stack.volumes.map((volume) => ({ ...volume, mustExist: false })) }
}

/** Creates the roles. Their SQL creates a schema too, so it runs in a database that is removed again. */
async function makeRoles(
  { id, secrets }: Snapshot,
  own: HomeLocation,
  scratch: string,
  signal: AbortSignal,
): Promise<void> {
  const [[runtime = ''], [ddl = ''], [admin = '']] = [
    secrets.runtime_password,
    secrets.ddl_password,
    secrets.admin_password,
  ]
  const remove = `drop database if exists ${identifier(scratch)} with (force)`
  await asSuperuser(own, server, `${remove};\ncreate database ${identifier(scratch)} template template0`, signal)
  await asSuperuser(
    own,
    scratch,
    `${prepareSharedDatabaseSql(scratch)};\n${createHomeSql(id, newVerifiers({ runtime, ddl, admin }), homeConnectionLimits)}`,
    signal,
  )
  await asSuperuser(own, server, remove, signal)
}

/** Waits until the runtime knows its tenant, which a new one does not at first. */
async function untilRuntimeResponds(
  { id }: Snapshot,
  own: HomeLocation,
  { clock }: Pick<JobDeps, 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  for (let waited = 0; ; waited += pollMilliseconds) {
    try {
      await whileHeld(own, id, clock, signal, () => Promise.resolve())
      return
    } catch (error) {
      if (waited >= readyTimeoutMilliseconds || signal.aborted) throw error
      await clock.sleep(pollMilliseconds, signal)
    }
  }
}
