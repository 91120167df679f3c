// `Idempotency-Key`: the work is done once, and a repeat gets what was kept of the first answer.
import type { FastifyReply } from 'fastify'
import type { WriteContext } from '../platform/write-context.ts'
import type { KeptAnswers } from '../platform/kept-answers.ts'

export interface AnswerDeps {
  answers: KeptAnswers
}

/** @throws ControlError IDEMPOTENCY_MISMATCH, and what the work throws; then the key is not used up */
export async function answerOnce<Answer>(
  { answers }: AnswerDeps,
  context: WriteContext,
  reply: FastifyReply,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const replayed = await answers.replay(context)
  if (replayed === undefined) return work()
  reply.header('idempotency-replayed', 'true')
  // What was kept is what was sent before.
  return replayed as Answer
}
