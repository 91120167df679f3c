// Writes complete backups into targets, and surveys and copies them as the leader does.
import { randomBytes, randomUUID } from 'node:crypto'
import { createBackupRecords } from '#control-plane/backups/backup-record.ts'
import type { Backup } from '#control-plane/backups/backup.ts'
import type { BackupTarget } from '#control-plane/backups/backup-target.ts'
import { createCopier } from '#control-plane/backups/copy-backups.ts'
import { formatVersion, manifestHash, partNames, type Manifest, type Part } from '#control-plane/backups/manifest.ts'
import { openFiles } from '#control-plane/backups/parts.ts'
import { surveyBackups } from '#control-plane/backups/survey-backups.ts'
import { createTargets } from '#control-plane/backups/target-set.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { createSeal } from '#control-plane/platform/seal.ts'

export const signal = new AbortController().signal
export const log = { info: () => undefined, warn: () => undefined }

/** Records of an installation, whose master key is used only here. */
const records = createBackupRecords({ seal: createSeal(randomBytes(32)), installation: 'tests' })

/** Returns the description of a backup, for its record. */
export function describedBackup(id: string, bytes: number, manifest: string) {
  return {
    backup_id: id,
    tenant_id: 't_0123456789abcdef0123',
    tenant_name: 'ada',
    plan: 'Pro',
    isolation: 'database-per-tenant',
    region: 'local',
    trigger: 'schedule' as const,
    planned_at: '2026-05-01T02:00:00.000Z',
    created_at: '2026-05-01T02:00:01.000Z',
    finished_at: '2026-05-01T02:00:09.000Z',
    bytes,
    manifest_sha256: manifest,
  }
}

export interface Written {
  id: string
  key: Buffer
  manifestHash: string
}

/** Yields the bytes in chunks, as a program writes them. */
export async function* chunks(bytes: Uint8Array): AsyncGenerator<Uint8Array, undefined> {
  const size = 64 * 1024
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size))
}

/** Returns the manifest of a backup of an empty home. */
export function manifestOf(id: string, parts: Part[]): Manifest {
  return {
    format: formatVersion,
    backup_id: id,
    tenant_id: 't_0123456789abcdef0123',
    tenant_name: 'ada',
    taken_at: '2026-05-01T02:00:00.000Z',
    postgres_version: '17',
    parts,
    home: { tables: [], sequences: [], objects: [] },
    blobs: { count: 0, bytes: 0 },
  }
}

/** Writes a complete backup into one target. */
export async function write(target: BackupTarget, bytes: Uint8Array = Buffer.from('bytes')): Promise<Written> {
  const [id, key] = [randomUUID(), randomBytes(32)]
  const files = openFiles(target, id, key, signal)
  const parts: Part[] = []
  const contents = { database: Buffer.from('rows'), files: bytes, index: Buffer.from('names') }
  for (const name of partNames) parts.push(await files.write(name, chunks(contents[name])))
  const text = JSON.stringify(manifestOf(id, parts))
  await files.writeManifest(text)
  await files.writeRecord(records.write(describedBackup(id, files.bytes(), manifestHash(text)), key))
  await files.commit()
  return { id, key, manifestHash: manifestHash(text) }
}

/** Returns a survey and a copier of these targets, for backups that the control database has as complete. */
export function leader(each: readonly BackupTarget[], known: Map<string, Written>) {
  const targets = createTargets(each, systemClock)
  const states = () =>
    Promise.resolve(new Map([...known.keys()].map((id): [string, Backup['state']] => [id, 'complete'])))
  const ledger = { keyOf: (id: string) => Promise.resolve(known.get(id)) }
  const copier = createCopier({ ledger: ledger as never, records, clock: systemClock, log })
  return { targets, copier, survey: () => surveyBackups({ targets, states, log }, new Set()) }
}

/** Returns a job with this backup. */
export const jobOf = ({ id, key, manifestHash }: Written) => ({ backup: { id, manifestHash }, key }) as never
