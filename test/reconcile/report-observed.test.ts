// A tenant whose drift policy leaves differences as they are: what was observed is recorded when it differs from the record.
import t from 'tap'
import { isRecorded } from '#control-plane/reconcile/report-observed.ts'
import type { Condition } from '#control-plane/tenants/tenant.ts'

const condition: Condition = {
  type: 'Services',
  status: 'True',
  reason: 'Observed',
  message: '',
  observed_at: '2026-01-01T00:00:00.000Z',
}
const conditions = [condition]
const recorded = { status: 'ready', reason: null, conditions } as const

t.test('Status, reason and conditions are compared', (t) => {
  t.ok(isRecorded(recorded, { ...recorded, conditions: [...conditions] }))
  t.notOk(isRecorded({ ...recorded, status: 'failed' }, recorded))
  t.notOk(isRecorded({ ...recorded, conditions: [] }, recorded))
  t.notOk(isRecorded({ ...recorded, conditions: [{ ...condition, status: 'False' }] }, recorded))
  const failed = 'The home could not be brought to its specified state. The work is retried.'
  t.notOk(isRecorded({ ...recorded, reason: failed }, recorded), 'a reason that is not true any more')
  t.end()
})
