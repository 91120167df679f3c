// Two runtimes that serve the same tenant: a reload by one of them has ended when both serve its result.
import t from 'tap'
import { Registry } from '#tenant-runtime/rest/registry/registry.ts'
import { openTenant } from '#test/functions/support/open-tenant.ts'
import { effort } from '#test/support/effort.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { addSchema, schema } from './support/schemas.ts'

const rounds = effort({ small: 5, full: 100 })
const recheckMilliseconds = 100

t.test('Once a reload has ended, the other runtime serves its result, too', async (t) => {
  const runtime = await startRuntime(t)
  const served = await runtime.addTenant()
  const [first, second] = [openTenant(served), openTenant(served)]
  t.teardown(() => Promise.all([first.close(), second.close()]))
  const registry = () => new Registry({ recheckMilliseconds, now: () => Date.now() })
  const [own, other] = [registry(), registry()]
  const seenByOther = async (name: string) =>
    (await other.catalogs(second.tenant)).get('public')?.relations.has(name) ?? false
  for (let round = 0; round < rounds; round++) {
    const name = `notes_${round}`
    const added = await addSchema(served, schema(name))
    t.equal(added.status, 201, added.text)
    let hasEnded = false
    const reading = (async () => {
      while (!hasEnded) {
        await seenByOther(name)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    await own.reload(first.tenant)
    const seen = await Promise.all(Array.from({ length: 20 }, () => seenByOther(name)))
    hasEnded = true
    await reading
    t.same(seen, Array(20).fill(true), name)
  }
})
