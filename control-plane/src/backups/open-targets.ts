// Opens the backup targets that are configured.
import { readdir } from 'node:fs/promises'
import type { Clock } from '../platform/clock.ts'
import { unavailableTarget } from './backup-error.ts'
import type { BackupTarget } from './backup-target.ts'
import { checkDirectory, createDirectoryTarget, defaultName } from './directory-target.ts'
import { createTargets, type BackupTargets } from './target-set.ts'
import type { TargetCalls } from './target-calls.ts'
import type { TargetConfig } from './targets-config.ts'

/** The configuration of all targets. */
export interface TargetConfigs {
  /** The directory of the first target, `TENANTRY_BACKUPS`. */
  directory: string | undefined
  others: readonly TargetConfig[]
}

/**
 * Opens the targets, in the order in which backups are made in them. Another target than the first directory may be
 * unavailable now.
 * @param folder the folder in each target, which separates installations
 * @param calls the calls that other stores in these targets share
 * @returns undefined when there are none
 * @throws ConfigurationError
 */
export async function openTargets(
  configs: TargetConfigs,
  folder: string,
  clock: Pick<Clock, 'timeout'>,
  calls: TargetCalls,
): Promise<BackupTargets | undefined> {
  if (configs.directory !== undefined) await checkDirectory(configs.directory)
  const each = await Promise.all(configsOf(configs).map((config) => openTarget(config, folder)))
  return each.length === 0 ? undefined : createTargets(each, clock, calls)
}

/** Returns the configuration of each target. */
export function configsOf({ directory, others }: TargetConfigs): TargetConfig[] {
  return [...(directory === undefined ? [] : [{ name: defaultName, directory }]), ...others]
}

/**
 * Opens a target.
 * @param parts the parts without which a backup is not whole; by default those of backups of tenants
 */
export async function openTarget(
  config: TargetConfig,
  folder: string,
  parts?: readonly string[],
): Promise<BackupTarget> {
  if ('directory' in config) return createDirectoryTarget(config.directory, folder, config.name)
  // The SDK takes long to load, so it is loaded only if it is used.
  const { createS3Target } = await import('./s3-target.ts')
  return createS3Target(config.s3, folder, config.name, parts === undefined ? {} : { parts })
}

/**
 * Lists the folders of a target whose names begin with the prefix.
 * @throws BackupError TARGET_UNAVAILABLE
 */
export async function foldersOf(config: TargetConfig, prefix: string): Promise<string[]> {
  if ('s3' in config) {
    const { foldersOfBucket } = await import('./s3-target.ts')
    return foldersOfBucket(config.s3, prefix, config.name)
  }
  try {
    return (await readdir(config.directory)).filter((name) => name.startsWith(prefix))
  } catch (cause) {
    throw unavailableTarget(config.name, cause)
  }
}
