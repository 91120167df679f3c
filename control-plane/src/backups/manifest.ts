// The manifest of a backup: its content, its time, and the figures by which a restored home is compared with it.
import { createHash } from 'node:crypto'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { BackupError } from './backup-error.ts'

export const formatVersion = 1

/** The parts in the order in which they are written. `manifest` is a part too, and the last one. */
export const partNames = ['database', 'files', 'index'] as const
export type PartName = (typeof partNames)[number]
/** The parts that are encrypted with the backup's key. */
export const encryptedParts = [...partNames, 'manifest'] as const

const Part = Type.Object({
  name: Type.Enum([...partNames]),
  /** The bytes before encryption. */
  size: Type.Integer(),
  sha256: Type.String(),
})
export type Part = Static<typeof Part>

export const HomeFacts = Type.Object({
  tables: Type.Array(Type.Object({ name: Type.String(), rows: Type.String(), hash: Type.String() })),
  /** The sequences, which no snapshot includes: `last_value` is null for one that moved during the backup. */
  sequences: Type.Array(
    Type.Object({
      name: Type.String(),
      last_value: Type.Union([Type.String(), Type.Null()]),
      is_called: Type.Boolean(),
    }),
  ),
  /** The count of functions, policies, triggers and so on, and a hash over their descriptions in order. */
  objects: Type.Array(Type.Object({ kind: Type.String(), count: Type.Integer(), sha256: Type.String() })),
})
export type HomeFacts = Static<typeof HomeFacts>

const Manifest = Type.Object({
  format: Type.Literal(formatVersion),
  /**
   * The form of the part `database`, and of the hashes of tables: frames for tenants that share a database, otherwise what `pg_dump`
   * writes. In `frames-2`, the hash of a table is a sum over its rows as COPY writes them. Otherwise it is `hashSumSql`, unless
   * `row_hash` names another one.
   */
  database_format: Type.Optional(Type.Enum(['frames', 'frames-2'])),
  row_hash: Type.Optional(Type.Literal('hashtext')),
  backup_id: Type.String(),
  tenant_id: Type.String(),
  tenant_name: Type.String(),
  /** The instant of the snapshot, ISO 8601, UTC. */
  taken_at: Type.String(),
  postgres_version: Type.String(),
  parts: Type.Array(Part),
  home: HomeFacts,
  /** The files of objects. The part `index` has a line for each: blob id, bytes, SHA-256. */
  blobs: Type.Object({ count: Type.Integer(), bytes: Type.Integer() }),
})
export type Manifest = Static<typeof Manifest>

export function manifestHash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/**
 * Reads a manifest.
 * @param hash the hash of the text, as it was recorded elsewhere
 * @throws BackupError DAMAGED
 */
export function readManifest(text: string, hash: string): Manifest {
  if (manifestHash(text) !== hash)
    throw new BackupError('DAMAGED', 'The manifest of the backup is not the one that was written.')
  const manifest: unknown = JSON.parse(text)
  if (!Value.Check(Manifest, manifest))
    throw new BackupError('DAMAGED', 'The manifest of the backup has an unknown form.')
  return manifest
}

export function partOf({ parts }: Manifest, name: PartName): Part {
  const part = parts.find((candidate) => candidate.name === name)
  if (part === undefined) throw new BackupError('DAMAGED', `The manifest has no part "${name}".`)
  return part
}
