// The names of the files of an archive, apart from those of Postgres (`wal.ts`). Pure.

/** The beginning of the names of base backups. */
export const basePrefix = 'base-'

/** Returns the name of the file of a base backup. */
export function baseFile(baseId: string): string {
  return `${basePrefix}${baseId}`
}

/** Returns the context that binds an encrypted file to its archive and its name. */
export function fileContext(archiveId: string, name: string): string {
  return `${archiveId}/${name}`
}
