// Finds the first difference between two JSON values. Pure.

/** Returns the path of the first difference, for example `HostConfig.Privileged`; undefined if the values are equal. */
export function firstDifference(given: unknown, wanted: unknown, path = ''): string | undefined {
  if (Object.is(given, wanted)) return undefined
  if (!isContainer(given) || !isContainer(wanted) || Array.isArray(given) !== Array.isArray(wanted))
    return path === '' ? 'the body' : path
  for (const key of new Set([...Object.keys(given), ...Object.keys(wanted)])) {
    const memberPath = path === '' ? key : `${path}.${key}`
    if (!Object.hasOwn(given, key) || !Object.hasOwn(wanted, key)) return memberPath
    const found = firstDifference(given[key], wanted[key], memberPath)
    if (found !== undefined) return found
  }
  return undefined
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
