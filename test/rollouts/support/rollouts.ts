// Sets up rollouts on a real control database, with an engine that has images and tenants that are healthy or not.
import type { Test } from 'tap'
import type { TenantHealth } from '@tenantry/contract'
import type { HostImage } from '#control-plane/engines/container-host.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import { createRecordWrite, type RecordedWrite } from '#control-plane/platform/recorded-write.ts'
import type { NewRollout } from '#control-plane/rollouts/rollout.ts'
import { createRolloutController } from '#control-plane/rollouts/jobs.ts'
import { createRolloutLedger, type RolloutLedger } from '#control-plane/rollouts/store-ledger.ts'
import { createRolloutStore } from '#control-plane/rollouts/store.ts'
import { oldImages, startPlane } from '#test/support/control-plane/plane.ts'

export const newImage = 'sha256:runtime-new'
export const badImage = 'sha256:runtime-bad'
export const newPostgres = 'sha256:postgres-new'

export async function openRollouts(t: Test) {
  const plane = await startPlane(t)
  const { database, clock } = plane
  const store = createRolloutStore({ database, now: clock.now })
  const record = createRecordWrite(database, clock.now)
  const ledger = createRolloutLedger(database, clock.now)
  const { signal } = new AbortController()
  const asOperator = <T>(work: (write: RecordedWrite) => Promise<T>) => record({ keyId: 'system' }, work)
  const cancel = (id: string) => asOperator((write) => store.cancel(id, write))

  /** Tenants whose runtime reports `unhealthy` with any image but the old one. */
  const unhealthyTenants = new Set<string>()
  const probe = {
    async tenantHealth(_url: string, id: string): Promise<TenantHealth | undefined> {
      const { generation, runtime_image: image } = await plane.tenant(id)
      const status = image !== oldImages.runtime && unhealthyTenants.has(id) ? 'unhealthy' : 'healthy'
      const component = { status, observed_at: clock.now().toISOString() } as const
      return {
        tenant_id: id,
        generation: Number(generation),
        status,
        components: { database: component, storage: component, functions: component },
      }
    },
  }

  /** The component of each image on the engine, by image ID. */
  const components = new Map<string, string | undefined>()
  const engine = {
    image(id: string): Promise<HostImage> {
      if (components.has(id)) return Promise.resolve({ id, component: components.get(id) })
      return Promise.reject(new EngineError('IMAGE_MISSING', `the image "${id}" is not there`))
    },
  }
  for (const id of [newImage, badImage]) components.set(id, 'runtime')
  components.set(newPostgres, 'postgres')

  const controllerOf = (of: RolloutLedger, epoch = plane.epoch) =>
    createRolloutController(
      {
        ledger: of,
        regions: new Map([[plane.region().id, { engine, runtimeUrls: () => ['http://gateway'] }]]),
        probe,
        clock,
        log: plane.log,
      },
      epoch,
    )

  const begin = (more: Partial<NewRollout> = {}) => {
    const rollout = {
      region: plane.region().id,
      component: 'runtime',
      image: 'tenantry/tenant-runtime:new',
      imageId: newImage,
      canary: undefined,
      waveSize: 4,
      soakSeconds: 10,
      deadlineSeconds: 60,
      ...more,
    } as const
    return asOperator((write) => store.create(rollout, write))
  }

  /** Polls the controller, settles the tenants, and moves the clock by one second. */
  const runSecond = async (controller: ReturnType<typeof controllerOf>, bad?: string) => {
    await controller.poll(signal)
    await plane.settle(bad)
    clock.pass(1)
  }

  const finish = async (id: string, bad?: string) => {
    const controller = controllerOf(ledger)
    for (let seconds = 0; seconds < 600; seconds++) {
      const rollout = await store.get(id)
      if (rollout?.finishedAt !== undefined) {
        await plane.settle(bad)
        return rollout
      }
      await runSecond(controller, bad)
    }
    throw new Error('the rollout did not end')
  }

  const images = async () =>
    Object.fromEntries(
      (
        await plane.sql('select id, runtime_image, postgres_image from tenants where region_id = $1', [
          plane.region().id,
        ])
      ).map((row) => [String(row['id']), `${String(row['runtime_image'])} ${String(row['postgres_image'])}`]),
    )
  const allHave = async (t: Test, runtime: string, what: string) =>
    t.same([...new Set(Object.values(await images()))], [`${runtime} ${oldImages.postgres}`], what)
  const addTenants = async (count: number) => {
    const ids: string[] = []
    for (let made = 0; made < count; made++) ids.push(await plane.addTenant())
    return ids
  }

  return {
    plane,
    clock,
    store,
    ledger,
    signal,
    cancel,
    unhealthyTenants,
    components,
    controllerOf,
    begin,
    runSecond,
    finish,
    images,
    allHave,
    addTenants,
  }
}
