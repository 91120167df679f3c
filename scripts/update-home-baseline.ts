// `npm run update:baseline` writes the baseline of the newest migration of homes, from a home that all migrations have created.
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadHomeMigrations } from '#control-plane/homes/home-migrations.ts'
import { createHome, migrationsDirectory } from '#test/support/home.ts'
import { startPostgres } from '#test/support/postgres.ts'
import { baselineSql } from './home-baseline/baseline-sql.ts'

const migrations = (await loadHomeMigrations(migrationsDirectory)).map(({ version, name, sql }) => ({
  version,
  name,
  sql,
}))
const newest = migrations.at(-1)
if (newest === undefined) throw new Error('There is no migration.')
const postgres = await startPostgres()
try {
  const { tenantId } = await createHome(postgres, migrations)
  const text = await baselineSql(postgres.url('homes'), tenantId)
  for (const file of await readdir(migrationsDirectory))
    if (file.endsWith('.baseline.sql')) await rm(join(migrationsDirectory, file))
  const file = join(migrationsDirectory, `${String(newest.version).padStart(3, '0')}_${newest.name}.baseline.sql`)
  await writeFile(file, text)
  console.log(`wrote ${file}`)
} finally {
  await postgres.stop()
}
