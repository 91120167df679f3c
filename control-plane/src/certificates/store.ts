// Stores the certificate authority in the control database, its private key sealed.
import { ControlError } from '../platform/errors.ts'
import type { Database } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { Seal } from '../platform/seal.ts'
import type { Authority } from './authority.ts'

/** Stores the installation's certificate authority. */
export type AuthorityStore = ReturnType<typeof createAuthorityStore>

const sealContext = 'certificate authority'

/** Creates the store of the certificate authority, on the control database. */
export function createAuthorityStore({ database, seal }: { database: Database; seal: Seal }) {
  const found = async () => {
    const row = await database.certificateAuthority.findFirst()
    if (row === null) throw new ControlError('UNAVAILABLE', 'The certificate authority does not exist yet.')
    return row
  }

  return {
    /** Whether the authority exists. */
    exists: async (): Promise<boolean> => (await database.certificateAuthority.count()) > 0,

    /** Stores the authority, unless there is one. */
    async create({ certificate, privateKey }: Authority, { transaction, audit }: RecordedWrite): Promise<void> {
      await lock(transaction, 'certificate authority')
      if ((await transaction.certificateAuthority.count()) > 0) return
      await transaction.certificateAuthority.create({
        data: { certificate, sealedKey: seal.seal(privateKey, sealContext) },
      })
      audit({ action: 'certificate_authority.create', target: 'certificate_authority', detail: {} })
    },

    /** Returns the authority's certificate in PEM. @throws ControlError UNAVAILABLE before it exists */
    certificate: async (): Promise<string> => (await found()).certificate,

    /** Returns the authority with its private key. @throws ControlError UNAVAILABLE before it exists */
    async get(): Promise<Authority> {
      const { certificate, sealedKey } = await found()
      return { certificate, privateKey: seal.open(sealedKey, sealContext) }
    },
  }
}
