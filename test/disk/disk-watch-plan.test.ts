// Pure functions: the condition of a tenant's disk, and when the tenant is suspended for it.
import * as fc from 'fast-check'
import t from 'tap'
import { allowedBytes, chargeableBytes, isChanged, judgeDisk } from '#control-plane/disk/disk-watch-plan.ts'
import type { Desired } from '#control-plane/tenants/tenant.ts'
import { seed } from '#test/support/effort.ts'

const at = new Date('2026-03-01T12:00:00.000Z')
const plan = { documentBytes: 500_000_000, fileBytes: 1_000_000_000 }
const allowed = 1_500_000_000 * 1.5 + 2 ** 30
const tenant = { desired: 'active' as Desired, plan, isCopied: false, resumedAt: undefined }
const ago = (seconds: number) => new Date(at.getTime() - seconds * 1000)

t.test('The limit is one and a half times the quotas plus 1 GiB', (t) => {
  t.equal(allowedBytes(plan), allowed)
  t.equal(allowedBytes({ documentBytes: null, fileBytes: 1 }), Infinity)
  t.equal(allowedBytes({ documentBytes: 1, fileBytes: null }), Infinity)
  t.end()
})

t.test('The copies of a cluster count once, as the largest of them', (t) => {
  t.equal(chargeableBytes({}), 0)
  t.equal(chargeableBytes({ data: 7, files: 2 }), 9)
  t.equal(chargeableBytes({ 'data-1': 7, 'data-2': 8, 'data-3': 6, files: 2, secrets: 1 }), 11)
  t.equal(chargeableBytes({ 'data-x': 7, 'data-1': 1 }), 8, 'a volume of another name is not a copy')
  t.end()
})

t.test('High disk usage sets a warning, and too much of it suspends the tenant', (t) => {
  t.same(judgeDisk(tenant, 0, at), { condition: undefined, suspend: false })
  t.same(judgeDisk(tenant, Math.floor(allowed * 0.8) - 1, at), { condition: undefined, suspend: false })
  const warned = judgeDisk(tenant, Math.ceil(allowed * 0.8), at)
  t.same(warned, {
    condition: {
      type: 'Disk',
      status: 'True',
      reason: 'DiskNearlyFull',
      message: 'its volumes hold 2.7 GB of the 3.3 GB of disk that its plan allows',
      observed_at: at.toISOString(),
    },
    suspend: false,
  })
  t.match(judgeDisk(tenant, allowed, at), { condition: { reason: 'DiskNearlyFull' }, suspend: false })
  t.match(judgeDisk(tenant, allowed + 1, at), { condition: { status: 'False', reason: 'DiskExceeded' }, suspend: true })
  t.end()
})

t.test('A tenant that is stopped, being copied or just resumed is not suspended', (t) => {
  const much = allowed * 2
  for (const desired of ['suspended', 'paused'] as const)
    t.match(judgeDisk({ ...tenant, desired }, much, at), { condition: { reason: 'DiskExceeded' }, suspend: false })
  t.match(judgeDisk({ ...tenant, isCopied: true }, much, at), { condition: { reason: 'DiskExceeded' }, suspend: false })
  t.match(judgeDisk({ ...tenant, resumedAt: ago(599) }, much, at), {
    condition: { reason: 'DiskExceeded' },
    suspend: false,
  })
  t.match(judgeDisk({ ...tenant, resumedAt: ago(600) }, much, at), { suspend: true })
  t.end()
})

t.test('A plan without a quota has no limit', (t) => {
  const property = fc.property(
    fc.maxSafeNat(),
    fc.constantFrom({ documentBytes: null, fileBytes: 1 }, { documentBytes: 1, fileBytes: null }),
    (bytes, plan) => {
      const { condition, suspend } = judgeDisk({ ...tenant, plan }, bytes, at)
      return condition === undefined && !suspend
    },
  )
  fc.assert(property, { seed })
  t.pass(`seed ${seed}`)
  t.end()
})

t.test('An equal condition is not a change', (t) => {
  const { condition } = judgeDisk(tenant, allowed, at)
  const later = judgeDisk(tenant, allowed, new Date(at.getTime() + 60_000)).condition
  t.notOk(isChanged(condition, later))
  t.notOk(isChanged(undefined, undefined))
  t.ok(isChanged(undefined, condition))
  t.ok(isChanged(condition, undefined))
  t.ok(isChanged(condition, judgeDisk(tenant, allowed * 2, at).condition))
  t.end()
})
