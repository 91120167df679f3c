// The files of a tenant at an end of a move: in runtimes that tenants share, or with runtimes of its own, on a volume or in a bucket.
import { whileHeld, type FilesLocation, type RuntimeFiles } from '../backups/index.ts'
import type { FileTransfer } from './copy-files.ts'
import { filesBetweenRuntimes } from './files-between-runtimes.ts'
import { filesIntoRuntimes } from './files-into-runtimes.ts'
import { filesIntoVolume } from './files-into-volume.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { sharedRuntimesOf } from './move-regions.ts'
import type { FileMove, MoveJob } from './move.ts'

/** The files at one end. */
export type FileEnd = SharedFiles | { isOwn: true; location: FilesLocation }

interface SharedFiles {
  isOwn: false
  regionId: string
  runtime: RuntimeFiles
}

/** Writes where the runtimes of a tenant's own store files: the stores of each backend, as the runtime names them. */
const readStores = `
s3="\${TENANTRY_S3_ENDPOINT:-aws} $TENANTRY_S3_BUCKET/$TENANTRY_S3_PREFIX"
for backend in "\${TENANTRY_STORAGE_BACKEND:-local}" $TENANTRY_STORAGE_FALLBACK; do
  if [ "$backend" = s3 ]; then printf '%s\\n' "$s3"; else printf '%s\\n' "$backend"; fi
done
`
const local = 'local'

/** Returns the files in the runtimes that the tenants of a region share. @throws MoveError */
export function sharedFiles(
  regionId: string,
  tenantId: string,
  deps: Pick<MoveDeps, 'regions' | 'runtimeFiles'>,
): SharedFiles {
  return { isOwn: false, regionId, runtime: deps.runtimeFiles(sharedRuntimesOf(regionId, tenantId, deps), tenantId) }
}

/** Lets no runtime of this end remove a file while `work` runs. */
export function whileFilesStay<T>(
  end: FileEnd,
  tenantId: string,
  { clock }: Pick<MoveDeps, 'clock'>,
  signal: AbortSignal,
  work: (held: AbortSignal) => Promise<T>,
): Promise<T> {
  return end.isOwn ? whileHeld(end.location, tenantId, clock, signal, work) : end.runtime.whileHeld(signal, work)
}

/** Returns the way of the files from one end to the other. @throws MoveError if there is none */
export function transferBetween(source: FileEnd, target: FileEnd, tenantId: string): FileTransfer {
  const [from, to] = [accessTo(source), accessTo(target)]
  if (from.runtime !== undefined)
    return to.runtime === undefined
      ? filesIntoVolume(from.runtime, to.volume, tenantId)
      : filesBetweenRuntimes(from.runtime, to.runtime)
  if (to.runtime !== undefined) return filesIntoRuntimes({ source: from.volume, target: to.runtime, tenantId })
  throw new MoveError("No way leads from a volume of the tenant's own to another one.")
}

/** The access to files: by the runtimes that tenants share, or only by programs next to a volume of the tenant's own. */
type FileAccess = { runtime: RuntimeFiles; volume?: never } | { runtime?: never; volume: FilesLocation }

function accessTo(end: FileEnd): FileAccess {
  if (!end.isOwn) return { runtime: end.runtime }
  const { bucket } = end.location
  return bucket === undefined ? { volume: end.location } : { runtime: bucket }
}

/**
 * Decides whether the files stay where they are, because both ends have the same store, and records it before one is copied.
 * @throws MoveError if the stores do not allow the move
 */
export async function chooseFiles(
  job: MoveJob,
  source: FileEnd,
  target: FileEnd,
  deps: Pick<MoveDeps, 'ledger' | 'epoch'>,
  signal: AbortSignal,
): Promise<void> {
  const isBetweenRegions = !source.isOwn && !target.isOwn
  const from = await storesAt(source, isBetweenRegions, signal)
  const files = fileMove(from, await storesAt(target, isBetweenRegions, signal))
  const { runtime } = accessTo(target)
  if (runtime !== undefined) await rejectOtherFiles(source, runtime, files, job.tenantId, signal)
  await deps.ledger.recordFiles(job, files, deps.epoch)
  // What is recorded is what is removed at the end of this attempt, too.
  job.files = files
}

/** The stores of the runtimes at one end. Several are in use while the files change their store. */
interface StoresAt {
  /** Whether they are on a volume of the tenant's own. */
  isOnVolume: boolean
  stores: readonly string[]
}

/** Returns how files get from one store to the other. Pure. @throws MoveError */
export function fileMove(from: StoresAt, to: StoresAt): FileMove {
  if (to.stores.some((store) => store !== local && from.stores.includes(store))) {
    if (from.stores.length > 1 || to.stores.length > 1)
      throw new MoveError('The files of the runtimes are being moved from one store to another.')
    return 'stay'
  }
  if ([from, to].some(({ isOnVolume, stores }) => isOnVolume && stores.some((store) => store !== local)))
    throw new MoveError("The store of the tenant's own runtimes is not a volume, so that no file can be copied.")
  return 'copied'
}

/**
 * Rejects a store in which the tenant has other files than the present ones. No earlier attempt has left any: they are of the same
 * server under another name, and its files would be removed with the copy.
 * @throws MoveError
 */
async function rejectOtherFiles(
  source: FileEnd,
  target: RuntimeFiles,
  files: FileMove,
  tenantId: string,
  signal: AbortSignal,
): Promise<void> {
  if (files === 'stay' && source.isOwn) return
  const wanted = files === 'stay' && !source.isOwn ? await source.runtime.storeId(signal) : undefined
  if ((await target.storeId(signal)) !== wanted)
    throw new MoveError(`The other runtimes have a store of the tenant ${tenantId} already.`)
}

async function storesAt(end: FileEnd, isBetweenRegions: boolean, signal: AbortSignal): Promise<StoresAt> {
  const { runtime, volume } = accessTo(end)
  if (runtime !== undefined) {
    const runtimes = await runtime.stores(signal)
    if (isBetweenRegions && !end.isOwn) rejectOfAllRegions(runtimes, end.regionId)
    const all = runtimes.map(({ stores }) => stores)
    if (new Set(all.map((stores) => stores.join('\n'))).size > 1)
      throw new MoveError('The runtimes that tenants share have different stores.')
    return { isOnVolume: false, stores: all[0] ?? [] }
  }
  const { engine, stack, filesServices } = volume
  const { code, stdout } = await engine.exec(stack, filesServices[0], ['bash', '-c', readStores], { signal })
  if (code !== 0) throw new MoveError("The store of the tenant's own runtimes could not be read.")
  return { isOnVolume: true, stores: stdout.trim().split('\n') }
}

/** Rejects runtimes that would serve the tenant in its former region, too. @throws MoveError */
function rejectOfAllRegions(runtimes: readonly { region: string | null }[], regionId: string): void {
  if (runtimes.some(({ region }) => region !== regionId))
    throw new MoveError(`The runtimes of the region "${regionId}" need the setting TENANTRY_REGION=${regionId}.`)
}
