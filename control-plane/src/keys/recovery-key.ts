// Creates a platform key for an operator who restores a control database and may have lost all keys.
import { readFile, writeFile } from 'node:fs/promises'
import { isMissingFile } from '@tenantry/contract'
import type { RecordWrite } from '../platform/recorded-write.ts'
import { isLimited } from './key-rights.ts'
import type { PlatformKey } from './platform-key.ts'
import { keyHash, newPlatformKey } from './key-text.ts'
import { allRights, type PlatformKeyStore } from './store.ts'

/**
 * Creates an admin key and writes it to a file, unless the file has a valid one without limits and without an end. The
 * file is written before the key is valid, so that no crash loses it. Earlier keys stay valid.
 * @returns whether a key was created
 */
export async function createRecoveryKey(keys: PlatformKeyStore, record: RecordWrite, file: string): Promise<boolean> {
  const written = await readFile(file, 'utf8').catch((cause: unknown) => {
    if (isMissingFile(cause)) return ''
    throw cause
  })
  const present = await keys.find(keyHash(written.trim()))
  if (present !== undefined && isUnlimitedAdmin(present)) return false
  const text = newPlatformKey()
  await writeFile(file, `${text}\n`, { mode: 0o600 })
  const wanted = { name: 'recovery key', scope: 'admin', rights: allRights, creator: allRights } as const
  await record({ keyId: 'system' }, (write) => keys.create(wanted, text, write))
  return true
}

/** Whether a key may do everything, from everywhere, and does not end. */
function isUnlimitedAdmin({ scope, revokedAt, expiresAt, limit, addresses }: PlatformKey): boolean {
  const isValid = revokedAt === undefined && expiresAt === undefined
  return isValid && scope === 'admin' && !isLimited(limit) && addresses.length === 0
}
