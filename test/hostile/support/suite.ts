// Attacks one platform with one attack after another, and asserts after each that it harmed no others.
import { setPriority } from 'node:os'
import type { Test } from 'tap'
import { effort } from '#test/support/effort.ts'
import type { Attack } from '../attack.ts'
import { attacksIn } from '../attacks/index.ts'
import { boundsOf } from './bounds.ts'
import { attackFailed, measure, type Outcome } from './measure.ts'
import type { AttackedPlatform } from './platform.ts'
import { present, startProbe } from './probe.ts'
import { describeKinds, neighboursP99 } from './samples.ts'
import type { Target } from './target.ts'
import { createNeighbour, neighbourFileBytes } from './tenants.ts'

export const isFull = effort({ small: 0, full: 1 }) === 1
const quietMilliseconds = effort({ small: 3_000, full: 30_000 })

/** Settings of the platform. In small runs, limits of time end a waiting session sooner. */
export const platformEnvironment: Record<string, string> = isFull
  ? {}
  : { TENANTRY_SESSION_LIMITS: '*.transaction_seconds=8,*.idle_seconds=5' }

/**
 * Priority ("nice") of the process that attacks in full runs, which compare durations. Attackers have computers of their own,
 * so their work must delay neither the platform nor the probe on the same cores.
 */
const attackerPriority = 10

/** Time limit of a whole run. */
export const timeout = 7_200_000

export interface SuiteOutcome {
  outcomes: Outcome[]
  /** The neighbour's 99th percentile without an attack, in milliseconds. */
  quietP99: number
}

/** Returns the attacks on a target whose names contain one of the words; without words, those of the run. */
export function chooseAttacks(target: Target, words: readonly string[]): Attack[] {
  return attacksIn(target).filter(({ name, smallRuns = ['npm start'] }) =>
    words.length > 0 ? words.some((word) => name.includes(word)) : isFull || smallRuns.includes(target),
  )
}

export async function attackPlatform(
  t: Test,
  platform: AttackedPlatform,
  attacks: readonly Attack[],
): Promise<SuiteOutcome> {
  const neighbour = await createNeighbour(platform, `neighbour-${platform.target.replace(/\W.*/, '')}`)
  const probe = await startProbe({
    address: '127.0.0.1',
    controlUrl: platform.controlUrl,
    platformKey: platform.platformKey,
    services: platform.services,
    neighbour: { ...neighbour, fileBytes: neighbourFileBytes },
  })
  t.teardown(() => probe.stop())
  if (isFull) setPriority(attackerPriority)

  // The first requests compile code and open connections.
  await sleep(1_000)
  const quietFrom = present()
  await sleep(quietMilliseconds)
  const quiet = probe.samples(quietFrom, present())
  const quietP99 = neighboursP99(quiet)
  t.comment(`p50, p90, p99 in ms without an attack: ${describeKinds(quiet)}`)
  t.same(
    quiet.filter(({ failure }) => failure !== undefined),
    [],
    'without an attack, no request fails',
  )

  const outcomes: Outcome[] = []
  for (const attack of attacks) {
    await t.test(attack.name, async (t) => {
      const logged = platform.log().length
      const outcome = await measure(attack, { platform, probe, neighbour, quietP99 })
      outcomes.push(outcome)
      t.comment(`p50, p90, p99 in ms: ${outcome.kinds}`)
      assertHarmless(t, outcome)
      if (!t.passing()) t.comment(platform.log().slice(logged).slice(-4_000))
    })
  }
  return { outcomes, quietP99 }
}

function assertHarmless(t: Test, outcome: Outcome): void {
  const { attack, target, failures, requests, seen, ratio, normalAfterMilliseconds } = outcome
  t.ok(requests > 20, `the probe sent ${requests} requests`)
  t.same(failures.slice(0, 5), [], `no request of others failed: ${failures.length} of ${requests}`)
  t.notMatch(seen, attackFailed, 'the attack was carried out')
  t.match(seen, attack.sees, 'the attacker gets a clear error')
  t.ok(normalAfterMilliseconds !== undefined, 'everything is normal again')
  t.same(outcome.notDeleted, [], "the attacker's tenants can be deleted")
  for (const service of Object.keys(outcome.peaks))
    t.ok(service in boundsOf(target), `the service ${service} has a bound of memory`)
  for (const [service, bound] of Object.entries(boundsOf(target))) {
    const bytes = outcome.peaks[service] ?? 0
    // Functions run in processes of their own only while there are some.
    t.ok(bytes > 0 || service.endsWith('functions'), `the memory of ${service} was read`)
    t.ok(bytes <= bound, `${service}: ${(bytes / 1e6).toFixed(0)} MB of at most ${(bound / 1e6).toFixed(0)} MB`)
  }
  if (!isFull) return
  t.ok(ratio <= 3, `the neighbour's p99 is ${ratio.toFixed(1)} times the quiet one`)
  t.ok((normalAfterMilliseconds ?? Infinity) <= 5_000, 'within 5 s')
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
