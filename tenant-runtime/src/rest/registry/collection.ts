// A schema of a collection (specification, section 2.3), and the table that it asks for. Pure.

export const fieldTypes = ['uuid', 'string', 'number', 'boolean', 'datetime', 'json'] as const
export type FieldType = (typeof fieldTypes)[number]

export const policyTypes = ['ownership', 'public_read', 'authenticated', 'service'] as const
export type PolicyType = (typeof policyTypes)[number]

export const deletions = ['restrict', 'cascade', 'set null'] as const

/** The field holds a value of another collection's field, or null. */
export interface Reference {
  readonly collection: string
  /** The other's primary field, or a unique one. Always there in what was applied. */
  readonly field?: string
  /** What a deletion of the record that is referred to does to this one. */
  readonly onDelete: (typeof deletions)[number]
}

export interface Field {
  readonly name: string
  readonly type: FieldType
  readonly primary: boolean
  readonly required: boolean
  readonly unique?: true
  readonly index?: true
  /** Of a `string`, in characters (Unicode code points). */
  readonly maxLength?: number
  /** Of a `number`. */
  readonly minimum?: number
  readonly maximum?: number
  /** A value of the field's type, or one of `generatedDefaults`. */
  readonly default?: unknown
  readonly enum?: readonly (string | number)[]
  readonly references?: Reference
}

/** Defaults that Postgres makes anew for each record. */
export const generatedDefaults: Partial<Record<FieldType, string>> = { uuid: 'gen_random_uuid()', datetime: 'now()' }

/** A schema as it is stored, after it was checked. */
export interface SchemaDefinition {
  readonly name: string
  readonly fields: readonly Field[]
  readonly policy: { readonly type: PolicyType; readonly ownerField: string | undefined }
  /** Changes of its records are written to the event log. */
  readonly events?: true
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

export function primaryOf(definition: SchemaDefinition): Field {
  return definition.fields.find((field) => field.primary) ?? generatedId
}
