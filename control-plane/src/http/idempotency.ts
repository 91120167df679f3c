// `Idempotency-Key`: the work is done once, and a repeat gets what was kept of the first answer.
import type { FastifyReply } from 'fastify'
import type { WriteContext } from '../tenants/tenant-store.ts'
import type { ApiDeps } from './deps.ts'

/** @throws ControlError IDEMPOTENCY_MISMATCH, and what the work throws; then the key is not used up */
export async function answerOnce<Answer>(deps: Pick<ApiDeps, 'tenants'>, context: WriteContext, reply: FastifyReply, work: () => Promise<Answer>): Promise<Answer> {
  const replayed = await deps.tenants.replay(context)
  if (replayed === undefined) return work()
  reply.header('idempotency-replayed', 'true')
  // What was kept is what was sent before.
  return replayed as Answer
}
