// A tenant's settings of its REST interface, named like those of PostgREST. A reload sets and publishes them.

/** The first schema, which contains the collections and everything that belongs to no other schema. */
export const firstSchema = 'public'

export interface RestSettings {
  /** The schemas of the interface. The first one is `public`. */
  readonly db_schemas: readonly string[]
  /** The name in the home of the function that is called before each request, in its transaction; null without one. */
  readonly db_pre_request: string | null
  /** The function that replaces the description of the interface, in each schema that has it; null without one. */
  readonly db_root_spec: string | null
  /** Whether requests may have aggregates, if the operator allows them. */
  readonly db_aggregates_enabled: boolean
}

export const defaultSettings: RestSettings = {
  db_schemas: [firstSchema],
  db_pre_request: null,
  db_root_spec: null,
  db_aggregates_enabled: true,
}
