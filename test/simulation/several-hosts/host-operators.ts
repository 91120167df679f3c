// Requests of operators that concern hosts, as the API writes them into the database.
import type { Chance } from '../chance.ts'
import type { ControlDatabase } from '../control-database.ts'
import type { HostState } from '#control-plane/placement/host-state.ts'

interface HostOperatorsOptions {
  database: ControlDatabase
  chance: Chance
  hosts: readonly string[]
  trace: (line: string) => void
}

export type HostOperators = ReturnType<typeof createHostOperators>

export function createHostOperators({ database, chance, hosts, trace }: HostOperatorsOptions) {
  const set = (host: string, state: HostState) => {
    trace(`operator: the host ${host} is ${state}`)
    if (state === 'active') database.hostStates.delete(host)
    else database.hostStates.set(host, state)
    for (const { id, placement } of database.tenants.values())
      if (state === 'active' || Object.values(placement).includes(host))
        database.report({ kind: 'wanted', subject: id })
  }
  return {
    act(): void {
      // At most one host is away, because services need the others.
      const [away] = database.hostStates.keys()
      if (away === undefined) set(chance.pick(hosts), chance.pick(['draining', 'lost']))
      else set(away, 'active')
    },
  }
}
