// Measures one attack: the neighbour's failures and latencies, the memory of each service, what the attacker saw, and how
// long it takes until everything is normal again.
import { setMaxListeners } from 'node:events'
import { effort } from '#test/support/effort.ts'
import type { Attack } from '../attack.ts'
import type { Target } from './target.ts'
import type { AttackedPlatform } from './platform.ts'
import { present, type Probe } from './probe.ts'
import { describeKinds, neighboursP99, peaks, type Sample } from './samples.ts'
import { callControl, createTenant, deleteTenant, type Tenant } from './tenants.ts'

export interface Outcome {
  attack: Attack
  target: Target
  /** The outcome for the attacker, or the error with which the attack ended. */
  seen: string
  requests: number
  failures: Sample[]
  p99: number
  /** Percentiles 50, 90 and 99 of each kind of request in milliseconds, as text. */
  kinds: string
  /** `p99` divided by the quiet one. */
  ratio: number
  /** Largest private memory of each service in bytes. */
  peaks: Record<string, number>
  /** Time from the end of the attack until all requests succeed and none is slow; undefined if that took too long. */
  normalAfterMilliseconds: number | undefined
  /** Responses to the deletion of the attacker's tenants that are not a success. */
  notDeleted: string[]
}

export interface MeasureDeps {
  platform: AttackedPlatform
  probe: Probe
  neighbour: Tenant
  /** The neighbour's 99th percentile without an attack, in milliseconds. */
  quietP99: number
}

/** Duration of an attack without an end of its own, in milliseconds. */
const attackMilliseconds = effort({ small: 1_000, full: 30_000 })
/** A busy machine shows the attacker the outcome later. */
const maxWatchMilliseconds = 30_000
/** This time without failures and slow requests is normal. */
const normalMilliseconds = effort({ small: 500, full: 1_000 })
const maxRecoveryMilliseconds = 30_000
/** On a busy machine, a request of this time is not slow. */
const alwaysNormalMilliseconds = effort({ small: 2_000, full: 100 })

/** The probe sends 30 requests in a second. A request that has not ended is not among the samples. */
const minRequests = (24 * normalMilliseconds) / 1_000

/** Begins the outcome of an attack that could not be carried out. */
export const attackFailed = 'the attack failed'

let count = 0
let createdCount = 0

export async function measure(attack: Attack, deps: MeasureDeps): Promise<Outcome> {
  const { platform, probe, neighbour, quietP99 } = deps
  const number = ++count
  const tenants: Tenant[] = []
  const anotherTenant = async () => {
    const tenant = await createTenant(platform, `attacker-${number}-${++createdCount}`, 'Free')
    tenants.push(tenant)
    return tenant
  }
  const attacker = await anotherTenant()
  const ends: (() => unknown)[] = []
  const ending = new AbortController()
  setMaxListeners(0, ending.signal)
  probe.createTenants(attack.createsTenants === true)
  const from = present()
  let until: number | undefined
  const seen = await attack
    .run({
      attacker,
      neighbour,
      address: `127.0.${number}.1`,
      addressOf: (n) => `127.0.${number}.${1 + (n % 250)}`,
      milliseconds: attackMilliseconds,
      isOver: () => present() > (until ??= present() + attackMilliseconds),
      async watch(describe) {
        await sleep(attackMilliseconds)
        const latest = present() + maxWatchMilliseconds
        while (!attack.sees.test(describe()) && present() < latest) await sleep(100)
        return describe()
      },
      controlUrl: platform.controlUrl,
      sqlPort: Number(new URL(attacker.databaseUrl).port),
      postgresPorts: await platform.postgresPorts(),
      anotherTenant,
      control: (method, path, body) => callControl(platform, method, path, body),
      signal: ending.signal,
      onEnd: (end) => ends.push(end),
    })
    .catch((error: unknown) => `${attackFailed}: ${error instanceof Error ? (error.stack ?? '') : String(error)}`)
  // A fast rejection must not end the measurement before the effects show.
  await sleep(Math.max(0, from + attackMilliseconds - present()))
  ending.abort()
  for (const end of ends.reverse()) await end()
  const to = present()
  probe.createTenants(false)
  const normalAt = await untilNormal(deps, to)
  const deletions = await Promise.all(tenants.map((tenant) => deleteTenant(platform, tenant)))
  const during = probe.samples(from, to)
  const all = probe.samples(from, present())
  const p99 = neighboursP99(during)
  return {
    attack,
    target: platform.target,
    seen,
    requests: all.length,
    failures: all.filter(({ failure }) => failure !== undefined),
    p99,
    kinds: describeKinds(during),
    ratio: p99 / quietP99,
    peaks: peaks(probe.memory(from, present())),
    normalAfterMilliseconds: normalAt === undefined ? undefined : normalAt - to,
    // An attack may have deleted one itself.
    notDeleted: deletions.filter((text) => !/"state":"succeeded"|TENANT_NOT_FOUND/.test(text)),
  }
}

/** Waits for a time in which all requests succeeded and none was slow. @returns its begin */
async function untilNormal({ probe, quietP99 }: MeasureDeps, end: number): Promise<number | undefined> {
  const maxMilliseconds = Math.max(alwaysNormalMilliseconds, 3 * quietP99)
  const isBad = ({ failure, milliseconds }: Sample) => failure !== undefined || milliseconds > maxMilliseconds
  for (let at = end; at < end + maxRecoveryMilliseconds;) {
    await sleep(100)
    const bad = probe.samples(at, present()).findLast(isBad)
    if (bad !== undefined) at = bad.at + 1
    const over = present() - at
    if (over < normalMilliseconds) continue
    if (probe.samples(at, at + normalMilliseconds).length >= minRequests) return at
    // The missing requests have been in progress for too long.
    if (over > normalMilliseconds + maxMilliseconds) at += 100
  }
  return undefined
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
