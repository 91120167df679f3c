// How long the long runs are, and with what seed: one setting for all of them.
// `npm test` is small; `npm run soak` sets TENANTRY_SOAK=full; TENANTRY_SEED replays a run.

const full = process.env['TENANTRY_SOAK'] === 'full'

/** Printed by every run that uses it, so that a failure can be replayed. */
export const seed = Number(process.env['TENANTRY_SEED'] ?? (full ? Math.floor(Math.random() * 2 ** 31) : 20_260_101))

/** How many times: `small` in `npm test`, `full` in `npm run soak`. */
export function effort(counts: { small: number; full: number }): number {
  return full ? counts.full : counts.small
}
