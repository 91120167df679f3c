// Row-level security of a collection: the callers' rights to its records. Pure.
import { identifier } from '../sql/names.ts'
import type { SchemaDefinition } from './collection.ts'
import { textLiteral } from './ddl-values.ts'

const tenant = "(select nullif(current_setting('app.tenant_id', true), ''))"
const role = "(select nullif(current_setting('app.role', true), ''))"
const userId = "(select nullif(current_setting('app.user_id', true), ''))"

export function tenantColumn(tenantId: string): string {
  const id = textLiteral(tenantId)
  return `tenant_id text not null default ${id} check (tenant_id = ${id})`
}

/** Returns SQL for row-level security that applies to owners of tables too. */
export function rowSecuritySql(name: string): string {
  return `alter table ${identifier(name)} enable row level security, force row level security`
}

/** Returns the policies that are the same for every collection: the restriction to the tenant, and the service's. */
export function foundationSql(name: string): string[] {
  const table = identifier(name)
  return [
    rowSecuritySql(name),
    `create policy tenant on ${table} as restrictive using (tenant_id = ${tenant})`,
    `create policy service on ${table} using (${role} = 'service_role')`,
  ]
}

const policyNames = ['owner', 'readers', 'signed_in']

export function dropPoliciesSql(name: string): string[] {
  return policyNames.map((policy) => `drop policy if exists ${policy} on ${identifier(name)}`)
}

/** Returns the policies for users, in addition to the service's and to the restriction to the tenant. */
export function policySql({ name, policy }: SchemaDefinition): string[] {
  const table = identifier(name)
  const own = policy.ownerField === undefined ? 'false' : `${identifier(policy.ownerField)}::text = ${userId}`
  const owner = `create policy owner on ${table} using (${own}) with check (${own})`
  switch (policy.type) {
    case 'ownership':
      return [owner]
    case 'public_read':
      return [owner, `create policy readers on ${table} for select using (true)`]
    case 'authenticated':
      return [
        `create policy signed_in on ${table} using (${role} = 'authenticated') with check (${role} = 'authenticated')`,
      ]
    case 'service':
      return []
  }
}
