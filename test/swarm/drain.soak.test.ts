// A host with the primaries of many clusters, and of the one that other tenants share, is drained and used again, under clients of all
// tenants. No read fails, writes are held for moments, and no acknowledged row or file is lost.
import t from 'tap'
import { until } from '#test/support/docker.ts'
import { startSwarmPlatform } from '#test/support/swarm-platform.ts'
import { startManyTenants, tenantsOfKind } from './many-tenants.ts'
import { shown } from './shown.ts'

/** Milliseconds between two requests of a client. */
const waitMs = 1_000

t.test('A host with many tenants is drained', { timeout: 3_600_000 }, async (t) => {
  const platform = await startSwarmPlatform(t)
  const tenants = await startManyTenants(t, platform, tenantsOfKind, waitMs)
  const { owning, sharing, all, clusters } = tenants
  const use = (id: string, verb: string) => platform.call('POST', `/v1/regions/local/hosts/${id}/${verb}`)
  await tenants.untilComplete()

  const { host } = await platform.primaryOf(platform.sharedCluster)
  const primaries = await Promise.all(clusters.map((cluster) => platform.primaryOf(cluster)))
  const moving = primaries.filter((primary) => primary.host === host).length
  tenants.resetPauses()
  const failedBefore = all.map(({ counts }) => counts().retryableReads)
  const begun = performance.now()
  t.match(await use(host.id, 'drain'), { status: 200, body: { use: 'draining' } })
  await until(async () => {
    const found = await Promise.all(owning.map(({ id }) => platform.containersOf(host, id)))
    return found.flat().length === 0 ? true : undefined
  }, 1_800)
  await until(async () => {
    const primary = await platform.primaryOf(platform.sharedCluster)
    return primary.host === host ? undefined : true
  }, 180)
  const seconds = Math.round((performance.now() - begun) / 1000)
  t.comment(`${host.id} with ${moving} of ${clusters.length} primaries was empty after ${seconds} s; pauses in ms:`)
  for (const [kind, ones] of Object.entries({ 'clusters of their own': owning, 'the shared cluster': sharing })) {
    const writes = shown(ones.map(({ writer }) => writer.takeMaxPause()))
    const reads = shown(ones.map(({ takeMaxReadPause }) => takeMaxReadPause().milliseconds))
    t.comment(`  tenants with ${kind}: writes ${writes}; reads ${reads}`)
  }
  t.same(
    all.map(({ counts }) => counts().retryableReads),
    failedBefore,
    'no read failed',
  )

  t.match(await use(host.id, 'activate'), { status: 200, body: { use: 'active' } })
  await tenants.finish(t)
})
