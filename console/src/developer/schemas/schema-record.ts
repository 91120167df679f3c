// Schemas as records of the collection `schemas`, and as the documents that developers edit.

export const schemasPath = '/rest/v1/schemas'

/** A record of the collection `schemas`. */
export interface SchemaRecord {
  id: string
  name: string
  fields: unknown[]
  rls_policy: { type?: string } | null
  events: boolean | null
  /** ISO 8601. */
  updated_at: string
}

/** The document of a new schema. */
export const newDocument = `{
  "name": "notes",
  "fields": [
    { "name": "id", "type": "uuid", "primary": true },
    { "name": "owner_id", "type": "string" },
    { "name": "text", "type": "string", "required": true }
  ],
  "rls_policy": { "type": "ownership", "owner_field": "owner_id" }
}
`

/** Returns the document of a record, without what the service adds. */
export function documentOf({ name, fields, rls_policy: policy, events }: SchemaRecord): string {
  const head = `{\n  "name": ${JSON.stringify(name)},\n  "fields": [`
  const lines = fields.map((field) => `    ${JSON.stringify(field)}`).join(',\n')
  const rest = { rls_policy: policy, ...(events === null ? {} : { events }) }
  const tail = Object.entries(rest).map(([key, value]) => `,\n  ${JSON.stringify(key)}: ${JSON.stringify(value)}`)
  return `${head}${lines === '' ? '' : `\n${lines}\n  `}]${tail.join('')}\n}\n`
}
