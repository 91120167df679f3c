// The runtime writes records of invocations again that a crash of Postgres loses after their acknowledgement.
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

t.test('Records of invocations', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)

  t.test('Records that Postgres loses after their end are written again, unchanged', async (t) => {
    const tenant = await runtime.addTenant()
    const { tenant: inside, close } = openTenant(tenant)
    const functionId = await deployFunction(tenant, { name: 'one', wasm: command() })
    const invocationIds = ['whole', 'end', 'retained']
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
    // A crash has this effect when it comes before the committed rows are on disk.
    await tenant.rows(`with gone as (delete from function_invocations where id = 'whole'),
      logs as (delete from function_logs where invocation_id <> 'retained')
      update function_invocations set status = 'error', state = 'interrupted', error_message = 'interrupted', cpu_ms = 0
      where id = 'end'`)
    await until(async () => (await recordsOf(tenant)).filter(({ status }) => status === 'success').length === 3)
    t.match(
      (await recordsOf(tenant)).map(({ id, user_id, cpu_ms, error_message }) => [id, user_id, cpu_ms, error_message]),
      [
        ['end', 'ada', 1.234, null],
        ['retained', 'ada', 1.234, null],
        ['whole', 'ada', 1.234, null],
      ],
    )
    t.same(
      (await tenant.rows('select invocation_id from function_logs order by 1')).map((row) => row['invocation_id']),
      ['end', 'retained', 'whole'],
    )
    await close()
  })

  t.test('After a crash of Postgres, callers wait until the records are safe', async (t) => {
    const end = (invocationId: string) => ({
      ...ended,
      invocationId,
      begun: { functionId: randomUUID(), trigger: 'http', userId: null, at: 0 } as const,
    })
    const batches: string[][] = []
    const lost: unknown[] = []
    let fails: Error | undefined
    const written = new WrittenEnds({
      makeSafe: async (ends) => {
        batches.push(ends.map(({ invocationId }) => invocationId))
        if (fails !== undefined) throw fails
      },
      isTemporary: (cause) => cause instanceof Error && cause.message === 'away',
      onLoss: (cause) => lost.push(cause),
    })
    written.add([end('a')])
    await written.ensureSafe()
    t.same(batches, [], 'while no record is in doubt, no caller waits')
    written.markDoubtful()
    fails = new Error('away')
    await t.rejects(written.ensureSafe(), { message: 'away' })
    written.add([end('b')])
    await t.rejects(written.ensureSafe(), { message: 'away' }, 'as long as Postgres is away')
    fails = undefined
    await written.ensureSafe()
    t.same(batches, [['a'], ['a', 'b'], ['a', 'b']])
    await written.ensureSafe()
    t.equal(batches.length, 3)
    written.add([end('c')])
    written.markDoubtful()
    fails = new Error('rejected')
    await written.ensureSafe()
    t.same(lost, [fails], 'records that cannot be written are reported, and delay no caller')
  })
})
