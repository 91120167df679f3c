// Copies a tenant's files from its shared runtimes into the volume of a runtime of its own. A file never changes, so that each
// round copies those that the rounds before did not have.
import { pack } from 'tar-stream'
import type pg from 'pg'
import { inFiles, packFiles, type HomeLocation, type RuntimeFiles, type StoredFile } from '../backups/index.ts'
import { linesOf } from '@tenantry/contract'
import { identifier } from '../platform/identifiers.ts'
import { Pace } from '../platform/pace.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'

/** Bytes of a line of `sha256sum`, and more. */
const maxLineBytes = 4_096

/** Extracts an archive, and writes the hashes of its files once they survive a power failure. `$1` is the tenant's ID. */
const extraction = `
umask 077
store="$TENANTRY_DATA/blobs/$1"
mkdir -p "$store"
names=$(mktemp)
trap 'rm -f "$names"' EXIT
tar --extract --verbose --directory "$store" --no-same-owner --no-same-permissions --touch > "$names"
sync --file-system "$store"
cd "$store"
xargs -r -d '\\n' sha256sum < "$names"
`

const otherStore =
  'The files of the region are in a store that all of its runtimes share, so that they cannot be moved.'

/** Rejects a runtime whose files are not on its volume. @throws MoveError */
export async function rejectOtherStore(home: HomeLocation, signal: AbortSignal): Promise<void> {
  const [service] = home.filesServices
  const script = '[ -z "$TENANTRY_STORAGE_BACKEND" ] || [ "$TENANTRY_STORAGE_BACKEND" = local ]'
  const { code } = await home.engine.exec(home.stack, service, ['bash', '-c', script], { signal })
  if (code !== 0) throw new MoveError(otherStore)
}

/** The copy of a tenant's files. */
export class FileCopy {
  readonly #runtime: RuntimeFiles
  readonly #home: HomeLocation
  readonly #storeId: string | undefined
  readonly #pace: Pace
  readonly #copied = new Set<string>()
  #hasStore = false

  private constructor(runtime: RuntimeFiles, home: HomeLocation, storeId: string | undefined, pace: Pace) {
    this.#runtime = runtime
    this.#home = home
    this.#storeId = storeId
    this.#pace = pace
  }

  /** Opens a copy into an empty volume. */
  static async open(
    runtime: RuntimeFiles,
    home: HomeLocation,
    { bytesPerSecond, clock }: Pick<MoveDeps, 'bytesPerSecond' | 'clock'>,
    signal: AbortSignal,
  ): Promise<FileCopy> {
    return new FileCopy(runtime, home, await runtime.storeId(signal), new Pace(bytesPerSecond, clock, signal))
  }

  /** Lets the shared runtimes remove no file while `work` runs. */
  whileHeld<T>(signal: AbortSignal, work: (held: AbortSignal) => Promise<T>): Promise<T> {
    return this.#runtime.whileHeld(signal, work)
  }

  /**
   * Copies the files of the objects in the copy of the home that were not copied yet, and compares their hashes.
   * @param admin a session of the superuser in the copy, in which no code of the tenant runs
   * @returns the bytes that were copied
   * @throws MoveError, BackupError
   */
  async round(admin: pg.Client, tenantId: string, signal: AbortSignal): Promise<number> {
    const { rows } = await admin.query<{ id: string; size: string }>(
      `select blob_id::pg_catalog.text as id, size::pg_catalog.text as size from ${identifier(tenantId)}.storage_objects
       order by blob_id`,
    )
    const lacking = rows.filter(({ id }) => !this.#copied.has(id)).map(({ id, size }) => ({ id, size: Number(size) }))
    const storeId = this.#hasStore ? undefined : this.#storeId
    if (lacking.length === 0 && storeId === undefined) return 0
    await this.#extract(lacking, storeId, tenantId, signal)
    for (const { id } of lacking) this.#copied.add(id)
    this.#hasStore = true
    return lacking.reduce((sum, { size }) => sum + size, 0)
  }

  async #extract(
    files: readonly StoredFile[],
    storeId: string | undefined,
    tenantId: string,
    signal: AbortSignal,
  ): Promise<void> {
    const failed = new AbortController()
    const either = AbortSignal.any([signal, failed.signal])
    const wanted = new Map<string, string>()
    const archive = pack()
    // The first of several errors counts: each of the two parts fails when the other one does.
    const fail = (cause: unknown) => {
      if (!failed.signal.aborted) failed.abort(cause)
      archive.destroy()
    }
    archive.on('error', fail)
    const onFile = ({ id, sha256 }: { id: string; sha256: string }) => void wanted.set(id, sha256)
    const packing = packFiles(archive, files, { runtime: this.#runtime, storeId, pace: this.#pace, onFile }, either)
    const command = ['bash', '-euo', 'pipefail', '-c', extraction, 'bash', tenantId]
    const input = archive as unknown as AsyncIterable<Uint8Array>
    const output = inFiles(this.#home)(command, { input, signal: either })
    await Promise.all([
      packing.then(() => archive.finalize()).catch(fail),
      compare(linesOf(output, maxLineBytes), wanted, files.length).catch(fail),
    ])
    failed.signal.throwIfAborted()
  }
}

/** Compares the hashes of the files that were extracted. @throws MoveError */
async function compare(
  lines: AsyncIterable<string>,
  wanted: ReadonlyMap<string, string>,
  count: number,
): Promise<void> {
  let equal = 0
  for await (const line of lines) {
    const [sha256 = '', path = ''] = line.split('  ')
    const id = path.split('/').at(-1) ?? ''
    if (id === 'store') continue
    if (wanted.get(id) !== sha256) throw new MoveError(`The content of the file ${id} differs in the copy.`)
    equal++
  }
  if (equal !== count) throw new MoveError(`Of ${count} files, ${equal} were copied.`)
}
