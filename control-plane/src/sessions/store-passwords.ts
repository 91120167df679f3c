// The passwords of the services' logins, from the control database.
import type { Database } from '../platform/database.ts'
import type { Seal } from '../platform/seal.ts'
import { liveSecrets } from '../tenants/index.ts'
import type { PasswordStore } from './jobs-passwords.ts'

/** Creates the store on the control database; `seal` opens the tenants' secrets. */
export function createPasswordStore(database: Database, seal: Seal, now: () => Date): PasswordStore {
  return {
    async passwords(regionId, tenantIds) {
      const rows = await database.tenant.findMany({
        where: { id: { in: [...tenantIds] }, regionId, isolation: 'schema-per-tenant', desired: { not: 'deleted' } },
        select: {
          id: true,
          secrets: {
            where: { kind: { in: ['runtime_password', 'ddl_password'] } },
            orderBy: { createdAt: 'desc' },
          },
        },
      })
      return new Map(
        rows.map(({ id, secrets }) => {
          const { texts } = liveSecrets(id, secrets, seal, now())
          return [id, { runtime: texts.runtime_password, ddl: texts.ddl_password }]
        }),
      )
    },
  }
}
