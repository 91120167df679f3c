// The waiting room: order, limits, one wake at a time, and a result for every waiter.
import type { Route } from '@tenantry/contract'
import t from 'tap'
import { defaultLimits, type Limits } from '#gateway/limits.ts'
import { WakeRejectedError, type Wake } from '#gateway/waiting/wake.ts'
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
  const results: string[] = []
  const wait = (tenantId: string, name: string) =>
    room.wait(tenantId, {
      go: () => results.push(`${name} goes`),
      reject: ({ code }) => results.push(`${name} ${code}`),
    })
  return { room, results, wait, errors }
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

t.test('When the tenant is ready all of its waiters continue in their order, and no others', async (t) => {
  const { room, results, wait } = roomWith(wakes)
  const [a, b] = [newTenantId(), newTenantId()]
  for (let n = 0; n < 5; n++) {
    wait(a, `a${n}`)
    wait(b, `b${n}`)
  }
  room.changed(a, routeOf(a, { phase: 'paused' }))
  room.changed(a, routeOf(a, { phase: 'pending' }))
  room.changed(a, routeOf(a, { runtimes: [] }))
  t.same(results, [], 'not before the tenant is ready')
  room.changed(a, routeOf(a))
  t.same(results, ['a0 goes', 'a1 goes', 'a2 goes', 'a3 goes', 'a4 goes'])
  room.changed(a, routeOf(a))
  t.equal(results.length, 5)
  room.close()
})

t.test('A tenant that is suspended or deleted rejects its waiters with the error of its phase', async (t) => {
  const { room, results, wait } = roomWith(wakes)
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
    t.equal(results.at(-1), `${code} ${code}`)
  }
})

t.test('Slots are limited per tenant and in total, and a waiter that leaves frees its slot', async (t) => {
  const { room, results, wait } = roomWith(wakes, { waitingPerTenant: 2, waiting: 3 })
  const [a, b] = [newTenantId(), newTenantId()]
  const leave = wait(a, 'first')
  wait(a, 'second')
  wait(a, 'third')
  t.same(results, ['third TOO_MANY_WAITING'])
  wait(b, 'fourth')
  wait(b, 'fifth')
  t.equal(results.at(-1), 'fifth TOO_MANY_WAITING')
  leave()
  leave()
  wait(b, 'sixth')
  t.equal(results.length, 2, 'one slot was free')
  wait(b, 'seventh')
  t.equal(results.at(-1), 'seventh TOO_MANY_WAITING', 'only one slot was free')
  room.changed(a, routeOf(a))
  room.changed(b, routeOf(b))
  t.same(results.slice(3), ['second goes', 'fourth goes', 'sixth goes'])
})

t.test('Each tenant has one wake in progress, which ends when no request waits', async (t) => {
  const wakeCalls: string[] = []
  const signals: AbortSignal[] = []
  const { wait, errors } = roomWith((tenantId, signal) => {
    wakeCalls.push(tenantId)
    signals.push(signal)
    return never(tenantId, signal)
  })
  const [a, b] = [newTenantId(), newTenantId()]
  const leaves = [wait(a, 'one'), wait(a, 'two'), wait(b, 'three')]
  t.same(wakeCalls, [a, b])
  leaves[0]?.()
  t.equal(signals[0]?.aborted, false)
  leaves[1]?.()
  t.equal(signals[0]?.aborted, true)
  t.equal(signals[1]?.aborted, false)
  leaves[2]?.()
  t.same(errors, [], 'an aborted wake is not an error')
})

t.test('A wake that fails is tried again while a request waits', async (t) => {
  let wakeCalls = 0
  const { room, results, wait, errors } = roomWith(async () => {
    if (++wakeCalls < 3) throw new Error('unreachable')
  })
  const id = newTenantId()
  wait(id, 'one')
  await until(() => wakeCalls >= 3)
  t.equal(errors.length, 2)
  room.changed(id, routeOf(id))
  t.same(results, ['one goes'])
})

t.test('A rejected wake rejects the waiters, and a later request wakes again', async (t) => {
  let wakeCalls = 0
  const { results, wait } = roomWith(async () => {
    wakeCalls++
    throw new WakeRejectedError('no')
  })
  const id = newTenantId()
  wait(id, 'one')
  wait(id, 'two')
  await until(() => results.length === 2)
  t.same(results, ['one TENANT_NOT_WOKEN', 'two TENANT_NOT_WOKEN'])
  t.equal(wakeCalls, 1)
  wait(id, 'three')
  await until(() => results.length === 3)
  t.equal(wakeCalls, 2)
})

t.test('Each waiter is rejected at its deadline, and the last one ends the wake', async (t) => {
  let signal: AbortSignal | undefined
  const { results, wait } = roomWith((tenantId, given) => never(tenantId, (signal = given)), { wakeTimeout: 20 })
  const id = newTenantId()
  wait(id, 'one')
  wait(id, 'two')
  await until(() => results.length === 2)
  t.same(results, ['one TENANT_WAKING', 'two TENANT_WAKING'])
  t.equal(signal?.aborted, true)
})

t.test('A closed room rejects its waiters and admits no others', async (t) => {
  const { room, results, wait } = roomWith(never)
  const [a, b] = [newTenantId(), newTenantId()]
  wait(a, 'one')
  wait(b, 'two')
  room.close()
  wait(a, 'three')
  t.same(results, ['one TENANT_WAKING', 'two TENANT_WAKING', 'three TENANT_WAKING'])
})
