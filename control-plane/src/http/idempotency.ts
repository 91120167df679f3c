// `Idempotency-Key`: stores a response in the transaction of its write, and returns it to a repeated request.
import type { FastifyReply } from 'fastify'
import { StoredResponse, type StoredResponses } from '../platform/stored-responses.ts'
import type { RecordedWrite, RecordWrite } from '../platform/recorded-write.ts'
import type { WriteContext } from './parameters.ts'

/** Dependencies of routes that write. */
export interface WriteDeps {
  record: RecordWrite
}

/** Dependencies of routes that accept an `Idempotency-Key`. */
export interface ResponseDeps extends WriteDeps {
  responses: StoredResponses
}

/**
 * Writes, and stores in the same transaction the response that `present` creates, for a repeated request after a crash.
 */
type RecordResponse<Reply> = <Made>(
  write: (write: RecordedWrite) => Promise<Made>,
  present: (made: Made) => Reply,
) => Promise<Made>

/**
 * Handles a request once for each Idempotency-Key. A repeated request receives the first response.
 * @param work checks the request, writes once through its argument, and returns the response, which then replaces the
 * stored one
 * @throws ControlError IDEMPOTENCY_MISMATCH, and the errors of the work, after which the key is unused
 */
export async function respondOnce<Reply>(
  { record, responses }: ResponseDeps,
  { actor, idempotencyKey }: WriteContext,
  reply: FastifyReply,
  work: (record: RecordResponse<Reply>) => Promise<Reply>,
): Promise<Reply> {
  if (idempotencyKey === undefined) return work((write) => record(actor, write))
  // The stored response is the one that was sent before.
  const replay = (response: unknown) => {
    reply.header('idempotency-replayed', 'true')
    return response as Reply
  }
  const replayed = await responses.find(idempotencyKey)
  if (replayed !== undefined) return replay(replayed)
  let storedText: string | undefined
  try {
    const response = await work((write, present) =>
      record(actor, async (recorded) => {
        await responses.claim(recorded.transaction, idempotencyKey)
        const made = await write(recorded)
        const first = present(made)
        await responses.store(idempotencyKey, first, recorded.transaction)
        storedText = JSON.stringify(first)
        return made
      }),
    )
    if (storedText !== undefined && storedText !== JSON.stringify(response))
      await responses.store(idempotencyKey, response)
    return response
  } catch (error) {
    if (error instanceof StoredResponse) return replay(error.response)
    throw error
  }
}
