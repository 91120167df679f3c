// `planProofs` decides which backups are verified next.
import t from 'tap'
import { planProofs, type ProvableTenant } from '#control-plane/backups/proof-plan.ts'

const week = 7 * 86_400_000
const hour = 3_600_000
const start = new Date('2026-03-02T00:00:00Z').getTime()
const at = (hours: number) => new Date(start + hours * hour)
const tenantOf = (number: number, region = 'local'): ProvableTenant => ({
  id: `t_${String(number).padStart(20, '0')}`,
  seenAt: at(0),
  newest: { id: `b${number}`, region, verifiedAt: undefined, verifyError: undefined },
})
const none = new Set<string>()
const idle = (tenants: ProvableTenant[], now: Date) => planProofs(tenants, week, none, now)

/** Follows the plan hour by hour, with verifications that last less than an hour. @returns the hours of each tenant's proofs */
function follow(tenants: ProvableTenant[], hours: number): Map<string, number[]> {
  const proofs = new Map<string, number[]>(tenants.map(({ id }) => [id, []]))
  let now = tenants
  for (let hourNumber = 1; hourNumber <= hours; hourNumber++) {
    const { prove } = idle(now, at(hourNumber))
    for (const { id } of prove) proofs.get(id)?.push(hourNumber)
    now = now.map((tenant) =>
      prove.some(({ id }) => id === tenant.id) ? { ...tenant, seenAt: at(hourNumber) } : tenant,
    )
  }
  return proofs
}

t.test('Each tenant is proven once a week, at a time of its own, spread over the week', async (t) => {
  const tenants = Array.from({ length: 40 }, (_, number) => tenantOf(number))
  const proofs = [...follow(tenants, 4 * 168).values()]
  t.same(new Set(proofs.map((hours) => hours.length)), new Set([4]))
  const days = new Set(proofs.map(([first = 0]) => Math.floor((first - 1) / 24)))
  t.equal(days.size, 7, 'every day has some')
})

t.test('A region has one at a time, the longest due first, and the others follow', async (t) => {
  const tenants = Array.from({ length: 200 }, (_, number) => tenantOf(number, number % 2 === 0 ? 'one' : 'two'))
  const late = at(168)
  const { prove, skip } = idle(tenants, late)
  t.same(prove.map(({ newest }) => newest.region).sort(), ['one', 'two'])
  t.same(skip, [])
  t.same(planProofs(tenants, week, new Set(['one', 'two']), late).prove, [])
  t.same(
    planProofs(tenants, week, new Set(['one']), late).prove.map(({ newest }) => newest.region),
    ['two'],
  )
  const proofs = [...follow(tenants, 3 * 168).values()]
  t.ok(
    proofs.every((hours) => hours.length >= 2),
    'none is left out',
  )
})

t.test('A backup that was proven within the week is not verified again; a failed proof is', async (t) => {
  const tenant = tenantOf(1)
  const now = at(168)
  const seen = (verifiedAt: Date, verifyError?: string) => [
    { ...tenant, newest: { ...tenant.newest, verifiedAt, verifyError } },
  ]
  const ids = (tenants: ProvableTenant[]) => tenants.map(({ id }) => id)
  t.same(ids(idle(seen(at(1)), now).skip), [tenant.id])
  t.same(ids(idle(seen(at(-1)), now).prove), [tenant.id])
  t.same(ids(idle(seen(at(1), 'it differs'), now).prove), [tenant.id])
  t.same(idle([{ ...tenant, seenAt: now }], now), { skip: [], prove: [] }, 'its time was followed')
})
