// The servers whose superusers' passwords can be replaced, and the record of each password in the control database.
import { createHash } from 'node:crypto'
import { appendToChain } from '../platform/audit-chain.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import type { Lock } from '../platform/locks.ts'
import type { Seal } from '../platform/seal.ts'
import { SuperuserUrl, type PostgresUrl } from '../platform/superuser-url.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { PasswordServer } from './jobs-replace.ts'
import { openPasswords, passwordColumns, passwordContexts } from './store-regions.ts'

interface ServerDeps {
  database: Database
  seal: Seal
  now: () => Date
  regions: readonly RegionConfig[]
  controlDatabaseUrl: PostgresUrl
}

/** The name of the control database's server in the audit log. The name of no region contains a space. */
const controlServer = 'control database'

/** Returns the servers, without those whose password stays the same as long as the program runs. */
export function createPasswordServers({
  database,
  seal,
  now,
  regions,
  controlDatabaseUrl,
}: ServerDeps): PasswordServer[] {
  const note = (transaction: Transaction, target: string) =>
    appendToChain(transaction, 'system', [{ action: 'superuser_password.rotate', target, detail: {} }], now)

  /** Returns a server whose passwords are in a file of the operator. Its record is the fingerprint of the wanted one. */
  const byFile = (
    name: string,
    url: SuperuserUrl,
    lock: Lock,
    read: (from: Pick<Transaction, 'installation' | 'region'>) => Promise<string | undefined>,
    write: (transaction: Transaction, fingerprint: string) => Promise<unknown>,
  ): PasswordServer => ({
    name,
    url,
    isPending: async (wanted) => (await read(database)) !== fingerprintOf(wanted),
    replace: (wanted, epoch, set) =>
      ledWrite(database, epoch, [lock], async (transaction) => {
        const former = await read(transaction)
        await set()
        if (former === fingerprintOf(wanted)) return false
        await write(transaction, fingerprintOf(wanted))
        // The first password of an installation replaces no other.
        if (former === undefined) return false
        await note(transaction, name)
        return true
      }),
  })

  /** Returns a server that the control plane has created. Its passwords are in the control database. */
  const byDatabase = (id: string, url: SuperuserUrl): PasswordServer => {
    const read = async (from: Pick<Transaction, 'region'>) =>
      openPasswords(id, await from.region.findUniqueOrThrow({ where: { id }, select: passwordColumns }), seal)
    return {
      name: id,
      url,
      isPending: async () => (await read(database))?.next !== undefined,
      replace: (wanted, epoch, set) =>
        ledWrite(database, epoch, [`superuser:${id}`], async (transaction) => {
          const passwords = await read(transaction)
          // Another leader has recorded it, and may have begun the next replacement.
          if (passwords === undefined || wanted !== (passwords.next ?? passwords.current)) return false
          await set()
          if (passwords.next === undefined) return false
          const contexts = passwordContexts(id)
          await transaction.region.update({
            where: { id },
            data: {
              superuserPassword: seal.seal(passwords.next, contexts.current),
              firstSuperuserPassword: seal.seal(passwords.first, contexts.first),
              nextSuperuserPassword: null,
            },
          })
          await note(transaction, id)
          return true
        }),
    }
  }

  const control =
    controlDatabaseUrl instanceof SuperuserUrl
      ? byFile(
          controlServer,
          controlDatabaseUrl,
          'installation',
          async (from) => (await from.installation.findFirstOrThrow()).superuserPasswordId ?? undefined,
          (transaction, superuserPasswordId) => transaction.installation.updateMany({ data: { superuserPasswordId } }),
        )
      : undefined
  const shared = regions.flatMap(({ id, docker, superuser }) => {
    if (superuser === undefined) return []
    if (docker !== undefined) return [byDatabase(id, superuser)]
    return [
      byFile(
        id,
        superuser,
        `superuser:${id}`,
        async (from) => (await from.region.findUniqueOrThrow({ where: { id } })).superuserPasswordId ?? undefined,
        (transaction, superuserPasswordId) =>
          transaction.region.update({ where: { id }, data: { superuserPasswordId } }),
      ),
    ]
  })
  return control === undefined ? shared : [control, ...shared]
}

/** Returns the first part of a password's SHA-256. A password is too random to be guessed from it. */
function fingerprintOf(password: string): string {
  return createHash('sha256').update(password).digest('hex').slice(0, 16)
}
