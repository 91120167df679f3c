// Which of a tenant's own runtimes receive its manifest, while those of a single database and of a cluster run.
import t from 'tap'
import type { Route, TenantManifest } from '@tenantry/contract'
import { createWatches, ownKindOf, type Published, type WatchKind } from '#control-plane/watch/watches.ts'
import { until } from '#test/support/until.ts'

const tenantId = 't_0123456789abcdef0123'
const entry = (more: Partial<Published>): Published => ({
  tenantId,
  region: 'north',
  route: { tenant_id: tenantId, dedicated: true } as Route,
  manifest: { tenant_id: tenantId } as TenantManifest,
  ...more,
})

/** Publishes entries one after the other. @returns the types of the lines that a watch of each kind has received */
async function received(kinds: readonly WatchKind[], entries: readonly Published[]): Promise<string[][]> {
  let present: Published | undefined
  const source = {
    async *all() {
      if (present !== undefined) yield present
    },
    some: () => Promise.resolve(present === undefined ? [] : [present]),
  }
  const none = { all: async function* () {}, some: () => Promise.resolve([]) }
  const watches = createWatches(
    source,
    none,
    ['north'],
    () => new Date(),
    (error) => t.error(error),
  )
  const lines = kinds.map((): string[] => [])
  for (const [at, kind] of kinds.entries())
    await watches.tenants.watch(kind, (text) => (lines[at] ?? []).push(text) > 0, {
      isWatched: (id) => id === tenantId,
    })
  let routes = 0
  await watches.tenants.watch('route', () => ++routes > 0)
  for (const one of entries) {
    const before = routes
    present = one
    watches.onChange({ kind: 'published', subject: tenantId })
    await until(() => routes > before, 'the change')
  }
  return lines.map((texts) =>
    texts.flatMap((text) => {
      const { type } = JSON.parse(text) as { type: string }
      return type === 'synced' ? [] : [type]
    }),
  )
}

const [single, cluster, earlier] = [ownKindOf(0), ownKindOf(1), ownKindOf(undefined)]

t.test('On several hosts, a manifest leaves the runtime of a database for those of a cluster', async (t) => {
  t.same(
    await received([single, cluster, earlier, 'manifest'], [entry({ siblings: 0 }), entry({ siblings: 1 })]),
    [['put', 'remove'], ['put'], ['put', 'put'], []],
    'a runtime of an earlier version does not report its siblings',
  )
})

t.test('On one host, the runtimes of both have the same files, and receive it', async (t) => {
  t.same(await received([single, cluster, earlier], [entry({})]), [['put'], ['put'], ['put']])
})

t.test('A tenant that shares the runtimes of its region has none of its own', async (t) => {
  const shared = entry({ route: { tenant_id: tenantId, dedicated: false } as Route })
  const kinds = [single, cluster, earlier, 'manifest', 'manifest of north'] as const
  t.same(await received(kinds, [shared]), [[], [], [], ['put'], ['put']])
})
