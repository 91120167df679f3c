// Restores the control database of a lost installation from the newest dump in the backup targets.
import { ConfigurationError } from '@tenantry/contract'
import { BackupError, dumpKeys, findDump, restoreDump, restoredFrom } from './backups/index.ts'
import type { Config } from './config.ts'
import { createPlatformKeyStore, createRecoveryKey } from './keys/index.ts'
import type { Clock } from './platform/clock.ts'
import { openDatabase } from './platform/database.ts'
import type { Log } from './platform/log.ts'
import { migrate, readMigrations } from './platform/migrations.ts'
import { createRecordWrite } from './platform/recorded-write.ts'
import { createSeal } from './platform/seal.ts'
import { connected } from './platform/single-connection.ts'
import type { PostgresUrl } from './platform/superuser-url.ts'
import { unobservedHome } from './reconcile/index.ts'

/** On several hosts, the control database is a cluster, which begins when its hosts have started. */
const availableMilliseconds = 180_000
const pollMilliseconds = 500

interface RecoverDeps {
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  /** Prints a line for the operator. */
  print: (line: string) => void
}

/**
 * Restores the control database, unless an earlier call has done so, and creates a platform key in the file of
 * `TENANTRY_PLATFORM_KEY_FILE`. No control plane may use the database meanwhile.
 * @throws ConfigurationError when there is no dump that can be restored into this database
 */
export async function recover(config: Config, { clock, log, print }: RecoverDeps, signal: AbortSignal): Promise<void> {
  const { controlDatabaseUrl: url, backups: directory, backupTargets: others } = config
  const migrations = await readMigrations()
  await untilAvailable(url, clock, signal)
  try {
    const earlier = await restoredFrom(url)
    if (earlier !== undefined) {
      print(`The control database was restored from the dump ${earlier} before.`)
      await migrate(url, migrations)
    } else {
      const keys = dumpKeys(createSeal(...config.masterKeys))
      const dump = await findDump({ directory, others }, config.installation, keys, log, signal)
      const { manifest, target } = dump
      await restoreDump(url, dump, migrations, signal)
      print(`Installation: ${manifest.installation}`)
      print(`Control database: dump ${manifest.dump_id} of ${manifest.taken_at}, from the target "${target}"`)
      for (const { label, table } of printed)
        print(`  ${label}: ${manifest.tables.find(({ name }) => name === table)?.rows ?? '0'}`)
    }
  } catch (cause) {
    if (cause instanceof BackupError) throw new ConfigurationError(cause.message, { cause })
    throw cause
  }
  await connected({ connectionString: url }, async (client) => {
    // The reconciler checks every home again, because none is on this host.
    await client.query('update tenants set home_version = $1 where home_version is not null', [unobservedHome])
    // The regions were observed before the loss.
    await client.query('delete from region_conditions')
  })
  if (config.platformKeyFile === undefined) return
  const database = openDatabase(url)
  try {
    const now = () => clock.now()
    const created = await createRecoveryKey(
      createPlatformKeyStore({ database, now }),
      createRecordWrite(database, now),
      config.platformKeyFile,
    )
    if (created) print(`New platform key, in addition to the earlier ones: ${config.platformKeyFile}`)
  } finally {
    await database.$disconnect()
  }
}

/** Waits until the database, which may have been started just now, accepts connections. */
async function untilAvailable(url: PostgresUrl, clock: Clock, signal: AbortSignal): Promise<void> {
  for (let waited = 0; ; waited += pollMilliseconds) {
    try {
      await connected({ connectionString: url }, (client) => client.query('select'))
      return
    } catch (cause) {
      if (waited >= availableMilliseconds)
        throw new ConfigurationError('The control database does not accept connections.', { cause })
      await clock.sleep(pollMilliseconds, signal)
    }
  }
}

/** The tables whose numbers of rows are printed. */
const printed = [
  { label: 'tenants', table: 'tenants' },
  { label: 'platform keys', table: 'platform_keys' },
  { label: 'backups', table: 'backups' },
  { label: 'invoices', table: 'invoices' },
  { label: 'entries of the audit log', table: 'audit_log' },
]
