// JSON.rawJSON (ECMAScript 2026), which TypeScript's libraries do not declare yet.
interface RawJson {
  readonly rawJSON: string
}

interface JSON {
  /** Returns a value that `JSON.stringify` writes as this text. */
  rawJSON(text: string): RawJson
  isRawJSON(value: unknown): value is RawJson
  parse(
    text: string,
    reviver: (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown,
  ): unknown
}
