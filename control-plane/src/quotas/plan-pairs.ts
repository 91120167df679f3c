// Reads settings that state two numbers for each plan. Pure.

const entry = /^([A-Za-z][A-Za-z0-9_-]*)=(?:([1-9][0-9]*)\/([1-9][0-9]*)|none)$/

interface PairSetting<T> {
  /** The name of the setting. */
  name: string
  /** The form of the two numbers, for errors. */
  form: string
  /** The values of plans that the setting does not name. */
  defaults: Readonly<Record<string, T | null>>
  /** The greatest first and second number. */
  max: readonly [number, number]
  from: (first: number, second: number) => T
}

/**
 * Reads a setting such as `Free=50/200,Pro=none`, where `none` is unlimited.
 * @throws Error that names the part that is wrong
 */
export function readPlanPairs<T>(
  text: string,
  { name, form, defaults, max, from }: PairSetting<T>,
): Readonly<Record<string, T | null>> {
  const own = text
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part): [string, T | null] => {
      const [whole, plan, first, second] = entry.exec(part.trim()) ?? []
      if (whole === undefined || plan === undefined || Number(first) > max[0] || Number(second) > max[1])
        throw new Error(`${name}: "${part.trim()}" is not PLAN=${form} or PLAN=none`)
      if (!(plan in defaults))
        throw new Error(`${name}: unknown plan "${plan}". Allowed: ${Object.keys(defaults).join(', ')}`)
      return [plan, first === undefined ? null : from(Number(first), Number(second))]
    })
  return { ...defaults, ...Object.fromEntries(own) }
}
