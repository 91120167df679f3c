// Requests the verification of each tenant's newest backup on a schedule, while this control plane leads. The job of
// `jobs.ts` carries it out.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeat } from '../platform/repeat.ts'
import { planProofs } from './proof-plan.ts'
import type { BackupAges, ProofLedger } from './store-proofs.ts'

/** The dependencies of the job that requests proofs of backups. */
export interface ProofJobDeps {
  ledger: ProofLedger
  /** The days within which each tenant's newest backup is verified once; 0 for never. */
  periodDays: number
  clock: Clock
  log: Pick<Log, 'warn'>
  /** Receives the greatest ages of tenants' newest backups. */
  measure: (ages: BackupAges) => void
}

const pollMs = 10_000
const dayMs = 86_400_000

/** Creates the job, which runs while this control plane leads. */
export function proveBackups(deps: ProofJobDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log } = deps
  return ({ epoch, lost }) =>
    repeat(
      {
        clock,
        work: async () => {
          await requestProofs(deps, epoch)
          return pollMs
        },
        onError: (error) =>
          log.warn({ err: error }, 'The proofs of backups could not be planned. The planning is retried.'),
      },
      lost,
    )
}

/** Requests the proofs that are due, once. */
export async function requestProofs(
  { ledger, periodDays, clock, measure }: Omit<ProofJobDeps, 'log'>,
  epoch: bigint,
): Promise<void> {
  measure(await ledger.ages())
  if (periodDays === 0) return
  await ledger.follow(epoch)
  const [tenants, busyRegions] = await Promise.all([ledger.provable(), ledger.busyRegions()])
  const { skip, prove } = planProofs(tenants, periodDays * dayMs, busyRegions, clock.now())
  for (const { id } of skip) await ledger.skip(id, epoch)
  for (const { id, newest } of prove) await ledger.prove(id, newest.id, epoch)
}
