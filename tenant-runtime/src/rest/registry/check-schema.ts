// Turns a written row of `schemas` into a definition. The error names the invalid location. Pure.
import { RuntimeError } from '../../errors.ts'
import { checkField, collectionName, invalid, isFieldName, membersOf, rejectOthers } from './check-field.ts'
import { policyTypes, primaryOf, tableFields, type Field, type SchemaDefinition } from './collection.ts'
import { reservedCollections } from './system-collections.ts'

const maxFields = 200

export interface WrittenSchema {
  name: unknown
  fields: unknown
  rls_policy: unknown
  events?: unknown
}

/**
 * Checks a schema.
 * @throws RuntimeError INVALID_SCHEMA
 */
export function checkSchema({ name, fields, rls_policy: policy, events = false }: WrittenSchema): SchemaDefinition {
  if (typeof name !== 'string' || !collectionName.test(name)) {
    throw invalid(
      'name',
      'must be 1 to 63 lower-case letters, digits and underscores, beginning with a letter but not with pg_',
    )
  }
  if (reservedCollections.has(name)) throw invalid('name', `must not be the reserved name "${name}"`)
  if (typeof events !== 'boolean') throw invalid('events', 'must be true or false')
  const definition: SchemaDefinition = {
    name,
    fields: checkFields(fields),
    policy: checkPolicy(policy),
    ...(events ? { events } : {}),
  }
  const at = definition.fields.findIndex((field) => field.name === definition.policy.ownerField)
  const owner = definition.fields[at]
  if (owner !== undefined && owner.type !== 'string' && owner.type !== 'uuid') {
    throw invalid('rls_policy.owner_field', `must name a field of type uuid or string, not "${owner.name}"`)
  }
  if (owner?.default !== undefined)
    throw invalid(
      `fields[${at}].default`,
      'is not allowed for the owner field, which is set to the caller that creates the record',
    )
  if (tableFields(definition).filter((field) => field.name === 'id').length > 1) {
    throw invalid('fields', 'has a field "id" that is not primary, but no primary field')
  }
  return definition
}

/**
 * Checks the schemas of a home together: every reference must name a field that can be referenced.
 * @returns the schemas with the field of every reference filled in
 * @throws RuntimeError INVALID_SCHEMA
 */
export function checkReferences(definitions: readonly SchemaDefinition[]): SchemaDefinition[] {
  const known = new Map(definitions.map((definition) => [definition.name, definition]))
  return definitions.map((definition) => ({
    ...definition,
    fields: definition.fields.map((field, n) => {
      if (field.references === undefined) return field
      try {
        return { ...field, references: { ...field.references, field: referencedField(known, field, field.references) } }
      } catch (cause) {
        if (cause instanceof RuntimeError)
          throw new RuntimeError(
            'INVALID_SCHEMA',
            `Schema "${definition.name}": fields[${n}].references ${cause.message}.`,
            { cause },
          )
        throw cause
      }
    }),
  }))
}

function referencedField(
  known: ReadonlyMap<string, SchemaDefinition>,
  { type }: Field,
  { collection, field: name }: NonNullable<Field['references']>,
): string {
  const other = known.get(collection)
  if (other === undefined) throw new RuntimeError('INVALID_SCHEMA', `names "${collection}", which has no schema`)
  const field = name === undefined ? primaryOf(other) : tableFields(other).find((candidate) => candidate.name === name)
  if (field === undefined)
    throw new RuntimeError('INVALID_SCHEMA', `names "${collection}.${name ?? ''}", which is not a field`)
  if (!field.primary && field.unique !== true)
    throw new RuntimeError('INVALID_SCHEMA', `names "${collection}.${field.name}", which is neither primary nor unique`)
  if (field.type !== type)
    throw new RuntimeError(
      'INVALID_SCHEMA',
      `names "${collection}.${field.name}", which is of type ${field.type}, not ${type}`,
    )
  return field.name
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

function checkPolicy(value: unknown): SchemaDefinition['policy'] {
  const { type, owner_field: ownerField, ...others } = membersOf(value, 'rls_policy')
  rejectOthers(others, 'rls_policy')
  const known = policyTypes.find((candidate) => candidate === type)
  if (known === undefined) throw invalid('rls_policy.type', `must be one of ${policyTypes.join(', ')}`)
  const owned = known === 'ownership' || known === 'public_read'
  if (!owned && ownerField !== undefined) throw invalid('rls_policy.owner_field', `is not allowed for type ${known}`)
  if (!owned) return { type: known, ownerField: undefined }
  if (!isFieldName(ownerField)) throw invalid('rls_policy.owner_field', 'must name a field')
  return { type: known, ownerField }
}
