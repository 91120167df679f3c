// The folders of targets that contain the dumps of an installation's control database, next to its backups of tenants.
import type { Seal } from '../../platform/seal.ts'

/** The beginning of the names of all such folders. */
export const dumpFolderPrefix = 'control-database-'

const folderName = /^control-database-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The encrypted parts of a dump. */
export const dumpParts = ['rows', 'manifest'] as const

/** Returns the name of the folder of an installation's dumps. */
export function dumpFolder(installation: string): string {
  return `${dumpFolderPrefix}${installation}`
}

/** Whether a folder contains dumps of an installation. */
export function isDumpFolder(name: string): boolean {
  return folderName.test(name)
}

/**
 * Returns the keys of an installation's dumps. The first one encrypts, and each decrypts the dumps of its master key. They cannot
 * be computed without a master key.
 */
export function dumpKeys(seal: Pick<Seal, 'derivedKeys'>): [Buffer, ...Buffer[]] {
  return seal.derivedKeys('dumps of the control database')
}
