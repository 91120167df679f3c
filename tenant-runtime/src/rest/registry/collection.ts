// A schema of a collection (specification, section 2.3), and the fields of its table. Pure.

export const fieldTypes = ['uuid', 'string', 'number', 'boolean', 'datetime', 'json'] as const
export type FieldType = (typeof fieldTypes)[number]

export const policyTypes = ['ownership', 'public_read', 'authenticated', 'service'] as const
export type PolicyType = (typeof policyTypes)[number]

export const deletions = ['restrict', 'cascade', 'set null'] as const

/** A reference: the field has a value of another collection's field, or null. */
export interface Reference {
  readonly collection: string
  /** The other collection's primary field, or a unique one. Always present in applied definitions. */
  readonly field?: string
  /** The effect that the deletion of the referenced record has on this one. */
  readonly onDelete: (typeof deletions)[number]
}

export interface Field {
  readonly name: string
  readonly type: FieldType
  readonly primary: boolean
  readonly required: boolean
  readonly unique?: true
  readonly index?: true
  /** The maximum length of a `string` in characters (Unicode code points). */
  readonly maxLength?: number
  /** The range of a `number`. */
  readonly minimum?: number
  readonly maximum?: number
  /** A value of the field's type, or one of `generatedDefaults`. */
  readonly default?: unknown
  readonly enum?: readonly (string | number)[]
  readonly references?: Reference
}

/** Defaults that Postgres generates for each record. */
export const generatedDefaults: Partial<Record<FieldType, string>> = { uuid: 'gen_random_uuid()', datetime: 'now()' }

/** A schema as it is stored, after it was checked. */
export interface SchemaDefinition {
  readonly name: string
  readonly fields: readonly Field[]
  readonly policy: { readonly type: PolicyType; readonly ownerField: string | undefined }
  /** Whether changes of the records are written to the event log. */
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

/** The column of a table whose schema has no primary field. */
const generatedId: Field = { name: 'id', type: 'uuid', primary: true, required: false }

/** Returns all fields of the table, including those that the service adds. */
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
