// Reads JSON of responses and files whose form is not known in advance.

/** An object of JSON. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a value is an object of JSON. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns an object of JSON. @throws Error that names the source */
export function asObject(value: unknown, source: string): JsonObject {
  if (!isJsonObject(value)) throw new Error(`${source} is not a JSON object.`)
  return value
}

/** Returns a list of JSON objects. @throws Error that names the source */
export function asObjects(value: unknown, source: string): readonly JsonObject[] {
  if (!Array.isArray(value)) throw new Error(`${source} is not a JSON array.`)
  return value.map((item: unknown) => asObject(item, `An item of ${source}`))
}

/** Returns a text or a number as a text, and everything else as JSON. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}
