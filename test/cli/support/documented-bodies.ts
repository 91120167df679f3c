// Checks the JSON of commands against the responses that the OpenAPI document describes.
import { Compile, type XSchema } from 'typebox/schema'

interface Document {
  paths: Record<
    string,
    Record<string, { responses: Record<string, { content?: Record<string, { schema: JsonSchema }> }> }>
  >
}

interface JsonSchema {
  type?: string
  properties?: Record<string, JsonSchema>
  items?: JsonSchema
  anyOf?: JsonSchema[]
  additionalProperties?: unknown
}

/** Returns a check of values against the response of a call, such as `GET /v1/tenants`. */
export function documentedBodies(document: Document) {
  /**
   * Returns the errors of a value, or nothing if it is as documented. Members that the document lacks are errors.
   * @param list the member of the response whose items the value is one of
   */
  return (call: string, value: unknown, list?: string): string[] => {
    const [method = '', path = ''] = call.split(' ')
    const responses = document.paths[path]?.[method.toLowerCase()]?.responses
    const success = Object.entries(responses ?? {}).find(([status]) => status.startsWith('2'))?.[1]
    const whole = success?.content?.['application/json']?.schema
    const schema = list === undefined ? whole : whole?.properties?.[list]?.items
    if (schema === undefined) return [`The document has no response of ${call} with ${list ?? 'a body'}.`]
    const [, errors] = Compile(closed(schema) as XSchema).Errors(value)
    return errors.map(({ instancePath, message }) => `${instancePath} ${message}`)
  }
}

/** Returns a schema that rejects members which it does not describe. */
function closed(schema: JsonSchema): JsonSchema {
  const { properties, items, anyOf } = schema
  return {
    ...schema,
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, closed(one)])),
          additionalProperties: false,
        }),
    ...(items === undefined ? {} : { items: closed(items) }),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(closed) }),
  }
}
