// POST /v1/regions/{id}/superuser-password/rotate: a new password of the superuser of a region's shared Postgres.
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { NoBody, NoQuery, writeContext } from '../http/parameters.ts'
import { newSecret } from '../keys/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { PasswordRequests } from './store-regions.ts'

/** The dependencies of the route. */
export interface SuperuserPasswordRoutesDeps extends ResponseDeps {
  regions: readonly RegionConfig[]
  superuserPasswords: PasswordRequests
}

const path = '/v1/regions/:id/superuser-password/rotate'

/** Adds the route. */
export function addSuperuserPasswordRoutes(app: Api, deps: SuperuserPasswordRoutesDeps): void {
  app.post(
    path,
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: "Create a new password for the superuser of a region's shared Postgres",
        description:
          'Only the control plane logs in as superuser, and no response contains the password. It is set within seconds: ' +
          'then the audit log has an entry `superuser_password.rotate` of the region, and the old password is dead. ' +
          'A request during a replacement begins no other.',
        tags: ['plans'],
        params: Type.Object({ id: Type.String() }),
        querystring: NoQuery,
        body: NoBody,
        response: { 202: Type.Object({ region: Type.String(), state: Type.Literal('in_progress') }) },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      const { id } = request.params
      const region = deps.regions.find((one) => one.id === id)
      if (region === undefined) throw new ControlError('NOT_FOUND', `There is no region "${id.slice(0, 100)}".`)
      if (region.docker === undefined)
        throw new ControlError(
          'NOT_CREATED_BY_CONTROL_PLANE',
          `The control plane has not created the Postgres of the region "${id}". Replace the password in its file.`,
        )
      reply.status(202)
      const response = { region: id, state: 'in_progress' as const }
      return respondOnce(deps, context, reply, async (record) => {
        await record(
          (write) => deps.superuserPasswords.request(id, newSecret(), write),
          () => response,
        )
        return response
      })
    },
  )
}
