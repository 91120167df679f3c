// The named constraints and indexes of a collection's table. A name identifies the field, so that an error of Postgres can
// be reported in the schema's terms. Pure.
import { createHash } from 'node:crypto'
import { identifier } from '../sql/names.ts'
import { enumRule, lengthRule, maxStringLength, rangeRule } from './check-value.ts'
import { primaryOf, sqlTypes, tableFields, type Field, type SchemaDefinition } from './collection.ts'
import { textLiteral } from './ddl-values.ts'

export interface Constraint {
  name: string
  field: Field
  kind: 'check' | 'unique' | 'reference'
  /** The SQL after `constraint name`. */
  sql: string
  /** The violated rule, which follows the field's name in messages. */
  rule: string
}

export interface Index {
  name: string
  sql: string
}

/** Returns every constraint but the primary key and `not null`. References have their field filled in. */
export function constraintsOf(definition: SchemaDefinition): Constraint[] {
  return tableFields(definition).flatMap((field) => constraintsOfField(definition.name, field))
}

/** Returns the constraint with this name, when it belongs to one of the fields. */
export function constraintOf(collection: string, fields: readonly Field[], name: string): Constraint | undefined {
  return fields.flatMap((field) => constraintsOfField(collection, field)).find((constraint) => constraint.name === name)
}

function constraintsOfField(collection: string, field: Field): Constraint[] {
  const column = identifier(field.name)
  const check = (name: string, condition: string, rule: string): Constraint => ({
    name: nameOf(`${collection}_${field.name}`, name),
    field,
    kind: 'check',
    sql: `check (${condition})`,
    rule,
  })
  const constraints: Constraint[] = []
  if (field.type === 'string') {
    const { maxLength = maxStringLength } = field
    // A character has one to four bytes. The number of bytes is known without counting.
    constraints.push(
      check(
        'length',
        `octet_length(${column}) <= ${maxLength} or char_length(${column}) <= ${maxLength}`,
        lengthRule(field),
      ),
    )
  }
  if (field.type === 'number') {
    // For Postgres, NaN is larger than infinity.
    const lower = field.minimum === undefined ? `${column} > '-Infinity'` : `${column} >= ${field.minimum}`
    const upper = field.maximum === undefined ? `${column} < 'Infinity'` : `${column} <= ${field.maximum}`
    constraints.push(check('range', `${lower} and ${upper}`, rangeRule(field)))
  }
  if (field.type === 'datetime') constraints.push(check('range', `isfinite(${column})`, rangeRule(field)))
  if (field.type === 'json')
    constraints.push(check('shape', `jsonb_typeof(${column}) in ('object', 'array')`, 'must be an object or an array'))
  if (field.enum !== undefined) {
    const values = field.enum.map((value) =>
      typeof value === 'number' ? `${value}::double precision` : textLiteral(value),
    )
    constraints.push(check('enum', `${column} in (${values.join(', ')})`, enumRule(field)))
  }
  if (field.unique === true) {
    constraints.push({
      name: nameOf(`${collection}.${field.name}`, 'key'),
      field,
      kind: 'unique',
      sql: `unique (${column})`,
      rule: 'has the same value as another record',
    })
  }
  if (field.references?.field !== undefined) {
    const { collection: other, field: referenced, onDelete } = field.references
    const deletion = onDelete === 'restrict' ? '' : ` on delete ${onDelete}`
    constraints.push({
      name: nameOf(`${collection}_${field.name}`, 'fkey'),
      field,
      kind: 'reference',
      rule: `references a record of "${other}" that does not exist`,
      sql: `foreign key (${column}) references ${identifier(other)} (${identifier(referenced)})${deletion}`,
    })
  }
  return constraints
}

export function indexesOf(definition: SchemaDefinition): Index[] {
  const { name, policy } = definition
  const index = (field: Field, method: string): Index => {
    const indexName = nameOf(`${name}.${field.name}`, 'idx')
    return { name: indexName, sql: `create index ${identifier(indexName)} on ${identifier(name)} ${method}` }
  }
  const indexes = tableFields(definition).flatMap((field) => {
    // A deletion searches for the records that reference the deleted one.
    const wanted = field.index === true || (field.references !== undefined && !field.primary && field.unique !== true)
    if (!wanted) return []
    return [
      index(
        field,
        field.type === 'json' ? `using gin (${identifier(field.name)} jsonb_path_ops)` : `(${identifier(field.name)})`,
      ),
    ]
  })
  if (policy.ownerField !== undefined) {
    // The policies compare texts, so an index on another type would not be used.
    const ownerIndex = nameOf(name, 'by_owner', '.')
    const owner = identifier(policy.ownerField)
    const isText = tableFields(definition).some((field) => field.name === policy.ownerField && field.type === 'string')
    indexes.push({
      name: ownerIndex,
      sql: `create index ${identifier(ownerIndex)} on ${identifier(name)} (${isText ? owner : `(${owner}::text)`})`,
    })
  }
  return indexes
}

export function primaryKeyName({ name }: SchemaDefinition): string {
  return nameOf(name, 'primary', '.')
}

export function primaryKeySql(definition: SchemaDefinition): string {
  return `constraint ${identifier(primaryKeyName(definition))} primary key (${identifier(primaryOf(definition).name)})`
}

/**
 * Returns the name of an object. Names of indexes share the schema with those of tables, from which the dot distinguishes
 * them, because no collection's name has one. A name that is too long is truncated and made unique by a hash.
 */
export function nameOf(what: string, kind: string, between = '_'): string {
  const name = `${what}${between}${kind}`
  return name.length <= 63
    ? name
    : `${name.slice(0, 42)}~${createHash('sha256').update(name).digest('hex').slice(0, 20)}`
}

/** Returns the name of the owner's index on tables of earlier versions. */
export function earlierOwnerIndex(collection: string): string {
  return `${collection.slice(0, 50)}_by_owner`
}

export function columnType(field: Field): string {
  return `${identifier(field.name)} ${sqlTypes[field.type]}`
}
