// The pure parts of the quota of connections: what is granted, what a gateway does with it, and random runs of both.
import { join } from 'node:path'
import type { SlotReport } from '@tenantry/contract'
import t from 'tap'
import { decideSlots } from '#control-plane/quotas/slot-plan.ts'
import { slotFile } from '#gateway/quota/persisted-lease.ts'
import { SlotRenewer } from '#gateway/quota/slot-renewer.ts'
import { Slots } from '#gateway/quota/slots.ts'
import { effort, seed } from '#test/support/effort.ts'
import { chanceOf } from '#test/simulation/chance.ts'

const id = 't_00000000000000000000'
const grant = (held: number, open = 0, state: 'granted' | 'exhausted' = 'granted') => ({
  tenant_id: id,
  held,
  limit: 100,
  open,
  state,
})

t.test('Waiting connections get free slots, and slots of other gateways are recalled when none is free', async (t) => {
  const decide = (more: Partial<Parameters<typeof decideSlots>[0]>) =>
    decideSlots({ limit: 100, own: 0, others: 0, reclaimable: 0, requested: 3, waiting: 1, ...more })
  t.same(decide({}), { amount: 3, state: 'granted', recall: false })
  t.same(
    decide({ others: 98 }),
    { amount: 1, state: 'granted', recall: false },
    'near the limit nothing is granted in advance',
  )
  t.same(decide({ others: 100 }), { amount: 0, state: 'exhausted', recall: false })
  t.same(decide({ others: 100, reclaimable: 2 }), { amount: 0, state: 'pending', recall: true })
  t.same(
    decide({ others: 100, reclaimable: 2, requested: 0, waiting: 0 }),
    { amount: 0, state: 'granted', recall: false },
    'no slot is recalled without a waiting connection',
  )
  t.same(
    decide({ own: 10, others: 100, requested: 0, waiting: 0 }),
    { amount: 0, state: 'granted', recall: true },
    'a slot is recalled when the plan allows fewer than are held',
  )
})

t.test('Slots that are unused for a while are released, all of them when nothing is open', async (t) => {
  const slots = new Slots(id)
  slots.changeLimit(100, 0)
  t.notOk(slots.take(0), 'nothing opens before a grant')
  slots.granted(grant(10), 0, 0)
  for (let nth = 0; nth < 8; nth++) t.ok(slots.take(1))
  for (let nth = 0; nth < 7; nth++) slots.close()
  t.match(slots.report(1_000, true), { open: 1, keep: 10 }, 'the slots may be needed again')
  t.notOk(slots.hasChanges(4_000, true))
  t.match(slots.report(6_000, true), { keep: 10 })
  t.ok(slots.hasChanges(12_000, true))
  t.notOk(slots.hasChanges(12_000, false), 'a gateway that is cut off keeps its slots')
  t.match(slots.report(12_000, true), { open: 1, keep: 3 }, 'two are ready for the next')
  slots.close()
  slots.report(20_000, true)
  t.match(slots.report(30_000, true), { open: 0, keep: 0, ask: 0, waiting: 0 })
})

t.test(
  'Open connections stay when the plan becomes smaller, new ones are rejected, and slots are released at the end',
  async (t) => {
    const slots = new Slots(id)
    slots.changeLimit(100, 0)
    slots.granted(grant(6), 0, 0)
    for (let nth = 0; nth < 5; nth++) slots.take(0)
    slots.changeLimit(3, 0)
    t.notOk(slots.take(0))
    t.match(slots.report(0, true), { open: 5, keep: 5, ask: 0, waiting: 0 })
    slots.close()
    t.notOk(slots.take(0))
    t.match(slots.report(0, true), { open: 4, keep: 4, ask: 0 })
    slots.changeLimit(Infinity, 0)
    t.ok(slots.take(0))
    t.match(slots.report(0, true), { open: 0, keep: 0, ask: 0, waiting: 0 }, 'without a quota nothing is held')
    slots.changeLimit(7, 0)
    t.notOk(slots.take(0))
    t.match(
      slots.report(0, true),
      { open: 5, keep: 0, ask: 5, waiting: 5 },
      'with a quota again, all open connections request their slots',
    )
  },
)

t.test(
  'Unused slots are released when the plan becomes smaller, also those that are granted at that moment',
  async (t) => {
    const slots = new Slots(id)
    slots.changeLimit(100, 0)
    slots.granted(grant(10), 0, 0)
    slots.take(0)
    slots.take(0)
    t.match(slots.report(0, false), { open: 2, keep: 10 })
    slots.changeLimit(6, 0)
    slots.granted(grant(10), 2, 0)
    t.notOk(slots.take(0), 'others may hold all six')
    t.match(slots.report(0, true), { open: 2, keep: 2 })
    slots.granted(grant(3), 2, 0)
    t.ok(slots.take(0))
    t.notOk(slots.take(0))
  },
)

t.test('A waiter gets one result: a slot, that there is none, or a rejection', async (t) => {
  const response = { now: '', month: '', resets_at: '', accepted: true, grants: [], recalled: [], slots_recalled: [] }
  const errors: object[] = []
  const file = slotFile({
    path: join(t.testdir(), 'slots.ndjson'),
    machineBoot: '',
    onError: (error) => errors.push(error),
  })
  const renewer = new SlotRenewer({
    file,
    waitingPerTenant: 3,
    waiting: 3,
    maxWait: 60_000,
    elapsed: () => 0,
    want: () => undefined,
    isUnavailable: () => false,
  })
  const slots = renewer.of(id)
  renewer.limit(slots, 100)
  const results: string[] = []
  const wait = (name: string) =>
    renewer.take(slots, () => ({
      go: () => results.push(`${name} goes`),
      exhausted: () => results.push(`${name} is too many`),
      unknown: () => results.push(`${name} is sent away`),
    }))
  t.match(
    [wait('a'), wait('b'), wait('c')].map(({ outcome }) => outcome),
    ['waits', 'waits', 'waits'],
  )
  t.same(wait('d'), { outcome: 'full' })
  const reports = renewer.reports(10)
  t.match(reports, [{ open: 0, keep: 0, waiting: 3 }])
  t.notOk(renewer.apply({ ...response, slots: [grant(1, 1, 'exhausted')] }, reports))
  t.same(results, ['a goes', 'b is too many', 'c is too many'])
  t.same([renewer.waiting, slots.open, slots.openInAll], [0, 1, 1], 'a connection that waited is not counted twice')
  const leaving = wait('e')
  t.same(leaving, { outcome: 'exhausted' })
  renewer.apply({ ...response, slots: [grant(1, 1)] }, renewer.reports(10))
  wait('f')
  wait('g').leave?.()
  renewer.reject('t_00000000000000000001')
  t.equal(renewer.waiting, 1)
  renewer.reject(id)
  t.same(results.slice(3), ['f is sent away'])
  t.same([renewer.waiting, slots.open, errors], [0, 1, []])
})

t.test(
  'A tenant that is served again while its slots are released gets some, whatever the response to the release',
  async (t) => {
    const response = { now: '', month: '', resets_at: '', accepted: true, grants: [], recalled: [], slots_recalled: [] }
    for (const late of [[], [grant(0)]]) {
      const file = slotFile({
        path: join(t.testdir(), 'slots.ndjson'),
        machineBoot: '',
        onError: (error) => t.fail(error.message),
      })
      let now = 0
      const renewer = new SlotRenewer({
        file,
        waitingPerTenant: 3,
        waiting: 3,
        maxWait: 60_000,
        elapsed: () => now,
        want: () => undefined,
        isUnavailable: () => false,
      })
      const slots = renewer.of(id)
      renewer.limit(slots, 100)
      renewer.serve(slots, true)
      renewer.apply({ ...response, slots: [grant(2)] }, renewer.reports(10))
      t.equal(slots.isHeld, true)
      renewer.serve(slots, false)
      now = 20_000
      const reports = renewer.reports(10)
      t.match(reports, [{ keep: 0, ask: 0 }], 'the tenant is suspended')
      renewer.serve(slots, true)
      renewer.apply({ ...response, slots: late }, reports)
      t.equal(slots.isHeld, false, 'it has no slot yet')
      const again = renewer.reports(10)
      t.match(again, [{ keep: 0, ask: 2 }], 'and requests some')
      renewer.apply({ ...response, slots: [grant(2)] }, again)
      t.equal(slots.isHeld, true)
    }
  },
)

t.test(
  `Gateways that start, stop and lose responses never open more than the plan allows, and recover every slot (seed ${seed})`,
  async (t) => {
    const random = chanceOf(seed).next
    const below = (max: number) => Math.floor(random() * max)
    const limit = 12
    /** The state of the control plane. */
    const held = new Map<string, number>()
    const openOf = new Map<string, number>()
    let recalled = false
    const sum = (counts: Iterable<number>) => [...counts].reduce((total, count) => total + count, 0)
    const response = (name: string, { keep, open, ask: request, waiting }: SlotReport) => {
      held.set(name, Math.min(held.get(name) ?? 0, keep))
      const own = held.get(name) ?? 0
      openOf.set(name, Math.min(own, open))
      const others = sum(held.values()) - own
      const reclaimable = sum(
        [...held].map(([other, slots]) => (other === name ? 0 : slots - (openOf.get(other) ?? 0))),
      )
      const decision = decideSlots({ limit, own, others, reclaimable, requested: request, waiting })
      recalled = decision.recall
      held.set(name, own + decision.amount)
      return { tenant_id: id, held: own + decision.amount, limit, open: sum(openOf.values()), state: decision.state }
    }
    const made = (now: number) => {
      const slots = new Slots(id)
      slots.changeLimit(limit, now)
      return slots
    }
    const names = ['a', 'b', 'c', 'd']
    const gateways = new Map(names.map((name) => [name, made(0)]))
    const total = () => sum([...gateways.values()].map(({ open }) => open))
    const wait = (slots: Slots) =>
      slots.waiters.add({ go: () => undefined, exhausted: () => undefined, unknown: () => undefined })
    let [rejected, max] = [0, 0]
    const steps = effort({ small: 20_000, full: 400_000 })
    for (let now = 0; now < steps; now++) {
      const name = names[below(names.length)] ?? 'a'
      const slots = gateways.get(name)
      if (slots === undefined) throw new Error(name)
      const what = random()
      if (what < 0.45) {
        if (slots.waiters.size > 0 || !slots.take(now * 50)) wait(slots)
      } else if (what < 0.7) {
        if (slots.open > 0) slots.close()
      } else if (what < 0.99) {
        const isLost = random() < 0.2
        const report = slots.report(now * 50, true)
        const result = isLost && random() < 0.5 ? undefined : response(name, report)
        if (!isLost && result !== undefined) {
          slots.granted(result, report.open, now * 50)
          slots.isRecalled = recalled
          if (result.state === 'exhausted') rejected += slots.leaveAll().length
        }
      } else {
        // Its sockets end with it, and the first call of the next boot releases what it held.
        gateways.set(name, made(now * 50))
        held.set(name, 0)
        openOf.set(name, 0)
      }
      max = Math.max(max, total())
      if (sum(held.values()) > limit || total() > limit)
        t.fail(`step ${now}: ${sum(held.values())} are held, ${total()} open`)
      for (const [other, one] of gateways)
        if (one.held > (held.get(other) ?? 0)) t.fail(`step ${now}: ${other} uses slots that it was not granted`)
    }
    t.equal(max, limit, 'all slots were in use at some time')
    t.ok(rejected > 0)
    for (const slots of gateways.values()) {
      slots.leaveAll()
      while (slots.open > 0) slots.close()
    }
    for (let round = 0; round < 4; round++) {
      for (const [name, slots] of gateways) {
        const now = steps * 50 + round * 20_000
        slots.granted(response(name, slots.report(now, true)), 0, now)
      }
    }
    t.same(sum(held.values()), 0, 'no slot is lost')
  },
)

t.test('Tenants that always have changes do not keep others from being reported', async (t) => {
  const file = slotFile({
    path: join(t.testdir(), 'slots.ndjson'),
    machineBoot: '',
    onError: (error) => t.fail(error.message),
  })
  const renewer = new SlotRenewer({
    file,
    waitingPerTenant: 3,
    waiting: 100,
    maxWait: 60_000,
    elapsed: () => 0,
    want: () => undefined,
    isUnavailable: () => false,
  })
  const ids = ['a', 'b', 'c', 'd', 'e'].map((last) => `t_0000000000000000000${last}`)
  for (const one of ids) {
    const slots = renewer.of(one)
    renewer.limit(slots, 100)
    t.match(
      renewer.take(slots, () => ({ go: () => undefined, exhausted: () => undefined, unknown: () => undefined })),
      { outcome: 'waits' },
    )
  }
  const results = [renewer.reports(2), renewer.reports(2), renewer.reports(2)].flat().map(({ tenant_id: one }) => one)
  t.same(new Set(results), new Set(ids))
  renewer.rejectAll()
})
