// Restores a dump into a control database without tenants. The tables get the version of the dump, then the rows, and then
// the newer migrations, so that these change the rows as they did, or would have done, in the lost database. Everything can
// be repeated after an interruption.
import type pg from 'pg'
import { identifier, literal } from '../../platform/identifiers.ts'
import { migrate, type Migration } from '../../platform/migrations.ts'
import { connected } from '../../platform/single-connection.ts'
import type { PostgresUrl } from '../../platform/superuser-url.ts'
import { BackupError } from '../backup-error.ts'
import { copyIn } from '../shared/copy-in.ts'
import { readFrames } from '../shared/dump-frames.ts'
import { contentOf } from '../shared/dump-home.ts'
import type { DumpManifest } from './dump-manifest.ts'
import type { FoundDump } from './find-dump.ts'
import { inControlDatabase } from './take-dump.ts'

const commentStart = 'restored from the dump '

/** Returns the dump from which a control database was restored; undefined for any other database. */
export async function restoredFrom(url: PostgresUrl): Promise<string | undefined> {
  return connected({ connectionString: url }, async (client) => {
    const { rows } = await client.query<{ comment: string | null }>(
      `select obj_description(oid, 'pg_namespace') as comment from pg_namespace where nspname = 'public'`,
    )
    const comment = rows[0]?.comment ?? ''
    return comment.startsWith(commentStart) ? comment.slice(commentStart.length) : undefined
  })
}

/**
 * Rejects a database that has tenants, which a restore would remove.
 * @throws BackupError FAILED
 */
export async function rejectUsed(url: PostgresUrl): Promise<void> {
  const tenants = await connected({ connectionString: url }, async (client) => {
    const { rows: found } = await client.query(`select 1 where to_regclass('public.tenants') is not null`)
    if (found.length === 0) return 0
    const { rows } = await client.query<{ count: number }>('select count(*)::int as count from public.tenants')
    return rows[0]?.count ?? 0
  })
  if (tenants > 0)
    throw new BackupError(
      'FAILED',
      `The control database has ${tenants} tenants. A dump is restored only into a database without tenants.`,
    )
}

/**
 * Restores a dump. The database must have no tenants.
 * @param migrations those of this program
 * @throws BackupError FAILED for a dump of a newer version, MISMATCH, DAMAGED
 */
export async function restoreDump(
  url: PostgresUrl,
  { manifest, files }: FoundDump,
  migrations: Migration[],
  signal: AbortSignal,
): Promise<void> {
  const known = new Set(migrations.map(({ name }) => name))
  const newer = manifest.migrations.find((name) => !known.has(name))
  if (newer !== undefined)
    throw new BackupError(
      'FAILED',
      `The dump is newer than this program: its database has the migration ${newer}. Use the version that made it, or a newer one.`,
    )
  await rejectUsed(url)
  await connected({ connectionString: url }, (client) =>
    client.query('drop schema if exists public cascade; create schema public'),
  )
  await migrate(
    url,
    migrations.filter(({ name }) => manifest.migrations.includes(name)),
  )
  await inControlDatabase(url, signal, (client) => load(client, manifest, files.rows()))
  await migrate(url, migrations)
}

async function load(client: pg.Client, manifest: DumpManifest, content: AsyncIterable<Uint8Array>): Promise<void> {
  await client.query('begin')
  // Neither triggers nor foreign keys are checked: the rows are those of a valid database.
  await client.query('set local session_replication_role = replica')
  // Migrations insert rows, too.
  const names = manifest.tables.map(({ name }) => identifier(name))
  await client.query(`truncate ${names.join(', ')}`)
  const frames = readFrames(content)
  try {
    let next = await frames.next()
    const rows = async function* () {
      for (next = await frames.next(); next.done !== true && next.value.type === 'D'; next = await frames.next())
        yield next.value.content
    }
    while (next.done !== true && next.value.type === 'T') {
      const table = JSON.parse(next.value.content.toString()) as { name: string; columns: string[] }
      const columns = table.columns.map(identifier).join(', ')
      await copyIn(client, `copy ${identifier(table.name)} (${columns}) from stdin`, rows())
    }
  } finally {
    await frames.return(undefined)
  }
  for (const { name, value, isCalled } of manifest.sequences)
    await client.query('select setval($1, $2, $3)', [identifier(name), value, isCalled])
  for (const { name, columns, ...wanted } of manifest.tables) {
    const found = await contentOf(client, { name, columns })
    if (found.rows !== wanted.rows || found.hash !== wanted.hash)
      throw new BackupError('MISMATCH', `The table "${name}" differs from the dump after the restore.`)
  }
  await client.query(`comment on schema public is ${literal(`${commentStart}${manifest.dump_id}`)}`)
  await client.query('commit')
  await client.query('analyze')
}
