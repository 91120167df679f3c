// The processes of a service, and the CPU time of its parts.
import type { Installation } from '#test/support/installation.ts'
import { cpuMicroseconds } from './cpu-time.ts'

/** The process IDs of a service's parts, by the part's name. */
export type Processes = Record<string, readonly number[]>

/** Returns the processes that serve requests. Executors are the runtimes' children. */
export async function processesOf(installation: Installation, gateways = 1): Promise<Processes> {
  const names = Array.from({ length: gateways }, (_, n) => (n === 0 ? 'gateway' : `gateway-${n}`))
  return {
    gateway: await Promise.all(names.map((service) => installation.pid(service))),
    runtime: await Promise.all((await installation.runtimes()).map((service) => installation.pid(service))),
    Postgres: [await installation.pid('postgres')],
  }
}

/** Returns the microseconds of CPU time of each part so far. */
export async function cpuOf(processes: Processes): Promise<Record<string, number>> {
  const parts = Object.entries(processes).map(async ([part, pids]) => {
    const times = await Promise.all(pids.map(cpuMicroseconds))
    return [part, times.reduce((sum, time) => sum + time, 0)] as const
  })
  return Object.fromEntries(await Promise.all(parts))
}
