// The manifest of a dump of the control database: its time, the version of its tables, and the figures with which the
// restored rows are compared.
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { BackupError } from '../backup-error.ts'

const DumpManifest = Type.Object({
  format: Type.Literal(1),
  dump_id: Type.String(),
  installation: Type.String(),
  /** The instant of the snapshot, ISO 8601, UTC. */
  taken_at: Type.String(),
  /** The names of the migrations of the database, in order. */
  migrations: Type.Array(Type.String()),
  tables: Type.Array(
    Type.Object({
      name: Type.String(),
      columns: Type.Array(Type.String()),
      rows: Type.String(),
      hash: Type.String(),
    }),
  ),
  sequences: Type.Array(Type.Object({ name: Type.String(), value: Type.String(), isCalled: Type.Boolean() })),
  /** The size of the part `rows` before encryption, and its SHA-256. */
  size: Type.Integer(),
  sha256: Type.String(),
})
/** The manifest of a dump. */
export type DumpManifest = Static<typeof DumpManifest>

/** Reads the manifest of a dump. @throws BackupError DAMAGED */
export function readDumpManifest(text: string): DumpManifest {
  const manifest: unknown = JSON.parse(text)
  if (!Value.Check(DumpManifest, manifest))
    throw new BackupError('DAMAGED', 'The manifest of the dump has an unknown form.')
  return manifest
}
