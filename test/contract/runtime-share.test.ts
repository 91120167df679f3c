// The distribution of tenants over runtimes: stable, complete, even, and by shards.
import fc from 'fast-check'
import t from 'tap'
import { isServed, maxRuntimes, runtimeOf, runtimeOfShard, shardOf, tenantShards } from '@tenantry/contract'

const tenantId = fc.stringMatching(/^t_[0-9a-f]{20}$/)
const counts = Array.from({ length: maxRuntimes }, (_, index) => index + 1)

/** Returns how often each number below `runtimes` occurs. */
function countsOf(numbers: number[], runtimes: number): number[] {
  return Array.from({ length: runtimes }, (_, number) => numbers.filter((one) => one === number).length)
}

t.test('A tenant always has the same shard', async (t) => {
  // Stored runs of functions are in files of shards, so a change of these values would lose them.
  t.same(['t_00000000000000000000', 't_0123456789abcdef0123', 't_ffffffffffffffffffff'].map(shardOf), [103, 61, 96])
  t.equal(tenantShards, 120)
})

t.test('Exactly one runtime serves each tenant, and it is the one of its shard', async (t) => {
  fc.assert(
    fc.property(tenantId, fc.constantFrom(...counts), (id, runtimes) => {
      const serving = Array.from({ length: runtimes }, (_, number) => number).filter((number) =>
        isServed(id, { number, runtimes }),
      )
      t.same(serving, [runtimeOf(id, runtimes)])
      t.equal(runtimeOf(id, runtimes), runtimeOfShard(shardOf(id), runtimes))
      t.ok(shardOf(id) >= 0 && shardOf(id) < tenantShards)
    }),
  )
})

t.test('Every runtime has an equal share of the shards, and about an equal share of tenants', async (t) => {
  for (const runtimes of counts) {
    const all = Array.from({ length: tenantShards }, (_, shard) => runtimeOfShard(shard, runtimes))
    const shards = countsOf(all, runtimes)
    t.ok(Math.max(...shards) - Math.min(...shards) <= 1, `shards: ${shards.join(', ')}`)
    const ids = Array.from({ length: 4_000 }, (_, n) => `t_${n.toString(16).padStart(20, '0')}`)
    const tenants = countsOf(
      ids.map((id) => runtimeOf(id, runtimes)),
      runtimes,
    )
    const mean = 4_000 / runtimes
    t.ok(
      tenants.every((count) => Math.abs(count - mean) < mean * 0.2),
      `tenants: ${tenants.join(', ')}`,
    )
  }
})
