// Request bodies and response bodies of tenants, and the roles and schemas of a tenant in the databases.
import type { OperationBody, TenantBody } from '#control-plane/tenants/tenant-body.ts'
import { query } from '#test/support/postgres.ts'
import { newName, type ApiResponse, type TestApi } from '#test/support/control-plane/api.ts'

type Changed = TenantBody & { operation: OperationBody }

export const newTenantBody = (name = newName()) => ({ name, plan: 'Free', region: 'local' })
export const changed = ({ body }: ApiResponse) => body as Changed

/** Returns the names of the tenant's roles, and of its schemas in the database of homes. */
export const rolesAndSchemas = async (api: TestApi, id: string) => ({
  roles: (await api.sql('select rolname from pg_roles where rolname like $1 order by 1', [`${id}%`])).map(
    ({ rolname }) => rolname,
  ),
  schemas: (
    await query(api.postgres.url('tenantry_homes_1'), 'select nspname from pg_namespace where nspname like $1', [
      `${id}%`,
    ])
  ).map(({ nspname }) => nspname),
})
