// From what somebody wrote into `schemas` to a definition, or the error that says where it is wrong. Pure.
import { RuntimeError } from '../../errors.ts'
import { fieldTypes, policyTypes, tableFields, type Field, type SchemaDefinition } from './collection.ts'
import { reservedCollections } from './system-collections.ts'

/** `pg_` is Postgres' own. */
const collectionName = /^(?!pg_)[a-z][a-z0-9_]{0,62}$/
/** Every table's own columns, and names that are none to a JavaScript object. */
const reservedFields = new Set(['tenant_id', 'ctid', 'xmin', 'xmax', 'cmin', 'cmax', 'tableoid', '__proto__'])
const fieldName = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const maxFields = 200

/** @throws RuntimeError INVALID_SCHEMA */
export function checkSchema(value: { name: unknown; fields: unknown; rls_policy: unknown }): SchemaDefinition {
  const { name } = value
  if (typeof name !== 'string' || !collectionName.test(name)) {
    throw invalid('name', 'must be 1 to 63 lower-case letters, digits and underscores, beginning with a letter but not with pg_')
  }
  if (reservedCollections.has(name)) throw invalid('name', `"${name}" is reserved`)
  const definition: SchemaDefinition = { name, fields: checkFields(value.fields), policy: checkPolicy(value.rls_policy) }
  const owner = definition.fields.find((field) => field.name === definition.policy.ownerField)
  if (owner !== undefined && owner.type !== 'string' && owner.type !== 'uuid') {
    throw invalid('rls_policy.owner_field', `field "${owner.name}" must be of type uuid or string`)
  }
  if (tableFields(definition).filter((field) => field.name === 'id').length > 1) {
    throw invalid('fields', 'has a field "id" that is not primary, and no primary field beside it')
  }
  return definition
}

function checkFields(value: unknown): Field[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > maxFields) {
    throw invalid('fields', `must be an array of 1 to ${maxFields} field definitions`)
  }
  const fields = value.map((field: unknown, index) => checkField(field, `fields[${index}]`))
  const seen = new Set<string>()
  for (const { name } of fields) {
    if (seen.has(name)) throw invalid('fields', `has "${name}" twice`)
    seen.add(name)
  }
  if (fields.filter((field) => field.primary).length > 1) throw invalid('fields', 'has more than one primary field')
  return fields
}

function checkField(value: unknown, place: string): Field {
  const { name, type, primary = false, required = false, ...others } = membersOf(value, place)
  refuseOthers(others, place)
  if (typeof name !== 'string' || !fieldName.test(name)) throw invalid(`${place}.name`, 'must be 1 to 63 letters, digits and underscores')
  if (reservedFields.has(name)) throw invalid(`${place}.name`, `"${name}" is reserved`)
  const known = fieldTypes.find((candidate) => candidate === type)
  if (known === undefined) throw invalid(`${place}.type`, `must be one of ${fieldTypes.join(', ')}`)
  if (typeof primary !== 'boolean') throw invalid(`${place}.primary`, 'must be true or false')
  if (typeof required !== 'boolean') throw invalid(`${place}.required`, 'must be true or false')
  if (primary && (known === 'json' || known === 'boolean')) throw invalid(`${place}.primary`, `a ${known} field can't be primary`)
  return { name, type: known, primary, required }
}

function checkPolicy(value: unknown): SchemaDefinition['policy'] {
  const { type, owner_field: ownerField, ...others } = membersOf(value, 'rls_policy')
  refuseOthers(others, 'rls_policy')
  const known = policyTypes.find((candidate) => candidate === type)
  if (known === undefined) throw invalid('rls_policy.type', `must be one of ${policyTypes.join(', ')}`)
  const owned = known === 'ownership' || known === 'public_read'
  if (!owned && ownerField !== undefined) throw invalid('rls_policy.owner_field', `has no meaning for type ${known}`)
  if (!owned) return { type: known, ownerField: undefined }
  if (typeof ownerField !== 'string' || !fieldName.test(ownerField) || reservedFields.has(ownerField)) throw invalid('rls_policy.owner_field', 'must name a field')
  return { type: known, ownerField }
}

function membersOf(value: unknown, place: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(place, 'must be an object')
  return value as Record<string, unknown>
}

function refuseOthers(others: object, place: string): void {
  const [first] = Object.keys(others)
  if (first !== undefined) throw invalid(`${place}.${first}`, 'is not known')
}

function invalid(place: string, problem: string): RuntimeError {
  return new RuntimeError('INVALID_SCHEMA', `${place} ${problem}`)
}
