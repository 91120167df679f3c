// A schema of a collection (specification, section 2.3), and the table that it asks for. Pure.

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
