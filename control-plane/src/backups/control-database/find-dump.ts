// Finds the newest dump that is whole and that the master key decrypts, in all targets.
import type { Log } from '../../platform/log.ts'
import { BackupError } from '../backup-error.ts'
import { configsOf, foldersOf, openTarget, type TargetConfigs } from '../open-targets.ts'
import { openDump, type DumpFiles } from './dump-files.ts'
import { dumpFolder, dumpFolderPrefix, dumpParts, isDumpFolder } from './dump-folder.ts'
import type { DumpManifest } from './dump-manifest.ts'

/** A dump that was read to its end and is whole. */
export interface FoundDump {
  target: string
  manifest: DumpManifest
  files: DumpFiles
}

/**
 * Returns the newest dump. One that cannot be used is reported in the log by name.
 * @param installation undefined: of any installation
 * @throws BackupError INCOMPLETE if there is none
 */
export async function findDump(
  configs: TargetConfigs,
  installation: string | undefined,
  keys: readonly Uint8Array[],
  log: Pick<Log, 'warn'>,
  signal: AbortSignal,
): Promise<FoundDump> {
  const targets = configsOf(configs)
  const candidates: { id: string; target: string; opened: DumpFiles[] }[] = []
  const others = new Set<string>()
  for (const config of targets) {
    try {
      for (const folder of (await foldersOf(config, dumpFolderPrefix)).filter(isDumpFolder)) {
        if (installation !== undefined && folder !== dumpFolder(installation)) {
          others.add(folder.slice(dumpFolderPrefix.length))
          continue
        }
        const target = await openTarget(config, folder, dumpParts)
        for (const { id, content } of await target.list())
          if (content === 'whole')
            candidates.push({ id, target: config.name, opened: keys.map((key) => openDump(target, id, key, signal)) })
      }
    } catch (cause) {
      signal.throwIfAborted()
      log.warn({ target: config.name, err: cause }, 'A backup target cannot be listed.')
    }
  }
  candidates.sort((one, other) => (one.id < other.id ? 1 : -1))
  for (const { id, target, opened } of candidates) {
    let failure: unknown
    for (const files of opened) {
      try {
        const manifest = await files.checkedManifest()
        if (manifest.dump_id === id) return { target, manifest, files }
      } catch (cause) {
        signal.throwIfAborted()
        failure ??= cause
      }
    }
    const details = { dump: id, target, err: failure }
    log.warn(details, 'A dump cannot be used: it is damaged, or of another master key.')
  }
  const wanted = installation === undefined ? 'a control database' : `the installation ${installation}`
  const found = others.size === 0 ? '' : ` There are dumps of other installations: ${[...others].sort().join(', ')}.`
  throw new BackupError(
    'INCOMPLETE',
    `No backup target has a dump of ${wanted} that this master key decrypts. Dumps that were found: ${candidates.length}.${found}`,
  )
}
