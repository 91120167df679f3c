// Tenants of both kinds that serve on several hosts, with clients: those with clusters of their own, and those that share the region's.
import type { Test } from 'tap'
import { effort } from '#test/support/effort.ts'
import type { SwarmPlatform } from '#test/support/swarm-platform.ts'
import { createTenant, startClients, type CreatedTenant, type LoadedTenant } from './loaded-tenant.ts'

/** The number of tenants of each kind. Set `TENANTRY_TENANTS` for another one. */
export const tenantsOfKind = Number(process.env['TENANTRY_TENANTS'] ?? effort({ small: 1, full: 10 }))

export interface ManyTenants {
  owning: LoadedTenant[]
  sharing: LoadedTenant[]
  all: LoadedTenant[]
  /** IDs of all clusters, with the shared one as the last. */
  clusters: string[]
  /** Waits until all members of each cluster follow its primary. */
  untilComplete(): Promise<void>
  /** Begins the measurement of pauses again. */
  resetPauses(): void
  /** Stops the clients with the checks of `LoadedTenant.finish`, deletes the tenants, and checks that nothing of them remains. */
  finish(t: Test): Promise<void>
}

/** Creates the tenants and starts their clients. @param waitMs milliseconds after each row and each request of a client */
export async function startManyTenants(
  t: Test,
  platform: SwarmPlatform,
  ofEachKind: number,
  waitMs: number,
): Promise<ManyTenants> {
  const created: Record<'owning' | 'sharing', CreatedTenant[]> = { owning: [], sharing: [] }
  for (let number = 1; number <= ofEachKind; number++) {
    created.owning.push(await createTenant(t, platform, `own-${number}`, 'cluster-per-tenant', true))
    created.sharing.push(await createTenant(t, platform, `shared-${number}`, 'schema-per-tenant', true))
  }
  const load = (tenants: readonly CreatedTenant[]) =>
    Promise.all(tenants.map((tenant) => startClients(t, platform, tenant, waitMs)))
  const [owning, sharing] = [await load(created.owning), await load(created.sharing)]
  const all = [...owning, ...sharing]
  const clusters = [...owning.map(({ id }) => id), platform.sharedCluster]
  const { hosts } = platform.lab
  const untilComplete = async () => {
    for (const cluster of clusters) await platform.untilComplete(cluster)
  }
  return {
    owning,
    sharing,
    all,
    clusters,
    untilComplete,
    resetPauses() {
      for (const { writer, takeMaxReadPause } of all) {
        writer.takeMaxPause()
        takeMaxReadPause()
      }
    },
    async finish(t) {
      await untilComplete()
      for (const { untilReady, finish } of all) {
        await untilReady()
        await finish(t)
      }
      for (const { id } of all) t.match(await platform.call('DELETE', `/v1/tenants/${id}?purge=true`), { status: 202 })
      for (const { id } of all) await platform.until(id, ({ code }) => code === 'TENANT_NOT_FOUND', 240)
      const remaining = async (id: string) =>
        (
          await Promise.all(hosts.flatMap((host) => [platform.containersOf(host, id), platform.volumesOf(host, id)]))
        ).flat()
      t.same((await Promise.all(all.map(({ id }) => remaining(id)))).flat(), [], 'nothing of the tenants remains')
      const keys = await platform.storedKeys()
      t.same(
        keys.filter((key) => all.some(({ id }) => key.includes(id))),
        [],
        'and none of their files',
      )
    },
  }
}
