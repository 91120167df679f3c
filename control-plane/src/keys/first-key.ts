// Creates the first platform key of an installation.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { isMissingFile } from '@tenantry/contract'
import type { RecordWrite } from '../platform/recorded-write.ts'
import { keyHash, newPlatformKey } from './key-text.ts'
import type { PlatformKeyStore } from './store.ts'

/**
 * Creates the first key and writes it to a file, because it is returned nowhere else. The file is written before the
 * key is valid, so that no crash loses it. Of several control planes that start at the same time, one creates it.
 * @returns whether a key was created
 */
export async function createFirstKey(
  keys: PlatformKeyStore,
  record: RecordWrite,
  file: string | undefined,
): Promise<boolean> {
  if (file === undefined) return false
  const publish = (text: string) => writeFile(file, `${text}\n`, { mode: 0o600 })
  const isCreated = await record({ keyId: 'system' }, (write) => keys.createFirst(newPlatformKey(), publish, write))
  if (!isCreated) await removeUnknownKey(keys, file)
  return isCreated
}

/** Removes the key that a crash kept from becoming valid, before another control plane created the first one. */
async function removeUnknownKey(keys: PlatformKeyStore, file: string): Promise<void> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    if (isMissingFile(cause)) return undefined
    throw cause
  })
  if (text !== undefined && (await keys.find(keyHash(text.trim()))) === undefined) await rm(file)
}
