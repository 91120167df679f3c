// The chunks of a body in memory.
import fc from 'fast-check'
import t from 'tap'
import { CollectedBytes } from '#tenant-runtime/http/collected-bytes.ts'
import { effort, seed } from '#test/support/effort.ts'

t.test('The whole is what was added, in its order', (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.uint8Array({ maxLength: 8 }), fc.uint8Array({ minLength: 4_096, maxLength: 5_000 })), {
        maxLength: 700,
      }),
      (parts) => {
        const collected = new CollectedBytes()
        for (const part of parts) collected.add(Buffer.from(part))
        const whole = Buffer.concat(parts)
        return collected.length === whole.length && collected.whole().equals(whole)
      },
    ),
    { seed, numRuns: effort({ small: 30, full: 1_000 }) },
  )
  t.end()
})

t.test('A body of one chunk is not copied', (t) => {
  for (const bytes of [1, 100_000]) {
    const collected = new CollectedBytes()
    const chunk = Buffer.alloc(bytes, 1)
    collected.add(chunk)
    t.equal(collected.whole(), chunk)
  }
  t.end()
})

t.test('A million chunks of a byte need little more memory than their bytes', (t) => {
  const collected = new CollectedBytes()
  const block = Buffer.alloc(65_536, 'x')
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 1_000_000; n++) collected.add(block.subarray(n % 65_536, (n % 65_536) + 1))
  globalThis.gc?.()
  const held = process.memoryUsage().heapUsed - before
  t.equal(collected.length, 1_000_000)
  t.ok(held < 60_000_000, `${held} bytes`)
  t.end()
})
