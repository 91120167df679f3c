// Creates the first platform key of an installation.
import { writeFile } from 'node:fs/promises'
import type { RecordWrite } from '../platform/recorded-write.ts'
import { isLimited } from './key-rights.ts'
import { newPlatformKey } from './key-text.ts'
import type { PlatformKeyStore } from './store.ts'

/**
 * Creates the first key and writes it to a file, because it is returned nowhere else. The file is written before the
 * key is valid, so that no crash loses it. @returns whether a key was created
 */
export async function createFirstKey(
  keys: PlatformKeyStore,
  record: RecordWrite,
  file: string | undefined,
): Promise<boolean> {
  if (file === undefined) return false
  if (
    (await keys.list()).some(
      ({ scope, limit, addresses, revokedAt, expiresAt }) =>
        scope === 'admin' &&
        !isLimited(limit) &&
        addresses.length === 0 &&
        revokedAt === undefined &&
        expiresAt === undefined,
    )
  )
    return false
  const text = newPlatformKey()
  await writeFile(file, `${text}\n`, { mode: 0o600 })
  return record({ keyId: 'system' }, (write) => keys.createFirst(text, write))
}
