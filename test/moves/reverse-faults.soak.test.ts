// Kills of the control plane while changes flow back after a move, while the move is reverted, and while the old home is
// removed. The next control plane continues, no change is applied twice, and nothing is left.
import t, { type Test } from 'tap'
import { moveFailpointNames, reverseFailpointNames } from '#control-plane/reconcile/failpoints.ts'
import { effort, seed } from '#test/support/effort.ts'
import type { Service } from '#test/support/platform.ts'
import { until } from '#test/support/until.ts'
import {
  contentOf,
  createOwner,
  ended,
  fill,
  first,
  move,
  remains,
  request,
  revert,
  reverseEnded,
  second,
  sql,
  startMovePlatform,
} from './support/platform.ts'

/** The small run takes every fourth failpoint. The seed chooses which. */
const stride = effort({ small: 4, full: 1 })
const chosen = <T>(names: readonly T[]) => names.filter((_, at) => at % stride === seed % stride)
type Name = (typeof moveFailpointNames)[number] | (typeof reverseFailpointNames)[number]

const ofMove: readonly Name[] = [
  'move.reverse-published',
  'move.reverse-prepared',
  'move.renamed',
  'move.retained',
  'move.cleaned',
]
const ofChanges: readonly Name[] = ['reverse.half-applied', 'reverse.applied']
const ofEnd: readonly Name[] = ['reverse.ended', 'reverse.stream-removed', 'reverse.home-removed']
const ofRevert: readonly Name[] = [
  ...moveFailpointNames.filter(
    (name) => !['move.published', 'move.slot-created', 'move.copied', 'move.retained'].includes(name),
  ),
  'revert.settled',
]

t.test('A reverse survives that the control plane is killed', { timeout: 1_800_000 }, async (t) => {
  const platform = await startMovePlatform(t, { control: { TENANTRY_MOVE_REVERSE_SECONDS: '3600' } })
  let control: Service = await platform.startControlPlane()
  const restart = async (failpoints = '') => {
    control.process.kill('SIGTERM')
    await control.exited
    control = await platform.startControlPlane({ failpoints })
  }
  const killed = async (t: Test) => {
    await control.exited
    t.equal(control.process.signalCode, 'SIGKILL')
    control = await platform.startControlPlane()
  }
  const ada = await createOwner(platform, 'ada')
  await fill(platform, ada)
  const urlIn = (database: string) => ada.url.replace(/tenantry_homes_\d+/, database)
  let written = 0
  /** Changes tables of the service and of the tenant. */
  const write = async () => {
    const { status, text } = await request(platform, ada, 'POST', '/rest/v1/notes', { text: `n ${++written}` })
    if (status !== 201) throw new Error(text)
    await sql(
      urlIn(second),
      `insert into keyless (n) values (1), (1);
       delete from keyless where ctid = (select ctid from keyless limit 1);
       update large set id = id + 1`,
    )
  }
  /** Waits until the old home has the rows of the new one, or the control plane was killed. */
  const sameRows = () =>
    until(async () => {
      if (control.process.signalCode !== null) return true
      const [one, other] = await Promise.all([first, second].map((database) => contentOf(platform, database, ada)))
      return rowsOf(one) === rowsOf(other)
    }, 'the changes in the old home')
  const requested = async (path: string, body?: unknown) => {
    const response = await platform.call('POST', `/v1/tenants/${ada.id}/${path}`, body)
    if (response.status !== 202) throw new Error(JSON.stringify(response.body))
    return String((response.body['operation'] as Record<string, unknown>)['id'])
  }
  /** Reverts, and compares the old home with what the new one was. */
  const revertsTo = async (t: Test, content: readonly string[], operation: Promise<unknown>) => {
    t.match(await operation, { state: 'succeeded', error: null })
    t.same(await contentOf(platform, first, ada), content, 'with the same content')
    await until(async () => (await request(platform, ada, 'GET', '/rest/v1/notes')).status === 200, 'a response')
    await until(async () => (await remains(platform, ada, second)).length === 0, 'nothing is left')
  }

  for (const name of chosen(ofMove))
    await t.test(`in the move, at ${name}`, async (t) => {
      await restart(`${name}=kill`)
      const id = await requested('move', { database: second })
      await killed(t)
      const operation = await ended(platform, id)
      t.match(operation, { state: 'succeeded', move: { revertible_until: /^\d{4}-/ } })
      await write()
      await revertsTo(t, await contentOf(platform, second, ada), revert(platform, ada))
    })

  for (const name of chosen(ofChanges))
    await t.test(`while changes flow back, at ${name}`, async (t) => {
      t.match(await move(platform, ada, second), { state: 'succeeded' })
      await restart(`${name}=kill@2`)
      for (let count = 0; count < 3; count++) {
        await write()
        await sameRows()
      }
      await killed(t)
      await write()
      await revertsTo(t, await contentOf(platform, second, ada), revert(platform, ada))
    })

  await t.test('while changes flow back, and Postgres crashes', async (t) => {
    t.match(await move(platform, ada, second), { state: 'succeeded' })
    await write()
    await sameRows()
    await platform.postgres.crash()
    await until(() =>
      write().then(
        () => true,
        () => false,
      ),
    )
    await revertsTo(t, await contentOf(platform, second, ada), revert(platform, ada))
  })

  for (const name of chosen(ofRevert))
    await t.test(`in the revert, at ${name}`, async (t) => {
      t.match(await move(platform, ada, second), { state: 'succeeded' })
      await write()
      const content = await contentOf(platform, second, ada)
      await restart(`${name}=kill`)
      const id = await requested('move/revert')
      await killed(t)
      await revertsTo(t, content, ended(platform, id))
    })

  for (const name of chosen(ofEnd))
    await t.test(`while the old home is removed, at ${name}`, async (t) => {
      const { id } = await move(platform, ada, second)
      await restart(`${name}=kill`)
      const { status } = await request(platform, ada, 'GET', '/rest/v1/notes')
      t.equal(status, 200)
      await sql(urlIn(second), `create table t_${name.replace(/\W/g, '_')} (n int)`)
      await killed(t)
      t.match(await reverseEnded(platform, ada, String(id), first), /The structure/)
      t.equal((await request(platform, ada, 'GET', '/rest/v1/notes')).status, 200)
      // A move back, whose old home is removed, too.
      const back = await move(platform, ada, first)
      await sql(urlIn(first), `create table b_${name.replace(/\W/g, '_')} (n int)`)
      t.match(await reverseEnded(platform, ada, String(back['id']), second), /The structure/)
    })
})

/** Returns the lines of tables, without those of sequences, whose positions the switch sets. */
function rowsOf(content: readonly string[] = []): string {
  return content.filter((line) => !/: \d+ (true|false|t|f)$/.test(line)).join('\n')
}
