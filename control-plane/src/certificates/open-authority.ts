// Opens the certificate authority of an installation, which is created once.
import type { Database } from '../platform/database.ts'
import type { RecordWrite } from '../platform/recorded-write.ts'
import type { Seal } from '../platform/seal.ts'
import { newAuthority } from './authority.ts'
import { createAuthorityStore, type AuthorityStore } from './store.ts'

interface OpenAuthorityDeps {
  database: Database
  seal: Seal
  now: () => Date
}

/**
 * Opens the authority, and creates it unless there is one. Of several control planes that start at once, one creates it.
 * @param installation the name of the installation, which becomes part of the authority's name
 */
export async function openAuthority(
  { database, seal, now }: OpenAuthorityDeps,
  record: RecordWrite,
  installation: string,
): Promise<AuthorityStore> {
  const authority = createAuthorityStore({ database, seal })
  if (!(await authority.exists()))
    await record({ keyId: 'system' }, (write) => authority.create(newAuthority(installation, now()), write))
  return authority
}
