// What a reload has to do: the difference between what stands in `schemas` and what was applied. Pure.
import { identifier, literal } from '../sql/names.ts'
import { sqlTypes, tableFields, type Field, type SchemaDefinition } from './collection.ts'

export interface Applied {
  definition: SchemaDefinition
  published: boolean
}

export interface ReloadPlan {
  statements: string[]
  /** What was done, in words; for the answer. */
  actions: string[]
  /** Changes that would lose data: while there is one, nothing is done. */
  destructive: string[]
  /** Rows of `applied_schemas` to write. */
  applied: Applied[]
}

const tenant = "(select nullif(current_setting('app.tenant_id', true), ''))"
const role = "(select nullif(current_setting('app.role', true), ''))"
const userId = "(select nullif(current_setting('app.user_id', true), ''))"

export function planReload(tenantId: string, wanted: readonly SchemaDefinition[], before: readonly Applied[]): ReloadPlan {
  const plan: ReloadPlan = { statements: [], actions: [], destructive: [], applied: [] }
  const known = new Map(before.map((applied) => [applied.definition.name, applied]))
  for (const definition of wanted) {
    const applied = known.get(definition.name)
    known.delete(definition.name)
    if (applied === undefined) createTable(plan, tenantId, definition)
    else changeTable(plan, definition, applied)
    plan.applied.push({ definition, published: true })
  }
  for (const applied of known.values()) {
    if (applied.published) plan.actions.push(`collection "${applied.definition.name}" is no longer published; its table is kept`)
    plan.applied.push({ ...applied, published: false })
  }
  return plan
}

function createTable(plan: ReloadPlan, tenantId: string, definition: SchemaDefinition): void {
  const table = identifier(definition.name)
  const columns = tableFields(definition).map((field) => columnSql(field, definition))
  const id = literal(tenantId)
  plan.statements.push(
    `create table ${table} (${[...columns, `tenant_id text not null default ${id} check (tenant_id = ${id})`].join(', ')})`,
    `alter table ${table} enable row level security`,
    `alter table ${table} force row level security`,
    `create policy tenant on ${table} as restrictive using (tenant_id = ${tenant})`,
    `create policy service on ${table} using (${role} = 'service_role')`,
    ...policySql(definition),
    ...ownerIndexSql(definition),
  )
  plan.actions.push(`collection "${definition.name}" was created`)
}

function changeTable(plan: ReloadPlan, definition: SchemaDefinition, { definition: old, published }: Applied): void {
  const { name } = definition
  const table = identifier(name)
  const oldFields = new Map(tableFields(old).map((field) => [field.name, field]))
  if (!published) plan.actions.push(`collection "${name}" is published again`)
  for (const field of tableFields(definition)) {
    const before = oldFields.get(field.name)
    oldFields.delete(field.name)
    if (before === undefined) {
      plan.statements.push(`alter table ${table} add column ${columnSql(field, definition)}`)
      plan.actions.push(`field "${name}.${field.name}" was added`)
      continue
    }
    if (before.type !== field.type) plan.destructive.push(`field "${name}.${field.name}" changes its type from ${before.type} to ${field.type}`)
    if (before.primary !== field.primary) plan.destructive.push(`field "${name}.${field.name}" ${field.primary ? 'becomes' : 'is no longer'} primary`)
    if (before.required !== field.required && !field.primary) {
      plan.statements.push(`alter table ${table} alter column ${identifier(field.name)} ${field.required ? 'set' : 'drop'} not null`)
      plan.actions.push(`field "${name}.${field.name}" is ${field.required ? 'now' : 'no longer'} required`)
    }
  }
  for (const field of oldFields.keys()) plan.destructive.push(`field "${name}.${field}" is removed`)
  if (JSON.stringify(old.policy) !== JSON.stringify(definition.policy)) {
    plan.statements.push(
      ...policyNames.map((policy) => `drop policy if exists ${policy} on ${table}`),
      ...policySql(definition),
      ...ownerIndexSql(definition),
    )
    plan.actions.push(`collection "${name}" has the policy ${definition.policy.type} now`)
  }
}

function columnSql(field: Field, { policy }: SchemaDefinition): string {
  const parts = [identifier(field.name), sqlTypes[field.type]]
  if (field.name === policy.ownerField) {
    // Who inserts owns, unless the service names another; a subquery can't stand in a default.
    parts.push(`default nullif(current_setting('app.user_id', true), '')${field.type === 'uuid' ? '::uuid' : ''}`)
  } else if (field.primary && field.type === 'uuid') {
    parts.push('default gen_random_uuid()')
  }
  if (field.primary) parts.push('primary key')
  else if (field.required) parts.push('not null')
  return parts.join(' ')
}

const policyNames = ['owner', 'readers', 'signed_in']

/** What users may do; the service's policy and the tenant's wall stand beside these. */
function policySql({ name, policy }: SchemaDefinition): string[] {
  const table = identifier(name)
  const own = policy.ownerField === undefined ? 'false' : `${identifier(policy.ownerField)}::text = ${userId}`
  const owner = `create policy owner on ${table} using (${own}) with check (${own})`
  switch (policy.type) {
    case 'ownership':
      return [owner]
    case 'public_read':
      return [owner, `create policy readers on ${table} for select using (true)`]
    case 'authenticated':
      return [`create policy signed_in on ${table} using (${role} = 'authenticated') with check (${role} = 'authenticated')`]
    case 'service':
      return []
  }
}

function ownerIndexSql({ name, policy }: SchemaDefinition): string[] {
  if (policy.ownerField === undefined) return []
  // The policies compare as text, whatever the type; an index on anything else would not be used.
  return [`create index if not exists ${identifier(`${name.slice(0, 50)}_by_owner`)} on ${identifier(name)} ((${identifier(policy.ownerField)}::text))`]
}
