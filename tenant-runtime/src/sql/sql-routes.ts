// POST /sql/v1: one statement of SQL, with the rights of the tenant's own SQL login, for its service role.
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { RuntimeError } from '../errors.ts'
import { runSql } from './run-sql.ts'

/** Maximum number of a tenant's statements that run at the same time. Those of other tenants do not count. */
const maxOfTenant = 2
const maxTextLength = 100_000
const maxRows = 1_000
const maxTimeoutSeconds = 30

/** Adds the route. @param elapsed returns monotonic milliseconds */
export function addSqlRoutes(plain: FastifyInstance, elapsed: () => number): void {
  const app = plain.withTypeProvider<TypeBoxTypeProvider>()
  const running = new Map<string, number>()

  app.post(
    '/sql/v1',
    {
      config: { access: 'service', makesResult: true },
      schema: {
        body: Type.Object(
          {
            query: Type.String({ minLength: 1, maxLength: maxTextLength }),
            /** By default, the transaction only reads. */
            write: Type.Optional(Type.Boolean()),
            max_rows: Type.Optional(Type.Integer({ minimum: 1, maximum: maxRows })),
            timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: maxTimeoutSeconds })),
          },
          { additionalProperties: false },
        ),
      },
    },
    async (request, reply) => {
      const { tenant, body } = request
      if (body.query.includes('\0')) throw new RuntimeError('BAD_REQUEST', 'Field "query" must not contain NUL.')
      const own = running.get(tenant.id) ?? 0
      if (own >= maxOfTenant) {
        const message = `At most ${maxOfTenant} statements of a tenant run at the same time.`
        throw new RuntimeError('TOO_MANY_QUERIES', message, { retryAfter: 1 })
      }
      running.set(tenant.id, own + 1)
      const leaving = new AbortController()
      const onClose = () => leaving.abort()
      reply.raw.once('close', onClose)
      const begun = elapsed()
      try {
        const { columns, rows, tag, isTruncated } = await runSql(tenant, {
          text: body.query,
          writes: body.write ?? false,
          maxRows: body.max_rows ?? maxRows,
          timeoutMilliseconds: 1_000 * (body.timeout_seconds ?? 10),
          signal: leaving.signal,
        })
        return await reply.header('cache-control', 'no-store').send({
          columns,
          rows,
          command: tag === '' ? null : tag,
          truncated: isTruncated,
          duration_ms: Math.round(elapsed() - begun),
        })
      } finally {
        reply.raw.off('close', onClose)
        const remaining = (running.get(tenant.id) ?? 1) - 1
        if (remaining === 0) running.delete(tenant.id)
        else running.set(tenant.id, remaining)
      }
    },
  )
}
