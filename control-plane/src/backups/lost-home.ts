// Lets a tenant that has lost its volumes or its home stand again, empty, so that a backup can be put in its place. No home
// is made: until the restored one is there, the reconciler says what it said before.
import { createHomeSql, homeConnectionLimits, prepareSharedDatabaseSql, newVerifiers } from '../homes/index.ts'
import { identifier } from '../platform/identifiers.ts'
import type { Snapshot } from '../reconcile/index.ts'
import { whileHeld } from './collection-hold.ts'
import { asSuperuser, type HomeLocation } from './home-location.ts'
import { regionOf, type JobDeps } from './job-deps.ts'

const server = 'postgres'
const responseMilliseconds = 60_000
const pollMilliseconds = 1_000

/** The volumes that are there stay as they are; the containers are created again. @param scratch name of a database that nobody has */
export async function startAgain(
  tenant: Snapshot,
  own: HomeLocation,
  scratch: string,
  deps: Pick<JobDeps, 'regions' | 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  const { engine, stack, awaitDatabase } = regionOf(deps, tenant.regionId)
  const wanted = await stack(tenant, signal)
  // A container holds on to its volumes, whatever they are, and a database gets its permission to begin with its container.
  await engine.converge({ ...wanted, volumes: [], services: [] }, signal)
  await engine.converge(
    { ...wanted, volumes: wanted.volumes.map((volume) => ({ ...volume, mustExist: false })) },
    signal,
  )
  await awaitDatabase(tenant, signal)
  await makeRoles(tenant, own, scratch, signal)
  await runtimeResponds(tenant, own, deps, signal)
}

/** The SQL that makes roles makes a schema, too: in a database that is removed again. */
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

/** One that was just made has yet to be told of its tenant. */
async function runtimeResponds(
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
      if (waited >= responseMilliseconds || signal.aborted) throw error
      await clock.sleep(pollMilliseconds, signal)
    }
  }
}
