// Seals all values again with the newest master key, while this control plane leads.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeat } from '../platform/repeat.ts'
import type { Seal } from '../platform/seal.ts'
import type { SealedValues } from './store-sealed-values.ts'

interface ResealDeps {
  values: SealedValues
  seal: Pick<Seal, 'masterKeyId' | 'masterKeyIds'>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

/** While the file has former keys, another control plane may still seal with one of them. */
const intervalMilliseconds = 60_000
const retryMilliseconds = 500
const maxListed = 20

/** Creates the job, which works only while the file has former master keys. */
export function reseal({ values, seal, clock, log }: ResealDeps) {
  const work = async (epoch: bigint): Promise<number> => {
    const recorded = await values.masterKeyId()
    if (seal.masterKeyIds.length === 1) {
      if (recorded !== seal.masterKeyId) await values.recordSealed(recorded, epoch)
      return intervalMilliseconds
    }
    const { renewed, skipped, unreadable } = await values.reseal(epoch)
    if (skipped > 0) return retryMilliseconds
    if (unreadable.length > 0)
      log.warn(
        { values: unreadable.slice(0, maxListed), count: unreadable.length },
        'Some sealed values open with none of the master keys, and stay as they are.',
      )
    if (recorded !== seal.masterKeyId) await values.recordSealed(recorded, epoch)
    if (renewed > 0 || recorded !== seal.masterKeyId)
      log.info({ masterKey: seal.masterKeyId, renewed }, 'All secrets are sealed with the newest master key.')
    return intervalMilliseconds
  }
  return ({ epoch, lost }: Leadership): Promise<void> =>
    repeat(
      {
        clock,
        work: () => work(epoch),
        onError: (error) =>
          log.warn({ err: error }, 'The secrets could not be sealed with the newest master key. It is tried again.'),
      },
      lost,
    )
}
