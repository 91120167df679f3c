// The cache of modules: a tenant's modules evict its own, and never those of a tenant that uses less.
import fc from 'fast-check'
import t from 'tap'
import { ModuleCache } from '#tenant-runtime/functions/module/module-cache.ts'
import { effort, seed } from '#test/support/effort.ts'
import { command } from './support/wasm.ts'

const wasm = command()
const size = new ModuleCache().add('any', wasm, 'any').bytes.length

t.test('A tenant that deploys much evicts only its own modules', async (t) => {
  const cache = new ModuleCache({ bytes: 8 * size, tenantBytes: 4 * size })
  for (const hash of ['a', 'b']) cache.add('neighbour', wasm, hash)
  for (let n = 0; n < 20; n++) cache.add('busy', wasm, `${n}`)
  t.ok(cache.get('neighbour', 'a'))
  t.ok(cache.get('neighbour', 'b'))
  t.same(
    Array.from({ length: 20 }, (_, n) => n).filter((n) => cache.get('busy', `${n}`) !== undefined),
    [16, 17, 18, 19],
    'its latest modules, within its share',
  )
  t.equal(cache.get('other', 'a'), undefined, 'the same hash of another tenant is another module')
  cache.evict('neighbour')
  t.equal(cache.get('neighbour', 'a'), undefined)
})

t.test('Bytes are bounded, and a tenant keeps what all tenants could have', async () => {
  const steps = fc.array(fc.record({ tenant: fc.integer({ min: 0, max: 5 }), hash: fc.integer({ min: 0, max: 9 }) }), {
    maxLength: 200,
  })
  fc.assert(
    fc.property(steps, (added) => {
      const [total, share] = [6, 3]
      const cache = new ModuleCache({ bytes: total * size, tenantBytes: share * size })
      const cached = () =>
        Array.from({ length: 6 }, (_, tenant) =>
          Array.from({ length: 10 }, (_, hash) => hash).filter(
            (hash) => cache.get(`t${tenant}`, `${hash}`) !== undefined,
          ),
        )
      for (const { tenant, hash } of added) {
        const before = cached()
        cache.add(`t${tenant}`, wasm, `${hash}`)
        const after = cached()
        if (after.flat().length > total || after.some(({ length }) => length > share)) return false
        // One module for each tenant always fits.
        const lost = before.some((own, n) => n !== tenant && own.length <= 1 && own.length > (after[n]?.length ?? 0))
        if (lost || !(after[tenant] ?? []).includes(hash)) return false
      }
      return true
    }),
    { numRuns: effort({ small: 100, full: 5_000 }), seed },
  )
})
