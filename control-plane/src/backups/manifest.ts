// What a backup says of itself: what was taken, when, and the figures by which a restored home is compared with it.
import { createHash } from 'node:crypto'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { BackupError } from './backup-error.ts'

export const formatVersion = 1

/** Written in this order; `manifest` is a part too, and the last. */
export const partNames = ['database', 'files', 'index'] as const
export type PartName = (typeof partNames)[number]
/** All that is encrypted with the backup's key. */
export const encryptedParts = [...partNames, 'manifest'] as const

const Part = Type.Object({
  name: Type.Enum([...partNames]),
  /** Before encryption. */
  size: Type.Integer(),
  sha256: Type.String(),
})
export type Part = Static<typeof Part>

export const HomeFacts = Type.Object({
  tables: Type.Array(Type.Object({ name: Type.String(), rows: Type.String(), hash: Type.String() })),
  /** A sequence is of no snapshot: null for one that moved while the backup was taken. */
  sequences: Type.Array(
    Type.Object({
      name: Type.String(),
      last_value: Type.Union([Type.String(), Type.Null()]),
      is_called: Type.Boolean(),
    }),
  ),
  /** Functions, policies, triggers and so on: how many, and a hash over their descriptions in order. */
  objects: Type.Array(Type.Object({ kind: Type.String(), count: Type.Integer(), sha256: Type.String() })),
})
export type HomeFacts = Static<typeof HomeFacts>

const Manifest = Type.Object({
  format: Type.Literal(formatVersion),
  backup_id: Type.String(),
  tenant_id: Type.String(),
  tenant_name: Type.String(),
  /** ISO 8601, UTC: everything is as it was then. */
  taken_at: Type.String(),
  postgres_version: Type.String(),
  parts: Type.Array(Part),
  home: HomeFacts,
  /** Files of objects; the part `index` has a line for each: blob id, bytes, SHA-256. */
  blobs: Type.Object({ count: Type.Integer(), bytes: Type.Integer() }),
})
export type Manifest = Static<typeof Manifest>

export function manifestHash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** @param hash of the text, as it was recorded elsewhere @throws BackupError DAMAGED */
export function readManifest(text: string, hash: string): Manifest {
  if (manifestHash(text) !== hash)
    throw new BackupError('DAMAGED', 'the manifest of the backup is not the one that was written')
  const manifest: unknown = JSON.parse(text)
  if (!Value.Check(Manifest, manifest))
    throw new BackupError('DAMAGED', 'the manifest of the backup has an unknown form')
  return manifest
}

export function partOf({ parts }: Manifest, name: PartName): Part {
  const part = parts.find((candidate) => candidate.name === name)
  if (part === undefined) throw new BackupError('DAMAGED', `the manifest names no part "${name}"`)
  return part
}
