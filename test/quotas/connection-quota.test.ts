// The quota of long-lived connections over several gateways: as many are open as the plan allows, whatever happens to the
// gateways.
import t, { type Test } from 'tap'
import { startApi } from '#test/support/control-plane/api.ts'
import { effort, seed } from '#test/support/effort.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { until } from '#test/support/until.ts'
import {
  leaseCall,
  openRaw,
  push,
  slotsOf,
  startQuotaSetting,
  type Opened,
  type QuotaGateway,
} from './support/gateways.ts'

const api = await startApi(t, { control: false })
const limit = effort({ small: 24, full: 100 })
await api.sql("update plans set realtime_connections = $1, requests_per_month = null where id = 'Free'", [limit])
const connections = { connections: limit, requests_per_month: null }

/** The number of slots that each gateway holds for a tenant's next connections. */
const spare = Math.ceil(limit / 50)

/** Longer than a silent gateway is still waited for, in milliseconds. */
const silence = 6_000

const portOf = (one: QuotaGateway | undefined) => one?.gateway.port ?? 0
const isOpen = ({ status }: Opened) => status === 101
const sum = async (id: string) => {
  const all = Object.values(await slotsOf(api, id))
  return {
    slots: all.reduce((total, [slots]) => total + slots, 0),
    open: all.reduce((total, [, open]) => total + open, 0),
  }
}

async function openMany(t: Test, gateways: readonly QuotaGateway[], name: string, count: number): Promise<Opened[]> {
  return Promise.all(
    Array.from({ length: count }, (_, nth) => openRaw(t, portOf(gateways[nth % gateways.length]), name)),
  )
}

/** Tries until a slot is free. The end of a connection at another gateway is known within a second. */
async function openOne(t: Test, port: number, name: string): Promise<Opened> {
  for (;;) {
    const opened = await openRaw(t, port, name)
    if (isOpen(opened)) return opened
    opened.socket.destroy()
    t.same([opened.status, opened.code], [429, 'QUOTA_CONNECTIONS'])
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

t.test(
  `Four gateways admit exactly the plan's number, at once and as connections come and go (seed ${seed})`,
  async (t) => {
    const { addTenant, gateways } = await startQuotaSetting(t, api, 4)
    const { name, tenant_id: id } = await addTenant('Free', connections)
    const all = await openMany(t, gateways, name, limit * 2)
    const open = all.filter(isOpen)
    t.equal(open.length, limit)
    t.same(
      new Set(all.filter((one) => !isOpen(one)).map(({ status, code }) => `${status} ${code ?? ''}`)),
      new Set(['429 QUOTA_CONNECTIONS']),
    )
    t.same(await sum(id), { slots: limit, open: limit })
    const next = chanceOf(seed).next
    for (let round = 0; round < effort({ small: 6, full: 200 }); round++) {
      const [leaving] = open.splice(Math.floor(next() * open.length), 1)
      leaving?.socket.destroy()
      open.push(await openOne(t, portOf(gateways[Math.floor(next() * 4)]), name))
      const { slots } = await sum(id)
      t.ok(slots <= limit, `${slots} of ${limit}`)
    }
    const more = await openMany(t, gateways, name, 8)
    t.same(more.filter(isOpen).length, 0, 'no round lost or created a slot')
    for (const { socket } of open) t.notOk(socket.destroyed)
  },
)

t.test('A tenant takes no slots of another one, and a plan without a limit uses none', async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 2)
  const full = await addTenant('Free', connections)
  t.equal((await openMany(t, gateways, full.name, limit + 2)).filter(isOpen).length, limit)
  const other = await addTenant('Free', connections)
  t.ok(isOpen(await openRaw(t, portOf(gateways[0]), other.name)))
  const unlimited = await addTenant('Enterprise')
  t.equal((await openMany(t, gateways, unlimited.name, limit + 2)).filter(isOpen).length, limit + 2)
  t.same(await slotsOf(api, unlimited.tenant_id), {})
})

t.test('Unused slots are released within seconds, except those for the next connections', async (t) => {
  let ahead = 0
  const { addTenant, gateways } = await startQuotaSetting(t, api, 2, { elapsed: () => performance.now() + ahead })
  const { name, tenant_id: id } = await addTenant('Free', connections)
  const all = await openMany(t, gateways, name, 6)
  t.ok(all.every(isOpen))
  for (const { socket } of all) socket.destroy()
  await until(async () => (await sum(id)).open === 0, 'their ends')
  t.ok((await sum(id)).slots > gateways.length * spare, 'the slots are held for clients that come back')
  ahead += 20_000
  // The second poll shows that the connections ended long ago.
  await until(async () => {
    ahead += 1_000
    return Object.values(await slotsOf(api, id)).every(([slots, open]) => slots === spare && open === 0)
  }, 'the release of all others')
})

t.test('A gateway that is cut off serves within its slots, and no other gateway gets those', async (t) => {
  const {
    addTenant,
    gateways: [cut, other],
  } = await startQuotaSetting(t, api, 2, {}, { leaseWait: 1_000 })
  if (cut === undefined || other === undefined) throw new Error('there are two')
  const { name, tenant_id: id } = await addTenant('Free', connections)
  t.ok(isOpen(await openRaw(t, portOf(cut), name)))
  const slots = async () => (await slotsOf(api, id))[cut.source]?.[0] ?? 0
  await until(async () => (await slots()) > 1, 'a slot for the next connection')
  const held = await slots()
  cut.reachable = false
  const alone = await openMany(t, [cut], name, held)
  t.equal(alone.filter(isOpen).length, held - 1)
  t.same(
    alone.filter((one) => !isOpen(one)).map(({ status, code }) => [status, code]),
    [[503, 'QUOTA_UNAVAILABLE']],
  )
  alone.find(isOpen)?.socket.destroy()
  await until(
    async () => isOpen(await openRaw(t, portOf(cut), name)),
    'a connection in the free slot, without the control plane',
  )
  api.clock.ahead += silence
  const others = await openMany(t, [other], name, limit)
  t.equal(others.filter(isOpen).length, limit - held)
  t.same(new Set(others.filter((one) => !isOpen(one)).map(({ code }) => code)), new Set(['QUOTA_CONNECTIONS']))
  cut.reachable = true
  await until(
    async () => (await openRaw(t, portOf(cut), name)).code === 'QUOTA_CONNECTIONS',
    'its report to the control plane',
  )
  t.same(await sum(id), { slots: limit, open: limit })
})

t.test('A gateway that is killed and restarted without a control plane continues within its slots', async (t) => {
  const {
    addTenant,
    gateways: [killed, other],
  } = await startQuotaSetting(t, api, 2, {}, { leaseWait: 1_000 })
  if (killed === undefined || other === undefined) throw new Error('there are two')
  const { name, tenant_id: id } = await addTenant('Free', connections)
  t.equal((await openMany(t, [killed], name, 7)).filter(isOpen).length, 7)
  const held = (await slotsOf(api, id))[killed.source]?.[0] ?? 0
  t.ok(held >= 7 && held < limit)
  for (let nth = 0; nth < 2; nth++) {
    await killed.kill()
    await killed.start()
    t.ok(isOpen(await openRaw(t, portOf(killed), name)), 'the gateway continues to serve')
  }
  const alone = await openMany(t, [killed], name, held)
  t.equal(alone.filter(isOpen).length, held - 1, 'not one connection more')
  api.clock.ahead += silence
  t.equal((await openMany(t, [other], name, limit)).filter(isOpen).length, limit - held)
  killed.reachable = true
  for (const { socket } of alone) socket.destroy()
  await until(async () => (await sum(id)).open === limit - held + 1, 'its report to the control plane')
  t.equal((await openMany(t, [killed, other], name, limit)).filter(isOpen).length, held - 1)
})

t.test('A gateway that stops releases all slots, and a killed one does so with its next boot', async (t) => {
  const {
    addTenant,
    gateways: [first, second],
  } = await startQuotaSetting(t, api, 2)
  if (first === undefined || second === undefined) throw new Error('there are two')
  const { name, tenant_id: id } = await addTenant('Free', connections)
  t.equal((await openMany(t, [first], name, limit)).filter(isOpen).length, limit)
  await first.gateway.stop(0)
  t.notOk(first.source in (await slotsOf(api, id)))
  t.equal((await openMany(t, [second], name, limit)).filter(isOpen).length, limit)
  await second.kill()
  await first.start()
  api.clock.ahead += silence
  t.same(
    (await openRaw(t, portOf(first), name)).code,
    'QUOTA_CONNECTIONS',
    'it is not known yet whether its connections have ended',
  )
  t.same(await sum(id), { slots: limit, open: limit })
  second.reachable = true
  await second.start()
  await until(async () => (await sum(id)).slots <= 2 * spare, 'the report of the next boot')
  // The gateway learned a moment ago that no slot is free, and assumes so for a second.
  await openOne(t, portOf(first), name)
  t.equal((await openMany(t, [first, second], name, limit + 4)).filter(isOpen).length, limit - 1)
})

t.test('The slots of a gateway that never comes back are free once an operator retires it', async (t) => {
  const {
    addTenant,
    gateways: [gone, other],
  } = await startQuotaSetting(t, api, 2)
  if (gone === undefined || other === undefined) throw new Error('there are two')
  const { name, tenant_id: id } = await addTenant('Free', connections)
  t.equal((await openMany(t, [gone], name, limit)).filter(isOpen).length, limit)
  await push(api, { source: gone.source, boot: '00000000-0000-4000-8000-000000000000', counters: [] })
  await gone.kill()
  t.same((await api.call('DELETE', `/v1/usage/sources/${gone.source}`)).status, 409)
  t.same(await sum(id), { slots: limit, open: limit })
  api.clock.ahead += 61_000
  t.same((await api.call('DELETE', `/v1/usage/sources/${gone.source}`)).status, 200)
  t.notOk(gone.source in (await slotsOf(api, id)))
  t.equal((await openMany(t, [other], name, limit + 2)).filter(isOpen).length, limit)
})

t.test('A smaller plan closes nothing and admits nothing until slots are free; a larger one admits more', async (t) => {
  const { addTenant, gateways, put } = await startQuotaSetting(t, api, 2)
  const route = await addTenant('Free', connections)
  const { tenant_id: id, name } = route
  const change = async (plan: string, generation: number, allowed: number) => {
    await api.sql('update tenants set plan_id = $2, updated_at = now() where id = $1', [id, plan])
    await put({ ...route, generation, limits: { ...connections, rate: null, connections: allowed } })
  }
  await api.sql("update plans set realtime_connections = 6, requests_per_month = null where id = 'Pro'")
  const open = await openMany(t, gateways, name, 10)
  t.ok(open.every(isOpen))
  await change('Pro', 2, 6)
  for (const one of gateways) t.equal((await openRaw(t, portOf(one), name)).code, 'QUOTA_CONNECTIONS')
  t.notOk(open.some(({ socket }) => socket.destroyed))
  for (const { socket } of open.splice(0, 4)) socket.destroy()
  await until(async () => (await sum(id)).slots === 6, 'the release of the slots that ended')
  for (const one of gateways) t.equal((await openRaw(t, portOf(one), name)).code, 'QUOTA_CONNECTIONS')
  open.pop()?.socket.destroy()
  await openOne(t, portOf(gateways[0]), name)
  await change('Free', 3, limit)
  t.equal((await openMany(t, gateways, name, limit)).filter(isOpen).length, limit - 6)
})

t.test('Calls that are late, repeated or of an earlier boot change nothing', async (t) => {
  const { addTenant } = await startQuotaSetting(t, api, 1)
  const { tenant_id: id } = await addTenant('Free', connections)
  const [early, later] = ['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b']
  const call = async (boot: string, sequence: number, report: Record<string, number>) => {
    const { body } = await leaseCall(api, {
      source: 'late',
      boot,
      sequence,
      unfinished: boot === later ? [early] : [],
      slots: [{ tenant_id: id, open: 0, keep: 0, ask: 0, waiting: 0, ...report }],
    })
    return body
  }
  t.match(await call(early, 2, { ask: 2, waiting: 2 }), {
    accepted: true,
    slots: [{ tenant_id: id, held: 2, limit, open: 2, state: 'granted' }],
  })
  t.match(await call(early, 2, { ask: 2, waiting: 2 }), { accepted: false, slots: [] }, 'twice')
  t.match(await call(early, 1, { ask: 2, waiting: 2 }), { accepted: false, slots: [] }, 'late')
  t.same((await slotsOf(api, id))['late'], [2, 2])
  t.match(await call(later, 1, { ask: 1, waiting: 1 }), { slots: [{ held: 1, open: 1 }] }, 'the earlier slots are free')
  t.match(
    await call(early, 3, { open: 2, keep: 2, ask: 5, waiting: 5 }),
    { accepted: true, slots: [] },
    'its counts may still arrive, but it has no connections',
  )
  t.same((await slotsOf(api, id))['late'], [1, 1])
  t.match(await call(later, 2, { open: 1, keep: 1 }), { slots: [{ held: 1 }] })
  const final = await call(later, 3, {})
  t.same([final.slots.map(({ held }) => held), 'late' in (await slotsOf(api, id))], [[0], false])
})
