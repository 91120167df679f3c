// Property: a key that another key may create can do nothing that its creator cannot do.
import fc from 'fast-check'
import t from 'tap'
import { checkCallerAddress, coversLimit, lackedRight } from '#control-plane/keys/key-rights.ts'
import type { KeyRights } from '#control-plane/keys/platform-key.ts'
import { effort, seed } from '#test/support/effort.ts'

const regions = ['north', 'south']
const regionOf: Record<string, string> = { a: 'north', b: 'north', c: 'south' }
const tenants = Object.keys(regionOf)
const networks = [
  '10.0.0.0/8',
  '10.1.0.0/16',
  '10.1.2.3',
  '192.0.2.0/24',
  '2001:db8::/32',
  '2001:db8:1::/48',
  '0.0.0.0/0',
]
const callers = [
  '10.1.2.3',
  '10.1.9.9',
  '10.9.9.9',
  '192.0.2.7',
  '2001:db8:1::7',
  '2001:db8:2::7',
  '::ffff:10.1.2.3',
  'x',
]
const instants = [0, 1, 2, 3].map((day) => new Date(Date.UTC(2026, 0, 1 + day)))

const rights: fc.Arbitrary<KeyRights> = fc
  .record({
    limit: fc.oneof(
      fc.constant({}),
      fc.record({ tenantId: fc.constantFrom(...tenants) }),
      fc.record({ region: fc.constantFrom(...regions) }),
    ),
    addresses: fc.uniqueArray(fc.constantFrom(...networks), { maxLength: 3 }),
    expiresAt: fc.constantFrom(undefined, ...instants),
  })
  .map(({ limit, ...rest }) => ({ ...limit, ...rest }))

const isAdmitted = (addresses: readonly string[], caller: string) => {
  try {
    checkCallerAddress(addresses, caller)
    return true
  } catch {
    return false
  }
}
const regionOfLimit = ({ tenantId }: KeyRights) => (tenantId === undefined ? undefined : regionOf[tenantId])

t.test('A key that another key may create has no right that its creator lacks', (t) => {
  let created = 0
  fc.assert(
    fc.property(rights, rights, (own, wanted) => {
      if (lackedRight(own, wanted, regionOfLimit(wanted)) !== undefined) return
      created++
      for (const tenantId of tenants)
        if (coversLimit(wanted, { tenantId }, regionOf[tenantId]))
          t.ok(coversLimit(own, { tenantId }, regionOf[tenantId]), `the creator may use the tenant ${tenantId}`)
      for (const region of regions)
        if (coversLimit(wanted, { region }, undefined))
          t.ok(coversLimit(own, { region }, undefined), `the creator may use the region ${region}`)
      for (const caller of callers)
        if (isAdmitted(wanted.addresses, caller))
          t.ok(isAdmitted(own.addresses, caller), `the creator may be used from ${caller}`)
      const lives = (expiresAt: Date | undefined, at: Date) => expiresAt === undefined || expiresAt > at
      for (const at of [...instants, new Date(Date.UTC(2030, 0, 1))])
        if (lives(wanted.expiresAt, at)) t.ok(lives(own.expiresAt, at), `the creator is valid at ${at.toISOString()}`)
    }),
    { numRuns: effort({ small: 2_000, full: 100_000 }), seed },
  )
  t.ok(created > 50, `${created} pairs were allowed`)
  t.end()
})

t.test('A key may create one with the same rights, and an unlimited key may create every key', (t) => {
  fc.assert(
    fc.property(rights, (own) => {
      t.equal(lackedRight(own, own, regionOfLimit(own)), undefined)
      t.equal(lackedRight({ addresses: [], expiresAt: undefined }, own, regionOfLimit(own)), undefined)
    }),
    { numRuns: effort({ small: 200, full: 10_000 }), seed },
  )
  t.end()
})
