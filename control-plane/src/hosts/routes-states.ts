// POST /v1/regions/{id}/hosts/{host}/drain, …/activate and …/lost: what a host of several may run.
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { NoBody, NoQuery, writeContext } from '../http/parameters.ts'
import type { HostState, PlacementStore } from '../placement/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { RecordWrite } from '../platform/recorded-write.ts'
import { regionInPath, type RegionConfig } from '../regions/index.ts'
import { hostsOf } from '../stacks/index.ts'

interface HostStateRoutesDeps {
  regions: readonly RegionConfig[]
  placements: Pick<PlacementStore, 'setState'>
  record: RecordWrite
}

const changes: readonly { verb: string; state: HostState; summary: string; description: string }[] = [
  {
    verb: 'drain',
    state: 'draining',
    summary: 'Move the services of clusters away from a host',
    description:
      'The services move one by one, a primary after a switchover. New services are not put there. Tenants with a single database ' +
      'stay, because their data is on the host.',
  },
  {
    verb: 'lost',
    state: 'lost',
    summary: 'Give up a host that does not respond',
    description:
      'The services of clusters are created on other hosts, and members copy their data from the primary. Without this request, a host ' +
      'counts as lost when it has not responded for the time in the settings of the region.',
  },
  {
    verb: 'activate',
    state: 'active',
    summary: 'Use a host again',
    description: 'Services that were replaced meanwhile are removed from it. Others continue.',
  },
]

/** Adds the routes that change the state of a host. */
export function addHostStateRoutes(app: Api, { regions, placements, record }: HostStateRoutesDeps): void {
  for (const { verb, state, summary, description } of changes)
    app.post(
      `/v1/regions/:id/hosts/:host/${verb}`,
      {
        config: { scopes: ['admin'] },
        schema: {
          summary,
          description,
          tags: ['plans'],
          params: Type.Object({ id: Type.String(), host: Type.String() }),
          querystring: NoQuery,
          body: NoBody,
          response: { 200: Type.Object({ id: Type.String(), use: Type.String() }) },
        },
      },
      async (request) => {
        const { actor } = writeContext(request)
        const { id, host } = request.params
        const { docker } = regionInPath(regions, id)
        const hosts = docker === undefined ? [] : hostsOf(docker)
        if (!hosts.some((one) => one.id === host))
          throw new ControlError('HOST_NOT_FOUND', `The region has no host "${host.slice(0, 100)}" of several.`)
        await record(actor, (write) => placements.setState(id, host, state, write))
        return { id: `${id}.${host}`, use: state }
      },
    )
}
