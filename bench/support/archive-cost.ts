// The cost of archiving the WAL: how much fewer rows a tenant with a database of its own writes while its archive is on.
import pg from 'pg'
import { median, type Figures, type Report } from '#bench/figures.ts'
import type { BackupScene, FilledTenant } from './backup-scene.ts'
import { reportRounds } from './in-turn.ts'

const connections = 4
const rowsPerStatement = 10
const rowBytes = 1_024

/** Measures writes without and with an archive in turn. Each change restarts the tenant's Postgres, and is not measured. */
export async function archiveCost(
  scene: BackupScene,
  { id, databaseUrl }: FilledTenant,
  { rounds, seconds }: { rounds: number; seconds: number },
  report: Report,
): Promise<Figures> {
  const rows = { off: [] as number[], on: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    for (const state of ['off', 'on'] as const) {
      await scene.archive(id, state === 'on' ? 7 : null)
      // The first statements after a restart fill caches.
      await writeRows(databaseUrl, 1)
      rows[state].push(await writeRows(databaseUrl, seconds))
    }
  }
  await scene.archive(id, null)
  reportRounds(report, 'dedicated, rows/s without and with an archive', rows)
  const [off, on] = [median(rows.off), median(rows.on)]
  return {
    dedicated_archive_cost: { value: (100 * (off - on)) / off, unit: '%', target: '≤ 5' },
    dedicated_rows_without_archive: { value: off, unit: 'rows/s' },
  }
}

/** Inserts rows on some connections. @returns rows per second */
async function writeRows(url: string, seconds: number): Promise<number> {
  const clients = Array.from({ length: connections }, () => new pg.Client({ connectionString: url }))
  await Promise.all(clients.map((client) => client.connect()))
  try {
    await clients[0]?.query('drop table if exists written')
    await clients[0]?.query('create table written (id bigint generated always as identity primary key, body text)')
    const begin = performance.now()
    let rows = 0
    await Promise.all(
      clients.map(async (client) => {
        while (performance.now() - begin < seconds * 1_000) {
          await client.query(
            `insert into written (body) select (select string_agg(md5(random()::text), '') from generate_series(1, $1::int) part)
             from generate_series(1, $2::int)`,
            [rowBytes / 32, rowsPerStatement],
          )
          rows += rowsPerStatement
        }
      }),
    )
    return rows / ((performance.now() - begin) / 1_000)
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
}
