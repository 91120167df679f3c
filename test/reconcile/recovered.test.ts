// The reconciler with a control database that was restored on another host: the volumes and images that it names may be gone.
import t from 'tap'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import { allocateServices } from '#control-plane/reconcile/converge-services.ts'
import { Observations } from '#control-plane/reconcile/observations.ts'
import { unobservedHome } from '#control-plane/reconcile/reconcile-store.ts'
import type { Reconciliation } from '#control-plane/reconcile/reconciliation.ts'
import { createRegion } from '#control-plane/reconcile/region.ts'
import { createReconcileStore } from '#control-plane/reconcile/store.ts'
import { FakeEngine } from '#test/support/control-plane/fake-engine.ts'
import { oldImages, startPlane } from '#test/support/control-plane/plane.ts'

const plane = await startPlane(t)
const store = createReconcileStore(plane.database, plane.seal, plane.clock.now)
const { epoch } = plane
const signal = AbortSignal.timeout(60_000)

t.test('the volumes of a region may be created again until a home was observed in them', async (t) => {
  const { id } = plane.region()
  const columns = { isolation: 'schema-per-tenant', postgres_image: null, runtime_image: null }
  await plane.addTenant({ ...columns, home_version: null })
  const lost = await plane.addTenant({ ...columns, home_version: unobservedHome })
  t.equal(await store.hasHomes(id), false)
  await store.recordPublished(lost, { homeVersion: 'home', routePhase: 'ready' }, epoch)
  t.equal(await store.hasHomes(id), true)
})

t.test("the volumes of a region's etcd may be created again until a cluster was observed", async (t) => {
  const { id } = plane.region()
  const columns = { isolation: 'cluster-per-tenant' }
  await plane.addTenant({ ...columns, home_version: null })
  const lost = await plane.addTenant({ ...columns, home_version: unobservedHome })
  t.equal(await store.hasClusters(id), false)
  await store.recordPublished(lost, { homeVersion: 'home', routePhase: 'ready' }, epoch)
  t.equal(await store.hasClusters(id), true)
})

t.test('a tenant whose images the host lacks gets those of new tenants, and keeps the others', async (t) => {
  class HostOfOneImage extends FakeEngine {
    override async image(reference: string) {
      if (reference === oldImages.postgres)
        throw new EngineError('IMAGE_MISSING', 'The image does not exist on the host.')
      if (reference === oldImages.runtime) return { id: reference, component: 'runtime' }
      return super.image(reference)
    }
  }
  const config = plane.region()
  const engine = new HostOfOneImage()
  const region = createRegion({
    config,
    engine,
    homes: new HomeDatabases(config.postgres_url, [], 1_000),
    migrations: [],
    maxObjects: 1_000,
    internalToken: 'token',
    clock: plane.clock,
  })
  const run: Partial<Reconciliation> = {
    store,
    region,
    epoch,
    failpoint: () => Promise.resolve(),
    observations: new Observations(plane.clock),
    rejectedSubnets: new Map(),
  }
  const allocated = async (id: string) => {
    const snapshot = await store.snapshot(id)
    if (snapshot === undefined) throw new Error('There is no tenant.')
    const { images } = await allocateServices(snapshot, run as Reconciliation, signal)
    const { postgres_image: postgres, runtime_image: runtime } = await plane.tenant(id)
    t.same({ postgres, runtime }, images, 'the images are recorded')
    return images
  }
  const { id: present } = await engine.image('tenantry/postgres')
  const recovered = await plane.addTenant({ home_version: unobservedHome })
  t.same(await allocated(recovered), { postgres: present, runtime: oldImages.runtime })
  t.same(await allocated(await plane.addTenant({})), oldImages, 'the images of other tenants stay')
  await store.replaceImages(recovered, { postgres: 'sha256:other', runtime: 'sha256:other' }, epoch)
  await store.recordPublished(recovered, { homeVersion: 'home', routePhase: 'ready' }, epoch)
  await store.replaceImages(recovered, oldImages, epoch)
  t.match(await plane.tenant(recovered), { postgres_image: 'sha256:other' }, 'images of an observed home stay')
})
