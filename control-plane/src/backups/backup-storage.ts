// Opens everything that the configured targets contain for an installation: backups and archives of tenants, and
// dumps of the control database.
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database.ts'
import type { Seal } from '../platform/seal.ts'
import { openArchives } from './archive/open-archives.ts'
import { createBackupRecords } from './backup-record.ts'
import { dumpFolder, dumpKeys, dumpParts } from './control-database/dump-folder.ts'
import { configsOf, openTarget, openTargets } from './open-targets.ts'
import { createTargetCalls } from './target-calls.ts'
import type { TargetConfig } from './targets-config.ts'
import { createUnknownBackups } from './unknown-backups.ts'

/** The number of dumps that stay in each target. */
const maxDumps = 48

/** The settings of the targets: the directory, and further ones. */
interface StorageConfig {
  backups: string | undefined
  backupTargets: readonly TargetConfig[]
}

interface StorageDeps {
  installation: string
  database: Database
  seal: Seal
  now: () => Date
  clock: Pick<Clock, 'timeout'>
}

/** Everything that the configured targets contain for an installation. */
export type BackupStorage = NonNullable<Awaited<ReturnType<typeof openBackupStorage>>>

/** Opens the storage. @returns undefined if there is no target @throws ConfigurationError */
export async function openBackupStorage(
  { backups: directory, backupTargets: others }: StorageConfig,
  deps: StorageDeps,
) {
  const { installation, seal, clock } = deps
  const configs = { directory, others }
  const calls = createTargetCalls(clock)
  const targets = await openTargets(configs, installation, clock, calls)
  if (targets === undefined) return undefined
  const records = createBackupRecords({ seal, installation })
  const folder = dumpFolder(installation)
  const dumpTargets = await Promise.all(configsOf(configs).map((config) => openTarget(config, folder, dumpParts)))
  return {
    targets,
    records,
    unknown: createUnknownBackups(targets, records),
    archives: await openArchives({ ...deps, configs: configsOf(configs), calls }),
    dumps: { installation, targets: dumpTargets, key: dumpKeys(seal)[0], maxDumps },
  }
}
