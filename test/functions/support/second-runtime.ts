// The functions of a second runtime, for a tenant that another runtime serves.
import pino from 'pino'
import type { Test } from 'tap'
import { ExecutorPool, defaultPoolLimits } from '#tenant-runtime/functions/executor/pool.ts'
import { readNetworks } from '@tenantry/contract'
import { invoke } from '#tenant-runtime/functions/invocations/invoke.ts'
import { LogRetention } from '#tenant-runtime/functions/logs/log-retention.ts'
import { ModuleCache } from '#tenant-runtime/functions/module/module-cache.ts'
import { defaultDispatchPace, type DispatchPace } from '#tenant-runtime/functions/triggers/dispatch.ts'
import { Dispatcher } from '#tenant-runtime/functions/triggers/dispatcher.ts'
import type { TestTenant } from '#test/support/runtime.ts'
import { openTenant } from './open-tenant.ts'

export interface SecondRuntime {
  notify(): void
  /** Returns the number of invocations that it has finished. */
  done(): number
  /** Stops the dispatcher, and closes the executors and connections. */
  stop(): Promise<void>
}

export interface SecondOptions {
  now: () => Date
  dispatch: Partial<DispatchPace>
  /** The interval after which it checks what the other runtime has deployed. It never checks without one. */
  recheckMilliseconds?: number
}

/** Starts a dispatcher. It knows the functions that the tenant has at the start, and those that it finds when it checks. */
export function secondRuntime(
  t: Test,
  served: TestTenant,
  { now, dispatch, recheckMilliseconds }: SecondOptions,
): SecondRuntime {
  const { tenant, close } = openTenant(served)
  const onError = (error: Error) => t.comment(error.message)
  const pool = new ExecutorPool(defaultPoolLimits, () => performance.now(), onError)
  const reject = async (): Promise<never> => {
    throw new Error('functions of this test make no host calls')
  }
  const host = {
    files: { get: reject, put: reject, remove: reject },
    reachable: readNetworks([]),
    resolve: reject,
    hasWayOut: reject,
    onWrite: () => undefined,
    onError,
  }
  const deps = {
    pool,
    modules: new ModuleCache(),
    logs: new LogRetention(() => undefined, onError),
    now: () => now().getTime(),
    elapsed: () => performance.now(),
    onError,
    host,
  }
  const log = pino({ level: 'silent' })
  let done = 0
  const dispatcher = new Dispatcher({
    now,
    elapsed: () => performance.now(),
    onError,
    random: () => 0.5,
    recheckMilliseconds,
    tenants: () => [tenant],
    tenantOf: () => tenant,
    pace: { ...defaultDispatchPace, ...dispatch },
    async invoke(tenant, call) {
      const { status } = await invoke(deps, tenant, { ...call, log })
      done++
      return status
    },
  })
  const over = new AbortController()
  const loop = dispatcher.run(over.signal)
  const stop = async () => {
    over.abort()
    await loop
    await pool.close()
    await close()
  }
  let stopped: Promise<void> | undefined
  const stopOnce = () => (stopped ??= stop())
  t.teardown(stopOnce)
  return { notify: () => dispatcher.notify(tenant.id), done: () => done, stop: stopOnce }
}
