// The body of a request, parsed.

/** A body: its text as JSON, and its parsed value. */
export interface RequestBody {
  text: string
  value: unknown
  /** Whether all values are texts, because the body is a form or CSV. */
  isText?: boolean
  /** The fields of a form. Names may be repeated. */
  pairs?: readonly (readonly [name: string, value: string])[]
  /** The type of a body that a function takes as a whole, instead of JSON. */
  whole?: 'text' | 'xml' | 'bytea'
  bytes?: string | Buffer
}
