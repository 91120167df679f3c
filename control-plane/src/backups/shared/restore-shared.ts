// Restores a backup into a tenant that shares its region's database: a new one, or the backup's own. The new home is created
// in full and compared in a schema next to the one in use, and one transaction exchanges them. An interrupted call can be
// repeated at any point.
import { migrationsFingerprint, replacedSchema, restoredSchema, schemaRightsSql } from '../../homes/index.ts'
import { identifier, literal } from '../../platform/identifiers.ts'
import type { Snapshot } from '../../reconcile/index.ts'
import type { Job } from '../backup.ts'
import { BackupError } from '../backup-error.ts'
import { sharedParts, type JobDeps } from '../job-deps.ts'
import type { Load } from '../load-home.ts'
import { freshCountersSql } from '../rehome-sql.ts'
import { renewed } from '../replace-home.ts'
import { createRoles, passwordsOf } from './create-roles.ts'
import { readFrames } from './dump-frames.ts'
import { loadDump, type LoadDump } from './load-dump.ts'
import { asAdmin, removeLogins, type SharedLocation } from './shared-server.ts'
import { agreeOnStore, writeFiles } from './write-files.ts'

type Parts = ReturnType<typeof sharedParts>

const cleanMilliseconds = 120_000

/**
 * Restores a backup.
 * @throws BackupError, OperationSuperseded
 */
export async function restoreShared(
  job: Job,
  tenant: Snapshot,
  load: Load,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  const parts = sharedParts(deps, tenant)
  if (tenant.desired === 'restoring') {
    await fillNew(tenant, load, parts, deps, signal)
    await load.step('handover')
    await deps.ledger.activate(job, deps.epoch)
    return
  }
  if (tenant.desired !== 'active' || (tenant.status !== 'ready' && tenant.status !== 'failed'))
    throw new BackupError(
      'NOT_RUNNING',
      `The tenant is ${tenant.status}. Only a ready or failed tenant can be restored.`,
    )
  await replaceHome(job, tenant, load, parts, deps, signal)
}

const progress = (signal: AbortSignal) => ({ signal, onPart: () => undefined })

function loadOptions(tenant: Snapshot, { location }: Parts, { manifest, files }: Load, deps: JobDeps): LoadDump {
  const onError = (error: unknown) =>
    deps.log.warn({ tenant: tenant.id, err: error }, 'A restore was interrupted by an error.')
  return {
    location,
    homeId: tenant.id,
    schema: tenant.id,
    passwords: undefined,
    manifest,
    frames: readFrames(files.read('database')),
    migrations: deps.migrations,
    onError,
  }
}

/** Fills a new tenant, which no client reaches before everything is restored and compared. Its logins are closed. */
async function fillNew(tenant: Snapshot, load: Load, parts: Parts, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const { location, home, runtime } = parts
  if (load.manifest.tenant_id === tenant.id) throw new BackupError('FAILED', 'The backup is of this tenant itself.')
  await load.step('database')
  await home.prepare(() => undefined)
  await removeLogins(location, tenant.id)
  await home.drop(tenant.id, progress(signal))
  try {
    const passwords = passwordsOf(tenant)
    await loadDump({ ...loadOptions(tenant, parts, load, deps), passwords }, signal)
    await load.step('files')
    await agreeOnStore(location, tenant.id, runtime, signal)
    await writeFiles(load, runtime, signal)
  } catch (cause) {
    await removeLogins(location, tenant.id).catch(() => undefined)
    throw cause
  }
  await home.setSqlLogin(tenant.id, true)
}

async function replaceHome(
  job: Job,
  tenant: Snapshot,
  load: Load,
  parts: Parts,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  const { location, home, runtime } = parts
  const { id } = tenant
  const [restored, replaced] = [restoredSchema(id), replacedSchema(id)]
  if (!(await isReplaced(location, id, job, signal))) {
    await removeLogins(location, id)
    // An earlier attempt may have closed the logins of the home in use.
    if (job.attempts > 0) await home.repair(id, passwordsOf(tenant))
    for (const schema of [restored, replaced]) await home.dropSchema(schema, progress(signal))
    try {
      await load.step('database')
      await createRoles(tenant, parts, signal)
      await loadDump({ ...loadOptions(tenant, parts, load, deps), schema: restored }, signal)
      await rejectReferences(location, id, signal)
      await load.step('files')
      await agreeOnStore(location, restored, runtime, signal)
      await runtime.whileHeld(signal, async (held) => {
        await writeFiles(load, runtime, held)
        await load.step('replace')
        // The usage of the old home is read before it is replaced.
        await deps.readHome(id, held)
        await home.endSessions(id)
        await asAdmin(location, held, (client) => client.query(swapSql(id, job)))
      })
    } catch (cause) {
      await cleanUp(tenant, parts, deps).catch((error: unknown) =>
        deps.log.warn({ tenant: id, err: error }, 'The data of a failed restore could not be removed.'),
      )
      throw cause
    }
  }
  await load.step('renew')
  // The functions of the service still name the schema in which they were restored.
  await home.migrate(id)
  await home.repair(id, passwordsOf(tenant))
  if (!tenant.isSqlClosed) await home.setSqlLogin(id, true)
  await renewed(id, migrationsFingerprint(deps.migrations), deps, signal)
  await load.step('clean up')
  await home.dropSchema(replaced, progress(signal))
  await deps.ledger.finish(job, deps.epoch)
}

/** Removes the copy of a restore that failed before the exchange, and opens the logins of the old home. */
async function cleanUp(tenant: Snapshot, { location, home }: Parts, deps: JobDeps): Promise<void> {
  const signal = deps.clock.timeout(cleanMilliseconds)
  await removeLogins(location, tenant.id)
  await home.repair(tenant.id, passwordsOf(tenant))
  await home.dropSchema(restoredSchema(tenant.id), progress(signal))
}

const markOf = ({ operationId }: Job) => `restored by ${operationId}`

async function isReplaced(location: SharedLocation, id: string, job: Job, signal: AbortSignal): Promise<boolean> {
  return asAdmin(location, signal, async (client) => {
    const { rows } = await client.query<{ mark: string | null }>(
      `select obj_description(oid, 'pg_namespace') as mark from pg_namespace where nspname = $1`,
      [id],
    )
    return rows[0]?.mark === markOf(job)
  })
}

/** Returns SQL that replaces the old home with the new one, in one transaction. The home's logins are closed. */
function swapSql(id: string, job: Job): string {
  const [home, restored] = [identifier(id), identifier(restoredSchema(id))]
  return [
    "set local lock_timeout = '10s'",
    'set local session_replication_role = replica',
    freshCountersSql(restoredSchema(id)),
    `do $swap$ begin
      if to_regnamespace(${literal(home)}) is not null then
        alter schema ${home} rename to ${identifier(replacedSchema(id))};
      end if;
    end $swap$`,
    `alter schema ${restored} rename to ${home}`,
    ...schemaRightsSql(id),
    `comment on schema ${home} is ${literal(markOf(job))}`,
  ].join(';\n')
}

/**
 * Rejects a copy that refers to the home in use, which is dropped later.
 * @throws BackupError FAILED
 */
async function rejectReferences(location: SharedLocation, id: string, signal: AbortSignal): Promise<void> {
  const { rows } = await asAdmin(location, signal, (client) =>
    client.query<{ name: string }>(
      `select i.type || ' ' || i.identity as name from (
         select 'pg_class'::regclass as class, oid from pg_class where relnamespace = to_regnamespace($1)
         union all select 'pg_proc'::regclass, oid from pg_proc where pronamespace = to_regnamespace($1)
         union all select 'pg_type'::regclass, oid from pg_type where typnamespace = to_regnamespace($1)) as home
       join pg_depend d on d.refclassid = home.class and d.refobjid = home.oid,
       pg_identify_object(d.classid, d.objid, 0) as i
       where position($2 in i.identity) > 0 limit 1`,
      [identifier(id), `${restoredSchema(id)}.`],
    ),
  )
  if (rows[0] !== undefined)
    throw new BackupError(
      'FAILED',
      `The ${rows[0].name.slice(0, 200).replaceAll(restoredSchema(id), id)} names the schema of the home, ` +
        'so the backup can only be restored into a new tenant.',
    )
}
