// The probabilities of faults in one run: each run has some kinds of faults, and some runs have none.
import type { Chance } from './chance.ts'
import { noCallFaults, type CallFaults } from './control-plane.ts'

export interface Troubles {
  calls(): CallFaults
  /** Probabilities that an event of the Engine is lost, or arrives twice. */
  events(): { missed: number; twice: number }
  /** Probability that a change of the control database is not received in time. */
  changes(): number
  /** Probability that a gateway or a runtime receives a change late. */
  watches(): number
  failpoints(): { throw: number; crash: number }
  end(): void
}

export function createTroubles(chance: Chance): Troubles {
  let isTroubled = true
  const some = (probability: number) => probability * chance.pick([0, 0, 1, 1, 4])
  const calls: CallFaults = {
    lost: some(0.01),
    responseLost: some(0.01),
    hang: some(0.003),
    late: some(0.002),
    slow: some(0.01),
    crash: some(0.001),
  }
  const events = { missed: some(0.3), twice: some(0.2) }
  const watches = some(0.1)
  const failpoints = { crash: some(0.004), throw: some(0.01) }
  return {
    calls: () => (isTroubled ? calls : noCallFaults),
    events: () => (isTroubled ? events : { missed: 0, twice: 0 }),
    changes: () => (isTroubled ? events.missed / 3 : 0),
    watches: () => (isTroubled ? watches : 0),
    failpoints: () => (isTroubled ? failpoints : { throw: 0, crash: 0 }),
    end() {
      isTroubled = false
    },
  }
}
