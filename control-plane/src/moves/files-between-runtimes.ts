// Copies files between the runtimes of two regions that tenants share, over the internal API of both.
import type { RuntimeFiles } from '../backups/index.ts'
import { paced } from '../platform/pace.ts'
import type { FileTransfer } from './copy-files.ts'
import { MoveError } from './move-error.ts'
import { claimSameStore, fileDiffers, writeCopy } from './write-copy.ts'

/** Returns the way from one region's shared runtimes to another's. */
export function filesBetweenRuntimes(source: RuntimeFiles, target: RuntimeFiles): FileTransfer {
  return {
    storeId: (signal) => source.storeId(signal),

    async add({ files, storeId, mayExist, pace }, signal) {
      await claimSameStore(target, storeId, signal)
      for (const file of files) {
        if (mayExist) {
          const present = await target.hashOf(file, signal)
          if (present !== undefined && present !== (await source.hashOf(file, signal))) throw fileDiffers(file)
          if (present !== undefined) continue
        }
        const content = await source.open(file.id, file.size, signal)
        if (content === undefined) throw new MoveError(`The file ${file.id} of an object is missing.`)
        await writeCopy(file, paced(content, pace), target, signal)
      }
    },
  }
}
