// Compares the recorded positions of folder pages with a list of all that were ever reported.
import fc from 'fast-check'
import t from 'tap'
import { FolderPositions, type Position } from '#tenant-runtime/storage/objects/folder-positions.ts'
import { effort, seed } from '#test/support/effort.ts'

const at = (passed: number): Position => ({ passed, key: `k${passed}`, isFolder: false })

t.test(
  'The nearest recorded position at or before an offset is returned, of the last reported contents only',
  async (t) => {
    const reported = fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      contents: fc.constantFrom('1', '2'),
      passed: fc.array(fc.nat(50), { maxLength: 10 }),
      offset: fc.nat(60),
    })
    fc.assert(
      fc.property(fc.array(reported, { maxLength: 30 }), (steps) => {
        const positions = new FolderPositions()
        const model = new Map<string, { contents: string; passed: Set<number> }>()
        for (const { name, contents, passed, offset } of steps) {
          positions.remember(name, contents, passed.map(at))
          const known = model.get(name)
          model.set(name, {
            contents,
            passed: new Set([...(known?.contents === contents ? known.passed : []), ...passed]),
          })
          for (const [other, { contents, passed }] of model) {
            const before = [...passed].filter((n) => n <= offset)
            const wanted = before.length === 0 ? undefined : { position: at(Math.max(...before)), contents }
            if (JSON.stringify(positions.nearest(other, offset)) !== JSON.stringify(wanted)) return false
          }
        }
        return true
      }),
      { seed, numRuns: effort({ small: 300, full: 10_000 }) },
    )
    t.pass()
  },
)

t.test('A listing stores at most its maximum of positions, spread over all of it, with the newest', async (t) => {
  const positions = new FolderPositions({ positions: 8, bytes: 1_000_000 })
  for (let passed = 1; passed <= 1_000; passed++) {
    positions.remember('a', '1', [at(passed)])
    t.equal(positions.nearest('a', passed)?.position.passed, passed)
  }
  const stored = new Set(Array.from({ length: 1_001 }, (_, offset) => positions.nearest('a', offset)?.position.passed))
  stored.delete(undefined)
  t.ok(stored.size <= 8 && stored.size >= 4, `${stored.size} are stored`)
})

t.test('All listings together stay within their bytes; the least recently requested one is evicted', async (t) => {
  const positions = new FolderPositions({ positions: 8, bytes: 2_000 })
  const few = [at(1), at(2), at(3)]
  for (const name of ['a', 'b', 'c', 'd']) positions.remember(name, '1', few)
  t.ok(positions.bytes > 1_000 && positions.bytes <= 2_000)
  t.ok(positions.nearest('a', 9))
  positions.remember('e', '1', few)
  t.ok(positions.nearest('a', 9), 'requested a moment ago')
  t.equal(positions.nearest('b', 9), undefined)
  for (let n = 0; n < 1_000; n++) {
    positions.remember(`n${n % 50}`, String(n % 7), [at(n), { passed: n + 1, key: 'x'.repeat(n), isFolder: true }])
    if (positions.bytes > 2_000) t.fail(`${positions.bytes} bytes`)
  }
  positions.remember('large', '1', [{ passed: 1, key: 'x'.repeat(3_000), isFolder: false }])
  t.equal(positions.nearest('large', 9), undefined, 'an entry that alone is too large is not stored')
  t.equal(positions.bytes, 0)
})
