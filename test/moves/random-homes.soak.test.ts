// Random homes that move to another database, and return by another move or a revert: every object, row and position is as before.
import fc from 'fast-check'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { describeHome } from './support/describe-home.ts'
import { createOwner, first, move, remains, revert, second, sql, startMovePlatform } from './support/platform.ts'
import { homeSql } from './support/random-home.ts'

// A smaller failure would need many more moves.
const runs = { numRuns: effort({ small: 2, full: 100 }), seed, endOnFailure: true }

t.comment(`seed ${seed}`)
for (const [back, reverseSeconds] of [
  ['move', '0'],
  ['revert', '3600'],
] as const)
  t.test(`Random homes return by a ${back}`, { timeout: 3_600_000 }, async (t) => {
    const platform = await startMovePlatform(t, { control: { TENANTRY_MOVE_REVERSE_SECONDS: reverseSeconds } })
    await platform.startControlPlane()
    let count = 0
    let lines = 0
    await fc.assert(
      fc.asyncProperty(homeSql, async (text) => {
        const owner = await createOwner(platform, `random-${++count}`)
        await sql(owner.url, text)
        const describe = (database: string) => describeHome(platform.postgres.url(database), owner.id)
        const before = await describe(first)
        lines += before.length
        const compare = async (database: string, operation: Record<string, unknown>) => {
          if (operation['state'] !== 'succeeded') throw new Error(String(operation['error']))
          const after = await describe(database)
          const lost = before.filter((line) => !after.includes(line))
          const added = after.filter((line) => !before.includes(line))
          if (after.join('\n') !== before.join('\n'))
            throw new Error(JSON.stringify({ database, lost, added }, null, 1))
        }
        const moved = await move(platform, owner, second)
        // While a move can be reverted, the identities of some tables are others.
        if (back === 'move') await compare(second, moved)
        await compare(first, back === 'move' ? await move(platform, owner, first) : await revert(platform, owner))
        // The identities of tables are among what is the same.
        const left = async () => (await remains(platform, owner, second)).filter((name) => !name.endsWith(' is full'))
        await until(async () => (await left()).length === 0, 'the removal of everything of the move')
      }),
      runs,
    )
    t.ok(lines > 100 * count, `${count} homes with ${lines} objects and rows are the same`)
  })
