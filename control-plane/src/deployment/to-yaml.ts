// Writes a value as YAML for Compose. All texts are quoted, so that none has another type. Pure.

/** A value of a Compose file. */
export type Yaml = string | number | boolean | readonly Yaml[] | { readonly [key: string]: Yaml | undefined }

/** Returns the lines of a value. Keys without a value are omitted. */
export function toYaml(value: Yaml): string {
  return `${linesOf(value).join('\n')}\n`
}

function linesOf(value: Yaml): string[] {
  if (isList(value)) return value.flatMap((one) => nested('- ', '  ', one))
  if (typeof value !== 'object') return [scalar(value)]
  return Object.entries(value).flatMap(([key, one]) => {
    if (one === undefined) return []
    const isInline = typeof one !== 'object' || isEmpty(one)
    return isInline ? [`${key}: ${inline(one)}`] : [`${key}:`, ...linesOf(one).map((line) => `  ${line}`)]
  })
}

function nested(first: string, others: string, value: Yaml): string[] {
  if (typeof value !== 'object' || isEmpty(value)) return [`${first}${inline(value)}`]
  return linesOf(value).map((line, at) => `${at === 0 ? first : others}${line}`)
}

function isList(value: Yaml): value is readonly Yaml[] {
  return Array.isArray(value)
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0
}

function inline(value: Yaml): string {
  if (typeof value === 'object') return Array.isArray(value) ? '[]' : '{}'
  return scalar(value)
}

/** Returns a scalar. Compose replaces variables after a single dollar sign. */
function scalar(value: string | number | boolean): string {
  return typeof value === 'string' ? JSON.stringify(value.replaceAll('$', '$$$$')) : String(value)
}
