// `planSchedule` decides when a tenant's schedule has a backup due.
import fc from 'fast-check'
import t from 'tap'
import { seed } from '#test/support/effort.ts'
import { planSchedule, type ScheduledTenant } from '#control-plane/backups/schedule-plan.ts'

const schedule = '30 2 * * *'
const now = new Date('2026-03-10T12:00:00Z')
const today = new Date('2026-03-10T02:30:00Z')
const yesterday = new Date('2026-03-09T02:30:00Z')
const tenant: ScheduledTenant = {
  id: 't_00000000000000000000',
  schedule,
  seen: { schedule, at: yesterday },
  desired: 'active',
  status: 'ready',
  busy: false,
  pausedAt: undefined,
  lastBackupAt: undefined,
}

const cases: [string, Partial<ScheduledTenant>, ReturnType<typeof planSchedule>][] = [
  ['a backup is due', {}, { do: 'take', plannedAt: today }],
  ['the backup was taken', { seen: { schedule, at: today } }, { do: 'nothing' }],
  [
    'of several missed times, the last counts',
    { seen: { schedule, at: new Date('2026-02-01T00:00:00Z') } },
    { do: 'take', plannedAt: today },
  ],
  ['a new schedule begins now', { seen: undefined }, { do: 'follow', at: now }],
  ['a changed schedule begins now', { seen: { schedule: '0 * * * *', at: yesterday } }, { do: 'follow', at: now }],
  ['another operation is in progress', { busy: true }, { do: 'nothing' }],
  ['the tenant is not ready', { status: 'pending' }, { do: 'nothing' }],
  ['the tenant is suspended', { desired: 'suspended', status: 'suspended' }, { do: 'nothing' }],
  [
    'a paused tenant without a backup',
    { desired: 'paused', status: 'paused', pausedAt: yesterday },
    { do: 'take', plannedAt: today },
  ],
  [
    'a paused tenant that was used since its last backup',
    { desired: 'paused', status: 'paused', pausedAt: today, lastBackupAt: yesterday },
    { do: 'take', plannedAt: today },
  ],
  [
    'a tenant that was paused before its last backup',
    { desired: 'paused', status: 'paused', pausedAt: yesterday, lastBackupAt: new Date('2026-03-09T03:00:00Z') },
    { do: 'skip', plannedAt: today },
  ],
  ['the tenant is being paused', { desired: 'paused', status: 'ready' }, { do: 'nothing' }],
  ['an invalid schedule', { schedule: 'nonsense', seen: { schedule: 'nonsense', at: yesterday } }, { do: 'nothing' }],
]

t.test('the plan takes, skips, follows or does nothing, by the state of the tenant', async (t) => {
  for (const [name, change, step] of cases) t.same(planSchedule({ ...tenant, ...change }, now), step, name)
})

t.test('a backup is due exactly at its planned time, in UTC', async (t) => {
  const at = (time: string) => planSchedule({ ...tenant, seen: { schedule, at: today } }, new Date(time)).do
  t.equal(at('2026-03-11T02:29:59.999Z'), 'nothing')
  t.equal(at('2026-03-11T02:30:00.000Z'), 'take')
})

t.test('each planned time is taken once, at any times of polling', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 60 }),
      async (seconds) => {
        let seen = { schedule, at: now }
        let clock = now.getTime()
        const taken: number[] = []
        for (const more of seconds) {
          clock += more * 1000
          const step = planSchedule({ ...tenant, seen }, new Date(clock))
          if (step.do !== 'take') continue
          taken.push(step.plannedAt.getTime())
          seen = { schedule, at: step.plannedAt }
        }
        return (
          new Set(taken).size === taken.length &&
          taken.every(
            (at) => new Date(at).toISOString().endsWith('T02:30:00.000Z') && at > now.getTime() && at <= clock,
          )
        )
      },
    ),
    { numRuns: 200, seed },
  )
})
