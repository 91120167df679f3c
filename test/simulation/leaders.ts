// Control planes that lead one after the other, each with the real reconciler. A leader dies before it is replaced, or it
// continues until it notices that another leads.
import type { ChangeListener } from '#control-plane/platform/change-feed.ts'
import { control } from '#control-plane/reconcile/controller.ts'
import type { FailpointName } from '#control-plane/reconcile/failpoints.ts'
import type { ControlDatabase } from './control-database.ts'
import { createRegionConditions } from '#control-plane/reconcile/region-conditions.ts'
import type { Region } from '#control-plane/reconcile/region-interface.ts'
import { createControlPlane, type ControlPlane } from './control-plane.ts'
import type { Chance } from './chance.ts'
import { spoilProbe, type Defects } from './defects.ts'
import type { Invariants } from './invariants.ts'
import type { Scheduler } from './scheduler.ts'
import { createSimulatedProbe, type ProbedParts } from './simulated-probe.ts'
import { createSimulatedStore } from './simulated-store.ts'
import type { Troubles } from './troubles.ts'

export interface LeadersOptions {
  /** Returns the only region, as a control plane has it. */
  region: (caller: ControlPlane) => Region
  database: ControlDatabase
  parts: ProbedParts
  chance: Chance
  scheduler: Scheduler
  troubles: Troubles
  defects: Defects
  invariants: Invariants
  now: () => Date
  breach: (what: string) => void
}

export interface Leaders {
  /** Starts a control plane that takes the lead. */
  lead(): void
  /** Kills the leader; another one takes the lead soon. */
  crash(): void
  /** Gives all later leaders a newer version of the migrations. */
  upgrade(): void
  crashes(): number
  /** Aborts the signals of all leaders, because the process keeps pending work as long as its signal can abort. */
  end(): void
  readonly failpoints: ReadonlySet<FailpointName>
}

const orphanGraceSeconds = 30

export function createLeaders(options: LeadersOptions): Leaders {
  const { database, parts, invariants, scheduler, chance, troubles, defects, now, breach } = options
  const failpoints = new Set<FailpointName>()
  let homeVersion = 'v1'
  let crashes = 0
  const leads: AbortController[] = []
  let leader: { caller: ControlPlane; lost: AbortController } | undefined

  const changesOf = (caller: ControlPlane) => ({
    subscribe(listener: ChangeListener) {
      const abortable = (milliseconds: number, work: () => void) =>
        scheduler.after(milliseconds, () => caller.isAlive() && work())
      abortable(chance.between(1, 50), () => listener('resync'))
      return database.listen((change) => {
        if (!caller.isAlive()) return
        const isGap = chance.happens(troubles.changes())
        if (isGap) abortable(chance.between(500, 3_000), () => listener('resync'))
        else abortable(chance.between(0.5, 20), () => listener(change))
      })
    },
  })

  const failpointOf = (caller: ControlPlane) => (name: FailpointName) => {
    failpoints.add(name)
    const probabilities = troubles.failpoints()
    if (chance.happens(probabilities.throw)) throw new Error(`failpoint ${name}`)
    if (!chance.happens(probabilities.crash)) return
    caller.die()
    return new Promise<void>(() => undefined)
  }

  const logOf = (caller: ControlPlane) => (details: object, message: string) => {
    scheduler.trace(`${caller.name} logs: ${message}${'err' in details ? `: ${textOf(details.err)}` : ''}`)
  }

  const run = async (caller: ControlPlane, lost: AbortSignal) => {
    const log = logOf(caller)
    const region = options.region(caller)
    try {
      await control(
        {
          store: createSimulatedStore({
            database,
            caller,
            invariants,
            now,
            checksEpoch: defects.ignoresEpoch !== true,
          }),
          regions: new Map([[region.config.id, region]]),
          homeVersion,
          conditions: createRegionConditions(caller.clock),
          probe: spoilProbe(
            defects,
            createSimulatedProbe(parts, caller, invariants, scheduler),
            now,
            (id) => database.tenants.get(id)?.desired === 'deleted',
          ),
          changes: changesOf(caller),
          failpoint: failpointOf(caller),
          clock: caller.clock,
          random: () => chance.next(),
          log: { info: log, warn: log, error: log },
          measure: { reconciled: () => undefined, swept: () => undefined, queue: () => undefined },
          orphanGraceSeconds,
          housekeeping: [],
        },
        { epoch: caller.epoch, lost },
      )
      scheduler.trace(`${caller.name} has ended`)
    } catch (error) {
      breach(`${caller.name} ended with ${textOf(error)}`)
    }
  }

  const lead = () => {
    const epoch = ++database.state.epoch
    const caller = createControlPlane({
      name: `cp${epoch}`,
      epoch,
      scheduler,
      chance,
      faults: () => troubles.calls(),
      leads: (of) => of === database.state.epoch,
      died() {
        crashes++
        if (leader?.caller === caller) scheduler.after(chance.between(250, 4_000), lead)
      },
    })
    const former = leader
    leader = { caller, lost: new AbortController() }
    leads.push(leader.lost)
    scheduler.trace(`${caller.name} leads`)
    // The former leader continues until it notices.
    if (former?.caller.isAlive() === true)
      scheduler.after(chance.between(10, 20_000), () => former.lost.abort(new Error('the lead is lost')))
    void run(caller, leader.lost.signal)
  }

  return {
    lead,
    crash: () => leader?.caller.die(),
    upgrade() {
      homeVersion = 'v2'
    },
    crashes: () => crashes,
    end() {
      for (const lost of leads) lost.abort(new Error('the simulation is over'))
    },
    failpoints,
  }
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}
