// A region that is not ready for a while is reported to operators once, and once when it is ready again.
import t from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createRegionPoll } from '#control-plane/reconcile/jobs-region-events.ts'
import { createRegionConditions } from '#control-plane/reconcile/region-conditions.ts'
import { createRegionEvents } from '#control-plane/reconcile/store-region-events.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t)
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const epoch = BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
let time = Date.now()
const events = createRegionEvents(database, () => new Date(time++))
const conditions = createRegionConditions(systemClock)
const written = () =>
  api.sql("select type, tenant_id, data from operator_events where type like 'region.%' order by at")

t.test('An outage is one event, a short one none, and another leader repeats nothing', async (t) => {
  const poll = createRegionPoll({ conditions, events })
  const fail = () =>
    conditions.failed('local', new EngineError('ENGINE_UNREACHABLE', 'The engine does not respond.'), '')
  conditions.ready('local')
  await poll(epoch)
  fail()
  await poll(epoch)
  await poll(epoch)
  conditions.ready('local')
  await poll(epoch)
  t.same(await written(), [], 'a short outage')
  fail()
  for (let polls = 0; polls < 5; polls++) await poll(epoch)
  const data = { region: 'local', reason: 'EngineUnreachable', message: 'The engine does not respond.' }
  t.same(await written(), [{ type: 'region.not_ready', tenant_id: null, data }])
  const next = createRegionPoll({ conditions, events })
  for (let polls = 0; polls < 5; polls++) await next(epoch)
  t.equal((await written()).length, 1, 'the next leader knows it')
  conditions.ready('local')
  await next(epoch)
  await next(epoch)
  t.match(await written(), [{ type: 'region.not_ready' }, { type: 'region.ready', data: { region: 'local' } }])
})
