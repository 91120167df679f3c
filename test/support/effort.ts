// Sets the length and the seed of all long runs. `npm test` uses small counts, `npm run soak` sets TENANTRY_SOAK=full, and
// TENANTRY_SEED replays a run.

const full = process.env['TENANTRY_SOAK'] === 'full'

/** Seed of random runs. Every run that uses it prints it, so that a failure can be replayed. */
export const seed = Number(process.env['TENANTRY_SEED'] ?? (full ? Math.floor(Math.random() * 2 ** 31) : 20_260_101))

/** Returns the number of repetitions: `small` in `npm test`, `full` in `npm run soak`. */
export function effort(counts: { small: number; full: number }): number {
  return full ? counts.full : counts.small
}
