// The conditions of regions are recorded by the leading control plane, and shown by each.
import t from 'tap'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import { createConditionPoll, createConditionReader } from '#control-plane/reconcile/jobs-region-conditions.ts'
import { createRegionConditions } from '#control-plane/reconcile/region-conditions.ts'
import { createRegionConditionStore } from '#control-plane/reconcile/store-region-conditions.ts'
import { startApi } from '#test/support/control-plane/api.ts'
import { stoppedClock } from '#test/support/control-plane/clock.ts'

const api = await startApi(t)
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const epoch = BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
const region = 'second'
await api.sql(`insert into regions (id, engine, domain) values ('${region}', 'swarm', 'second.example.org')`)
const recorded = createRegionConditionStore(database)
const ofLeader = createRegionConditions(stoppedClock())
const ofOther = createConditionReader({ conditions: createRegionConditions(stoppedClock()), recorded })
const seen = async () => (await ofOther()).get(region)

t.test('A control plane that does not lead shows what the leading one has recorded', async (t) => {
  const poll = createConditionPoll({ conditions: ofLeader, recorded })
  await poll(epoch)
  t.equal(await seen(), undefined, 'nothing before the first observation')
  ofLeader.encrypted(region, { status: 'True', reason: 'Observed', message: '' })
  ofLeader.failed(region, new EngineError('UNHEALTHY', 'The members wait for a host.'), '')
  await poll(epoch)
  const observed_at = '2026-03-01T12:00:00.000Z'
  t.same(await seen(), [
    { type: 'Ready', status: 'False', reason: 'Unhealthy', message: 'The members wait for a host.', observed_at },
    { type: 'Encrypted', status: 'True', reason: 'Observed', message: '', observed_at },
  ])
  ofLeader.ready(region)
  await poll(epoch)
  t.match(await seen(), [{ type: 'Ready', status: 'True', reason: 'Observed', message: '' }, { type: 'Encrypted' }])
  ofLeader.evict()
  ofLeader.ready(region)
  await poll(epoch)
  t.match(await seen(), [{ type: 'Ready', status: 'True' }])
  t.equal((await seen())?.length, 1, 'one that is not observed any more ends')
})

t.test('The leading one shows what it has observed itself', async (t) => {
  const conditions = createRegionConditions(stoppedClock())
  const read = createConditionReader({ conditions, recorded })
  t.match((await read()).get(region), [{ status: 'True' }], 'the recorded ones until its first observation')
  conditions.failed(region, new Error('x'), 'It could not be observed.')
  t.match((await read()).get(region), [{ status: 'False', message: 'It could not be observed.' }])
})

t.test('An unchanged condition is recorded again after a minute only', async (t) => {
  const clock = stoppedClock()
  const conditions = createRegionConditions(clock)
  const times: string[] = []
  const poll = createConditionPoll({
    conditions,
    recorded: { ...recorded, record: async (_, [ready]) => void times.push(String(ready?.observed_at).slice(11, 19)) },
  })
  for (let polls = 0; polls < 7; polls++) {
    conditions.ready(region)
    await poll(epoch)
    clock.pass(20)
  }
  t.same(times, ['12:00:00', '12:01:00', '12:02:00'])
})

t.test('A former leader records nothing', async (t) => {
  const before = await seen()
  const conditions = createRegionConditions(stoppedClock())
  conditions.failed(region, new Error('x'), 'It could not be observed.')
  await t.rejects(
    createConditionPoll({ conditions, recorded })(epoch - 1n),
    new LeadershipLost('Another control plane leads.'),
  )
  t.same(await seen(), before)
})
