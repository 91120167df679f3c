// Records a replacement of the internal token, while this control plane leads.
import { createHash } from 'node:crypto'
import { acceptedTokens, sentToken, type InternalToken } from '@tenantry/contract'
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeat } from '../platform/repeat.ts'

/** The recorded fingerprint of the internal token. */
export interface InternalTokenRecord {
  /** Returns the fingerprint; undefined before the first one is recorded. */
  read(): Promise<string | undefined>
  /** Records another fingerprint, with an entry of the audit log. @throws LeadershipLost */
  replace(former: string | undefined, current: string, epoch: bigint): Promise<void>
}

interface RecordDeps {
  internalToken: InternalToken
  record: InternalTokenRecord
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

const intervalMilliseconds = 5_000

/** Creates the job, which records the token when this control plane no longer accepts the recorded one. */
export function recordInternalToken({ internalToken, record, clock, log }: RecordDeps) {
  const work = async (epoch: bigint): Promise<number> => {
    const recorded = await record.read()
    if (recorded !== undefined && acceptedTokens(internalToken).map(fingerprint).includes(recorded))
      return intervalMilliseconds
    const current = fingerprint(sentToken(internalToken))
    await record.replace(recorded, current, epoch)
    if (recorded !== undefined)
      log.info({ internalToken: current, former: recorded }, 'The internal token was replaced.')
    return intervalMilliseconds
  }
  return ({ epoch, lost }: Leadership): Promise<void> =>
    repeat(
      {
        clock,
        work: () => work(epoch),
        onError: (error) => log.warn({ err: error }, 'The internal token could not be recorded. It is tried again.'),
      },
      lost,
    )
}

/** Returns the first part of a token's SHA-256. A token is too random to be guessed from it. */
function fingerprint(token: string): string {
  return createHash('sha256').update(token).digest('hex').slice(0, 16)
}
