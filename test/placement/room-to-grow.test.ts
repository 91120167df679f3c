// The check whether a cluster has room for a larger plan: of its members, one may leave its host.
import t from 'tap'
import { createRoomCheck, type ChangedTenant, type RoomStore } from '#control-plane/reconcile/region-room.ts'

const members = ['postgres-1', 'postgres-2', 'postgres-3']
const sizes = (memoryBytes: number) => ({
  postgres: { memoryBytes, cpuMillis: 1 },
  runtime: { memoryBytes: 1, cpuMillis: 1 },
})
const changed: ChangedTenant = {
  id: 't_0123456789abcdef0123',
  regionId: 'north',
  isolation: 'cluster-per-tenant',
  before: sizes(1_000),
  sizes: sizes(2_000),
  placement: { 'postgres-1': 'a', 'postgres-2': 'b', 'postgres-3': 'c' },
  reserved: Object.fromEntries(members.map((service) => [service, 1_000])),
}

/** Returns whether there is room, on hosts with this much memory that no tenant reserves. */
function hasRoomToGrow(free: Readonly<Record<string, number>>): Promise<boolean> {
  const room: Partial<RoomStore> = { changed: async () => changed, waiting: async () => [] }
  const { hasRoomToGrow } = createRoomCheck({
    regions: new Map([
      [
        'north',
        {
          spansHosts: true,
          needs: async () => members.map((service) => ({ service, memoryBytes: 2_000 })),
          capacities: async () => Object.entries(free).map(([id, freeBytes]) => ({ id, freeBytes })),
        },
      ],
    ]),
    room: room as RoomStore,
    store: { placements: { states: async () => new Map(), reserved: async () => new Map() } },
    clock: { timeout: () => new AbortController().signal },
  })
  return hasRoomToGrow(changed.id, {})
}

t.test('A cluster has room to grow if at most one of its members must leave its host', async (t) => {
  t.equal(await hasRoomToGrow({ a: 1_000, b: 1_000, c: 1_000 }), true)
  t.equal(await hasRoomToGrow({ a: 1_000, b: 0, c: 1_000, d: 2_000 }), true)
  t.equal(await hasRoomToGrow({ a: 1_000, b: 0, c: 0, d: 9_000, e: 9_000 }), false)
  t.equal(await hasRoomToGrow({ a: 1_000, b: 0, c: 1_000, d: 1_000 }), false)
})
