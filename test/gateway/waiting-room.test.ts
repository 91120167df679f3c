// The waiting room by itself: order, bounds, one wake at a time, and nobody forgotten.
import type { Route } from '@tenantry/contract'
import t from 'tap'
import { defaultLimits, type Limits } from '#gateway/limits.ts'
import { WakeRejected, type Wake } from '#gateway/waiting/wake.ts'
import { WaitingRoom } from '#gateway/waiting/waiting-room.ts'
import { until } from '#test/support/until.ts'
import { newTenantId } from './support/gateway.ts'

const wakes = () => Promise.resolve()
const never: Wake = (_, signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')))
  })

function roomWith(wake: Wake, limits: Partial<Limits> = {}) {
  const errors: Error[] = []
  const room = new WaitingRoom({
    limits: { ...defaultLimits, ...limits },
    wake,
    onError: (error) => errors.push(error),
  })
  const reported: string[] = []
  const wait = (tenantId: string, name: string) =>
    room.wait(tenantId, {
      go: () => reported.push(`${name} goes`),
      reject: ({ code }) => reported.push(`${name} ${code}`),
    })
  return { room, told: reported, wait, problems: errors }
}

const routeOf = (tenantId: string, more: Partial<Route> = {}): Route => ({
  tenant_id: tenantId,
  name: 'acme',
  generation: 1,
  phase: 'ready',
  runtimes: ['http://127.0.0.1:1'],
  dedicated: true,
  ...more,
})

t.test('when the tenant is ready all go on in the order they came, and only its own', async (t) => {
  const { room, told: reported, wait } = roomWith(wakes)
  const [a, b] = [newTenantId(), newTenantId()]
  for (let n = 0; n < 5; n++) {
    wait(a, `a${n}`)
    wait(b, `b${n}`)
  }
  room.changed(a, routeOf(a, { phase: 'paused' }))
  room.changed(a, routeOf(a, { phase: 'pending' }))
  room.changed(a, routeOf(a, { runtimes: [] }))
  t.same(reported, [], 'not before it is')
  room.changed(a, routeOf(a))
  t.same(reported, ['a0 goes', 'a1 goes', 'a2 goes', 'a3 goes', 'a4 goes'])
  room.changed(a, routeOf(a))
  t.equal(reported.length, 5)
  room.close()
})

t.test('a tenant that is suspended, deleted or gone meanwhile refuses those who wait as its phase does', async (t) => {
  const { room, told: reported, wait } = roomWith(wakes)
  const changes: [(id: string) => Route | undefined, string][] = [
    [(id) => routeOf(id, { phase: 'suspended' }), 'TENANT_SUSPENDED'],
    [(id) => routeOf(id, { phase: 'suspended', payment_required: true }), 'PAYMENT_REQUIRED'],
    [(id) => routeOf(id, { phase: 'deleted' }), 'TENANT_NOT_FOUND'],
    [() => undefined, 'TENANT_NOT_FOUND'],
  ]
  for (const [change, code] of changes) {
    const id = newTenantId()
    wait(id, code)
    room.changed(id, change(id))
    t.equal(reported.at(-1), `${code} ${code}`)
  }
})

t.test('places are bounded for one tenant and for all, and a place left is free again', async (t) => {
  const { room, told: reported, wait } = roomWith(wakes, { waitingPerTenant: 2, waiting: 3 })
  const [a, b] = [newTenantId(), newTenantId()]
  const leave = wait(a, 'first')
  wait(a, 'second')
  wait(a, 'third')
  t.same(reported, ['third TOO_MANY_WAITING'])
  wait(b, 'fourth')
  wait(b, 'fifth')
  t.equal(reported.at(-1), 'fifth TOO_MANY_WAITING')
  leave()
  leave()
  wait(b, 'sixth')
  t.equal(reported.length, 2, 'one place was free')
  wait(b, 'seventh')
  t.equal(reported.at(-1), 'seventh TOO_MANY_WAITING', 'and only one')
  room.changed(a, routeOf(a))
  room.changed(b, routeOf(b))
  t.same(reported.slice(3), ['second goes', 'fourth goes', 'sixth goes'])
})

t.test('one wake is under way for each tenant, and ends when nobody waits', async (t) => {
  const requested: string[] = []
  const signals: AbortSignal[] = []
  const { wait, problems: errors } = roomWith((tenantId, signal) => {
    requested.push(tenantId)
    signals.push(signal)
    return never(tenantId, signal)
  })
  const [a, b] = [newTenantId(), newTenantId()]
  const leaves = [wait(a, 'one'), wait(a, 'two'), wait(b, 'three')]
  t.same(requested, [a, b])
  leaves[0]?.()
  t.equal(signals[0]?.aborted, false)
  leaves[1]?.()
  t.equal(signals[0]?.aborted, true)
  t.equal(signals[1]?.aborted, false)
  leaves[2]?.()
  t.same(errors, [], 'which is no problem')
})

t.test('a wake that fails is tried again while somebody waits', async (t) => {
  let requested = 0
  const {
    room,
    told: reported,
    wait,
    problems: errors,
  } = roomWith(async () => {
    if (++requested < 3) throw new Error('unreachable')
  })
  const id = newTenantId()
  wait(id, 'one')
  await until(() => requested >= 3)
  t.equal(errors.length, 2)
  room.changed(id, routeOf(id))
  t.same(reported, ['one goes'])
})

t.test('a refused wake refuses those who wait, and whoever comes later asks anew', async (t) => {
  let requested = 0
  const { told: reported, wait } = roomWith(async () => {
    requested++
    throw new WakeRejected('no')
  })
  const id = newTenantId()
  wait(id, 'one')
  wait(id, 'two')
  await until(() => reported.length === 2)
  t.same(reported, ['one TENANT_NOT_WOKEN', 'two TENANT_NOT_WOKEN'])
  t.equal(requested, 1)
  wait(id, 'three')
  await until(() => reported.length === 3)
  t.equal(requested, 2)
})

t.test('at the deadline each is refused, and the last one ends the waking', async (t) => {
  let signal: AbortSignal | undefined
  const { told: reported, wait } = roomWith((tenantId, given) => never(tenantId, (signal = given)), { wakeTimeout: 20 })
  const id = newTenantId()
  wait(id, 'one')
  wait(id, 'two')
  await until(() => reported.length === 2)
  t.same(reported, ['one TENANT_WAKING', 'two TENANT_WAKING'])
  t.equal(signal?.aborted, true)
})

t.test('a closed room refuses those inside and lets nobody in', async (t) => {
  const { room, told: reported, wait } = roomWith(never)
  const [a, b] = [newTenantId(), newTenantId()]
  wait(a, 'one')
  wait(b, 'two')
  room.close()
  wait(a, 'three')
  t.same(reported, ['one TENANT_WAKING', 'two TENANT_WAKING', 'three TENANT_WAKING'])
})
