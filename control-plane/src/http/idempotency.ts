// `Idempotency-Key`: the one place that keeps an answer in the transaction of its write, and gives it again to a repeat.
import type { FastifyReply } from 'fastify'
import { StoredResponse, type StoredResponses } from '../platform/stored-responses.ts'
import type { RecordedWrite, RecordWrite } from '../platform/recorded-write.ts'
import type { WriteContext } from './parameters.ts'

/** What routes that write are given. */
export interface WriteDeps {
  record: RecordWrite
}

/** What routes that take an `Idempotency-Key` are given. */
export interface ResponseDeps extends WriteDeps {
  responses: StoredResponses
}

/** Writes, and keeps in the same transaction what `present` makes of the result: the answer of a repeat after a crash. */
type RecordResponse<Reply> = <Made>(
  write: (write: RecordedWrite) => Promise<Made>,
  present: (made: Made) => Reply,
) => Promise<Made>

/**
 * Does the work of a request once for each Idempotency-Key. A repeat gets the answer of the first request.
 * @param work checks what it must, writes once, through its argument, and returns the answer, which then replaces what was kept
 * @throws ControlError IDEMPOTENCY_MISMATCH, and what the work throws; then the key is not used up
 */
export async function respondOnce<Reply>(
  { record, responses }: ResponseDeps,
  { actor, responseKey }: WriteContext,
  reply: FastifyReply,
  work: (record: RecordResponse<Reply>) => Promise<Reply>,
): Promise<Reply> {
  if (responseKey === undefined) return work((write) => record(actor, write))
  // What was kept is what was sent before.
  const replay = (response: unknown) => {
    reply.header('idempotency-replayed', 'true')
    return response as Reply
  }
  const replayed = await responses.find(responseKey)
  if (replayed !== undefined) return replay(replayed)
  let stored: string | undefined
  try {
    const response = await work((write, present) =>
      record(actor, async (recorded) => {
        await responses.claim(recorded.transaction, responseKey)
        const made = await write(recorded)
        const first = present(made)
        await responses.keep(responseKey, first, recorded.transaction)
        stored = JSON.stringify(first)
        return made
      }),
    )
    if (stored !== undefined && stored !== JSON.stringify(response)) await responses.keep(responseKey, response)
    return response
  } catch (error) {
    if (error instanceof StoredResponse) return replay(error.response)
    throw error
  }
}
