// `Idempotency-Key`: the one place that keeps an answer in the transaction of its write, and gives it again to a repeat.
import type { FastifyReply } from 'fastify'
import { AlreadyAnswered, type KeptAnswers } from '../platform/kept-answers.ts'
import type { RecordedWrite, RecordWrite } from '../platform/recorded-write.ts'
import type { WriteContext } from './parameters.ts'

/** What routes that write are given. */
export interface WriteDeps {
  record: RecordWrite
}

/** What routes that take an `Idempotency-Key` are given. */
export interface AnswerDeps extends WriteDeps {
  answers: KeptAnswers
}

/** Writes, and keeps in the same transaction what `present` makes of the result: the answer of a repeat after a crash. */
type RecordAnswered<Answer> = <Made>(
  write: (write: RecordedWrite) => Promise<Made>,
  present: (made: Made) => Answer,
) => Promise<Made>

/**
 * Does the work of a request once for each Idempotency-Key. A repeat gets the answer of the first request.
 * @param work checks what it must, writes once, through its argument, and returns the answer, which then replaces what was kept
 * @throws ControlError IDEMPOTENCY_MISMATCH, and what the work throws; then the key is not used up
 */
export async function answerOnce<Answer>(
  { record, answers }: AnswerDeps,
  { actor, answerKey }: WriteContext,
  reply: FastifyReply,
  work: (record: RecordAnswered<Answer>) => Promise<Answer>,
): Promise<Answer> {
  if (answerKey === undefined) return work((write) => record(actor, write))
  // What was kept is what was sent before.
  const replay = (answer: unknown) => {
    reply.header('idempotency-replayed', 'true')
    return answer as Answer
  }
  const replayed = await answers.find(answerKey)
  if (replayed !== undefined) return replay(replayed)
  let kept: string | undefined
  try {
    const answer = await work((write, present) =>
      record(actor, async (recorded) => {
        await answers.claim(recorded.transaction, answerKey)
        const made = await write(recorded)
        const first = present(made)
        await answers.keep(answerKey, first, recorded.transaction)
        kept = JSON.stringify(first)
        return made
      }),
    )
    if (kept !== undefined && kept !== JSON.stringify(answer)) await answers.keep(answerKey, answer)
    return answer
  } catch (error) {
    if (error instanceof AlreadyAnswered) return replay(error.answer)
    throw error
  }
}
