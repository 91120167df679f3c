// Copies a tenant's files from the runtimes that serve it to those that will. A file never changes, so that each round copies
// those that the rounds before did not have.
import type pg from 'pg'
import type { StoredFile } from '../backups/index.ts'
import { identifier } from '../platform/identifiers.ts'
import { Pace } from '../platform/pace.ts'
import type { MoveDeps } from './move-deps.ts'
import type { MoveJob } from './move.ts'

/** Files to copy. */
export interface FilesToCopy {
  files: readonly StoredFile[]
  /** The ID of the tenant's store, if this is the first round and it has one. */
  storeId: string | undefined
  /** Whether an earlier move or attempt may have copied some of them. */
  mayExist: boolean
  pace: Pace
}

/** The way of files from the runtimes that serve the tenant to those that will. */
export interface FileTransfer {
  /** Returns the ID of the tenant's store; undefined if it has none. */
  storeId(signal: AbortSignal): Promise<string | undefined>
  /** Copies files, which survive a power failure afterwards, and compares their hashes. @throws MoveError, BackupError */
  add(copied: FilesToCopy, signal: AbortSignal): Promise<void>
}

/** The copy of a tenant's files. */
export class FileCopy {
  readonly #transfer: FileTransfer
  readonly #storeId: string | undefined
  readonly #pace: Pace
  readonly #copied: Set<string>
  readonly #mayExist: boolean
  #hasStore = false

  private constructor(
    transfer: FileTransfer,
    storeId: string | undefined,
    pace: Pace,
    present: readonly string[] | undefined,
  ) {
    this.#transfer = transfer
    this.#copied = new Set(present)
    this.#mayExist = present !== undefined
    this.#storeId = storeId
    this.#pace = pace
  }

  /** Opens a copy into a store. @param present IDs of files that it has, and maybe more; absent for an empty store */
  static async open(
    transfer: FileTransfer,
    { bytesPerSecond, clock }: Pick<MoveDeps, 'bytesPerSecond' | 'clock'>,
    signal: AbortSignal,
    present?: readonly string[],
  ): Promise<FileCopy> {
    return new FileCopy(transfer, await transfer.storeId(signal), new Pace(bytesPerSecond, clock, signal), present)
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
    await this.#transfer.add({ files: lacking, storeId, mayExist: this.#mayExist, pace: this.#pace }, signal)
    for (const { id } of lacking) this.#copied.add(id)
    this.#hasStore = true
    return lacking.reduce((sum, { size }) => sum + size, 0)
  }
}

/**
 * Opens the copy of the files of a move; undefined if they stay where they are.
 * @param present IDs of files that the destination has, and maybe more; absent if it has none
 */
export async function filesToCopy(
  { files }: MoveJob,
  { files: transfer }: { files: FileTransfer | undefined },
  deps: Pick<MoveDeps, 'bytesPerSecond' | 'clock'>,
  signal: AbortSignal,
  present?: readonly string[],
): Promise<FileCopy | undefined> {
  return transfer === undefined || files === 'stay' ? undefined : FileCopy.open(transfer, deps, signal, present)
}
