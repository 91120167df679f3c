// A collection: what a schema (specification, section 2.3) means to the REST interface. Pure.

export const fieldTypes = ['uuid', 'string', 'number', 'boolean', 'datetime', 'json'] as const
export type FieldType = (typeof fieldTypes)[number]

export const policyTypes = ['ownership', 'public_read', 'authenticated', 'service'] as const
export type PolicyType = (typeof policyTypes)[number]

export interface Field {
  readonly name: string
  readonly type: FieldType
  readonly primary: boolean
  readonly required: boolean
}

/** A schema as it is stored, after it was checked. */
export interface SchemaDefinition {
  readonly name: string
  readonly fields: readonly Field[]
  readonly policy: { readonly type: PolicyType; readonly ownerField: string | undefined }
}

export interface Collection {
  readonly name: string
  /** Every column that is shown, in order; others of the table stay hidden. */
  readonly columns: ReadonlyMap<string, Column>
  readonly primary: string
  readonly ownerField: string | undefined
  readonly writable: 'by policy' | 'no' | 'schemas'
}

export interface Column {
  readonly name: string
  /** Postgres' type, for casts of parameters. */
  readonly sqlType: string
  /** Undefined for system columns: their values never come from callers. */
  readonly field: Field | undefined
}

export const sqlTypes: Record<FieldType, string> = {
  uuid: 'uuid',
  string: 'text',
  number: 'double precision',
  boolean: 'boolean',
  datetime: 'timestamptz',
  json: 'jsonb',
}

/** The column a table gets when its schema names no primary field. */
const generatedId: Field = { name: 'id', type: 'uuid', primary: true, required: false }

/** All fields of the table, those that we add included. */
export function tableFields({ fields, policy }: SchemaDefinition): Field[] {
  const all = fields.some((field) => field.primary) ? [...fields] : [generatedId, ...fields]
  if (policy.ownerField !== undefined && !all.some((field) => field.name === policy.ownerField)) {
    all.push({ name: policy.ownerField, type: 'string', primary: false, required: false })
  }
  return all
}

export function toCollection(definition: SchemaDefinition): Collection {
  const fields = tableFields(definition)
  return {
    name: definition.name,
    columns: new Map(fields.map((field) => [field.name, { name: field.name, sqlType: sqlTypes[field.type], field }])),
    primary: fields.find((field) => field.primary)?.name ?? 'id',
    ownerField: definition.policy.ownerField,
    writable: 'by policy',
  }
}
