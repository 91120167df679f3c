// Records of invocations that a crash of Postgres loses after they were acknowledged.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { beginInvocation, endInvocation } from '#tenant-runtime/functions/invocations/invocation-store.ts'
import { WrittenEnds } from '#tenant-runtime/functions/invocations/written-ends.ts'
import { until } from '#test/support/until.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { deployFunction } from './support/deployed.ts'
import { ended, onError, recordsOf } from './support/invocations.ts'
import { openTenant } from './support/open-tenant.ts'
import { command } from './support/wasm.ts'

t.test('records of invocations', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)

  t.test('that Postgres loses a moment after their end are written again, as they were', async (t) => {
    const tenant = await runtime.addTenant()
    const { tenant: inside, close } = openTenant(tenant)
    const functionId = await deployFunction(tenant, { name: 'one', wasm: command() })
    const invocationIds = ['whole', 'end', 'kept']
    for (const invocationId of invocationIds)
      await beginInvocation(inside, { name: 'one', invocationId, trigger: 'http', userId: 'ada' }, onError)
    const log = { at: 0, lines: [], bytes: 0 }
    await Promise.all(
      invocationIds.map((invocationId) =>
        endInvocation(
          inside,
          { ...ended, begun: { functionId, trigger: 'http', userId: 'ada', at: 0 }, invocationId, log },
          onError,
        ),
      ),
    )
    // As a crash does that comes before the disk has what was committed.
    await tenant.rows(`with gone as (delete from function_invocations where id = 'whole'),
      logs as (delete from function_logs where invocation_id <> 'kept')
      update function_invocations set status = 'error', state = 'interrupted', error_message = 'interrupted', cpu_ms = 0
      where id = 'end'`)
    await until(async () => (await recordsOf(tenant)).filter(({ status }) => status === 'success').length === 3)
    t.match(
      (await recordsOf(tenant)).map(({ id, user_id, cpu_ms, error_message }) => [id, user_id, cpu_ms, error_message]),
      [
        ['end', 'ada', 1.234, null],
        ['kept', 'ada', 1.234, null],
        ['whole', 'ada', 1.234, null],
      ],
    )
    t.same(
      (await tenant.rows('select invocation_id from function_logs order by 1')).map((row) => row['invocation_id']),
      ['end', 'kept', 'whole'],
    )
    await close()
  })

  t.test('are in doubt after a crash of Postgres: nobody goes on before they are sure', async (t) => {
    const end = (invocationId: string) => ({
      ...ended,
      invocationId,
      begun: { functionId: randomUUID(), trigger: 'http', userId: null, at: 0 } as const,
    })
    const requested: string[][] = []
    const lost: unknown[] = []
    let fails: Error | undefined
    const written = new WrittenEnds({
      makeSafe: async (ends) => {
        requested.push(ends.map(({ invocationId }) => invocationId))
        if (fails !== undefined) throw fails
      },
      isPassing: (cause) => cause instanceof Error && cause.message === 'away',
      onLoss: (cause) => lost.push(cause),
    })
    written.add([end('a')])
    await written.settled()
    t.same(requested, [], 'without a doubt nobody waits')
    written.doubt()
    fails = new Error('away')
    await t.rejects(written.settled(), { message: 'away' })
    written.add([end('b')])
    await t.rejects(written.settled(), { message: 'away' }, 'as long as it lasts')
    fails = undefined
    await written.settled()
    t.same(requested, [['a'], ['a', 'b'], ['a', 'b']])
    await written.settled()
    t.equal(requested.length, 3)
    written.add([end('c')])
    written.doubt()
    fails = new Error('refused')
    await written.settled()
    t.same(lost, [fails], 'what can never be made sure of is said, and holds up nobody')
  })
})
