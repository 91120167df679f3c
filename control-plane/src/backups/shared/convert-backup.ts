// Restores backups across isolation models. The home of a tenant with services of its own is loaded into a scratch home and
// read there in the form of a shared home; that of a shared tenant is loaded into new services of a tenant's own.
import { setSqlLoginSql } from '../../homes/index.ts'
import type { Snapshot } from '../../reconcile/index.ts'
import { scratchId } from '../../stacks/index.ts'
import type { Job } from '../backup.ts'
import { asSuperuser, type HomeLocation } from '../home-location.ts'
import { regionOf, scratchParts, type JobDeps } from '../job-deps.ts'
import { loadDatabase, loadFilesInto, type Load } from '../load-home.ts'
import { makeScratchHome } from '../scratch-home.ts'
import { migrateRestored } from '../seal-home.ts'
import { containerServer } from './container-server.ts'
import { passwordsOf } from './create-roles.ts'
import { readFrames, writeFrames } from './dump-frames.ts'
import { dumpFrames, readSharedFacts } from './dump-home.ts'
import { inHomeSnapshot } from './home-snapshot.ts'
import { loadDump } from './load-dump.ts'

const removeMilliseconds = 60_000

/**
 * Calls `work` with the backup of a tenant with services of its own as one of a shared tenant. The home is read from a
 * scratch home, which is removed afterwards; the files are the backup's own.
 * @throws BackupError FAILED for an object that the form of shared homes cannot contain
 */
export async function asSharedBackup(
  job: Job,
  load: Load,
  deps: JobDeps,
  signal: AbortSignal,
  work: (load: Load) => Promise<void>,
): Promise<void> {
  const { engine } = regionOf(deps, job.backup.region)
  const { manifest, files } = load
  const id = manifest.tenant_id
  const stack = scratchId(job.operationId)
  await load.step('services')
  try {
    const ids = { tenantId: id, homeId: id }
    const parts = await scratchParts(deps, job.backup.region, signal)
    const { location, login } = await makeScratchHome(engine, stack, parts, ids, signal)
    await load.step('convert')
    await loadDatabase({ ...load, location, login, newId: undefined }, signal)
    await inHomeSnapshot(containerServer(location), id, signal, async ({ client, header, objects }) => {
      const home = await readSharedFacts(client, objects, 'frames-2')
      const read = (name: string) =>
        name === 'database' ? buffers(writeFrames(dumpFrames(client, header, objects))) : files.read(name)
      await work({
        ...load,
        manifest: { ...manifest, database_format: 'frames-2', home },
        files: { ...files, read },
      })
    })
  } finally {
    // After a kill the next leader removes the rest.
    await engine.remove(stack, deps.clock.timeout(removeMilliseconds))
  }
}

/**
 * Loads the backup of a shared tenant into the services of a new tenant, and compares it. Its logins are
 * closed until then.
 * @throws BackupError MISMATCH, DAMAGED, FAILED
 */
export async function loadSharedBackup(
  tenant: Snapshot,
  location: HomeLocation,
  load: Load,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  const { manifest, files, migrations } = load
  const { id } = tenant
  const onError = (error: unknown) =>
    deps.log.warn({ tenant: id, err: error }, 'A restore was interrupted by an error.')
  await load.step('database')
  await loadDump(
    {
      location: containerServer(location),
      homeId: id,
      schema: id,
      passwords: passwordsOf(tenant),
      manifest,
      frames: readFrames(files.read('database')),
      migrations,
      onError,
    },
    signal,
  )
  await migrateRestored(location, { homeId: id, tenantId: id }, migrations, signal)
  await loadFilesInto(id, { ...load, location }, signal)
  // The reconciler opens the logins of the services, and leaves that of the tenant as it is.
  await asSuperuser(location, location.database, `begin;\n${setSqlLoginSql(id, true)};\ncommit`, signal)
}

async function* buffers(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, undefined> {
  for await (const { buffer, byteOffset, byteLength } of content) yield Buffer.from(buffer, byteOffset, byteLength)
}
