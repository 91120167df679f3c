// Which of many leases or slots a call to the control plane reports, if it cannot report all. Pure.

interface Reported {
  waiters: { size: number }
  /** `unknown` before the first grant. */
  state: string
}

/**
 * Returns at most `max` of those that are due: first those for which requests wait, then the newest of those without a
 * grant, of which a start has one for each tenant, up to half of the call, and then the others in their order. So a new
 * tenant does not wait for the leases of all others.
 */
export function firstToReport<One extends Reported>(due: readonly One[], max: number): readonly One[] {
  if (due.length <= max) return due
  const awaited = due.filter(({ waiters }) => waiters.size > 0)
  const newest = due.filter(({ state }) => state === 'unknown').slice(-max / 2)
  return [...new Set([...awaited, ...newest.toReversed(), ...due])].slice(0, max)
}
