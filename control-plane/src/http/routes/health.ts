// GET /health of the control plane itself, and liveness for the supervisor.
import { internalPaths } from '@tenantry/contract'
import { Type } from 'typebox'
import type { Api } from '../api.ts'
import type { ApiDeps } from '../deps.ts'

const Body = Type.Object({ status: Type.Enum(['healthy', 'unhealthy']), observed_at: Type.String() })

export function addHealthRoutes(app: Api, deps: ApiDeps): void {
  app.get(
    '/health',
    { config: { scopes: 'public' }, schema: { summary: 'Is the control plane well?', tags: ['health'], response: { 200: Body, 503: Body } } },
    async (_request, reply) => {
      const healthy = await deps.ping()
      const body = { status: healthy ? ('healthy' as const) : ('unhealthy' as const), observed_at: deps.now().toISOString() }
      return reply.status(healthy ? 200 : 503).send(body)
    },
  )
  app.get(internalPaths.live, { config: { scopes: 'public' }, schema: { hide: true } }, () => ({ status: 'live' }))
}
