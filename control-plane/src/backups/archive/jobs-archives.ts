// Archives the WAL of tenants while this control plane leads.
import type { Engine } from '../../engines/index.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Leadership } from '../../platform/leader.ts'
import { LeadershipLost } from '../../platform/leadership-lost.ts'
import type { Log } from '../../platform/log.ts'
import { repeat } from '../../platform/repeat.ts'
import type { Region } from '../../reconcile/index.ts'
import { componentServices } from '../../stacks/index.ts'
import { publicReason } from '../backup-error.ts'
import { needsBase, type Archive } from './archive.ts'
import type { ArchiveFiles } from './archive-files.ts'
import { expire, removeArchive, storeSegments, takeBase, type ArchiveDeps, type Known } from './archive-tenant.ts'
import type { ArchivedServer } from './spool.ts'
import type { ArchivedTenant, ArchiveLedger } from './store-archives.ts'

/** The dependencies of the job that archives the WAL of tenants. */
export interface ArchiveJobDeps {
  ledger: ArchiveLedger
  files: ArchiveFiles
  regions: ReadonlyMap<string, ArchivedRegion>
  clock: Clock
  log: Pick<Log, 'warn'>
  /** Receives the state of all archives after each poll. */
  measure: (state: ArchiveState) => void
}

/** The parts of a region that archives use. */
type ArchivedRegion = Pick<Region, 'engine' | 'primaryService'>
type PresentRegion = ArchivedRegion & { engine: Engine }

/** The state of all tenants' archives. */
export interface ArchiveState {
  /** The greatest time in seconds that a running tenant's archive lacks; 0 without archives. */
  lagSeconds: number
  /** Running tenants whose archive has failed, or that cannot be recovered yet. */
  failed: number
}

const pollMs = 10_000
/** Reads of a container cost the host a tenth of a second, so many tenants are read less often. */
const pollMsPerTenant = 250
/** Maximum numbers in each region. */
const parallelReads = 4
const parallelBases = 2
/** The number of times that one poll reads the segments of a tenant that has more of them than one read returns. */
const maxReads = 4
const readMs = 120_000
/** The time of a read of a tenant whose last read did not end in time. A target may need most of it for one segment. */
const silentReadMs = 45_000
/** The time in which an engine responds to a small request. */
const engineMs = 10_000
const baseMs = 6 * 3_600_000
const retryBaseMs = 5 * 60_000
const expireMs = 3_600_000

/** Creates the job, which runs while this control plane leads. */
export function runArchives(deps: ArchiveJobDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log } = deps
  return async ({ epoch, lost }) => {
    const poll = createPoll({ ...deps, epoch }, lost)
    const repeated = (work: () => Promise<number>) =>
      repeat(
        {
          clock,
          work,
          onError: (error) => log.warn({ err: error }, 'The archives could not be polled. The poll is retried.'),
        },
        lost,
      )
    // Each region has a loop of its own, so that an engine that does not respond delays no other region.
    await Promise.all([
      repeated(() => poll.tidy()),
      ...[...deps.regions.keys()].map((region) => repeated(() => poll.run(region))),
    ])
    await poll.idle()
  }
}

/** Creates the polls of all regions. They remember observations and running base backups between two runs. */
export function createPoll(deps: ArchiveJobDeps & ArchiveDeps, lost: AbortSignal) {
  const { ledger, regions, clock, log, epoch, measure } = deps
  const progress = new Map<string, Known>()
  const bases = new Map<string, { region: string; ended: Promise<void> }>()
  /** The tenants whose last read did not end in time. */
  const silent = new Set<string>()
  const retryBaseAt = new Map<string, number>()
  const expiredAt = new Map<string, number>()

  const failed = async (archive: Archive, cause: unknown, text: string) => {
    if (cause instanceof LeadershipLost || lost.aborted) return
    log.warn({ tenant: archive.tenantId, archive: archive.id, err: cause }, text)
    await ledger.fail(archive, publicReason(cause), epoch)
  }

  const beginBase = (archive: Archive, region: string, server: ArchivedServer) => {
    const base = takeBase(archive, server, deps, AbortSignal.any([lost, clock.timeout(baseMs)]))
      .then(() => {
        retryBaseAt.delete(archive.id)
        // What an interrupted base backup has left is removed at the next poll.
        expiredAt.delete(archive.id)
      })
      .catch(async (cause: unknown) => {
        retryBaseAt.set(archive.id, clock.now().getTime() + retryBaseMs)
        await failed(archive, cause, 'A base backup of an archive failed.')
      })
      .catch((cause: unknown) =>
        log.warn({ archive: archive.id, err: cause }, 'A failed base backup was not recorded.'),
      )
      .finally(() => bases.delete(archive.id))
    bases.set(archive.id, { region, ended: base })
  }

  const current = async ({ id, tenantId }: Archive) => (await ledger.of(tenantId)).find((archive) => archive.id === id)

  /** Stores the segments that wait, and begins a base backup when one is due. */
  const add = async (
    archive: Archive,
    tenant: ArchivedTenant,
    region: PresentRegion,
    reads = maxReads,
  ): Promise<void> => {
    const { id, regionId } = tenant
    const limit = clock.timeout(silent.has(id) ? silentReadMs : readMs)
    try {
      const signal = AbortSignal.any([lost, limit])
      const server = await serverOf(tenant, region, signal)
      const known = { progress: progress.get(archive.id), isBaseFailed: retryBaseAt.has(archive.id) }
      const { progress: next, isReady, hasMore } = await storeSegments(archive, server, known, deps, signal)
      progress.set(archive.id, next)
      silent.delete(id)
      const mayRetry = clock.now().getTime() >= (retryBaseAt.get(archive.id) ?? 0)
      const running = [...bases.values()].filter(({ region }) => region === regionId).length
      const mayBegin = isReady && mayRetry && !bases.has(archive.id) && running < parallelBases
      // A base backup may have been completed since the archive was read.
      const open = await current(archive)
      if (open === undefined || lost.aborted) return
      if (mayBegin && needsBase(open, clock.now())) beginBase(open, regionId, server)
      if (hasMore && reads > 1) await add(open, tenant, region, reads - 1)
    } catch (cause) {
      if (limit.aborted) silent.add(id)
      await failed(archive, cause, 'The WAL of a tenant could not be archived.')
    }
  }

  /** Whether an engine responds. Without it, no tenant of its region can be read. */
  const responds = async (engine: Engine) => {
    const limit = clock.timeout(engineMs)
    const late = new Promise<boolean>((resolve) =>
      limit.addEventListener('abort', () => resolve(false), { once: true }),
    )
    const informed = engine.info(AbortSignal.any([lost, limit])).then(
      () => true,
      () => false,
    )
    return Promise.race([informed, late])
  }

  const follow = async (tenant: ArchivedTenant, region: PresentRegion) => {
    const isOpen = ({ state }: Archive) => state === 'open'
    if (!(await ledger.of(tenant.id)).some(isOpen)) await ledger.begin(tenant.id, epoch)
    for (const archive of await ledger.of(tenant.id)) {
      if (isOpen(archive)) await add(archive, tenant, region)
      const now = clock.now().getTime()
      if (now - (expiredAt.get(archive.id) ?? -Infinity) < expireMs || bases.has(archive.id)) continue
      expiredAt.set(archive.id, now)
      // A base backup may have been completed since the archive was read.
      const fresh = await current(archive)
      if (fresh !== undefined) await expire(fresh, tenant.days, deps)
    }
  }

  /** Removes an archive. A failure, which is retried in the next poll, must not delay the archives of others. */
  const removeUnwanted = async (archive: Archive) => {
    try {
      await removeArchive(archive, deps)
    } catch (cause) {
      if (cause instanceof LeadershipLost || lost.aborted) throw cause
      log.warn({ tenant: archive.tenantId, archive: archive.id, err: cause }, 'An archive could not be removed.')
    }
  }

  return {
    /** Removes the archives of tenants that have none any more. @returns milliseconds until the next run */
    async tidy(): Promise<number> {
      for (const archive of await ledger.unwanted()) if (!bases.has(archive.id)) await removeUnwanted(archive)
      measure(await stateOf(await ledger.archived(), ledger, clock.now()))
      return pollMs
    },

    /**
     * Polls every tenant of a region once. It ends soon when the region's engine does not respond.
     * @returns milliseconds until the next poll
     */
    async run(region: string): Promise<number> {
      const found = regions.get(region)
      if (found?.engine === undefined) return pollMs
      const { engine } = found
      const present = { ...found, engine }
      const tenants = await ledger.archived(region)
      if (tenants.some(({ id }) => silent.has(id)) && !(await responds(engine))) return pollMs
      let isAway = false
      const waiting = tenants.values()
      const reader = async () => {
        for (const tenant of waiting) {
          if (isAway || lost.aborted) return
          await follow(tenant, present).catch((cause: unknown) => {
            if (cause instanceof LeadershipLost || lost.aborted) return
            log.warn({ tenant: tenant.id, err: cause }, 'The archive of a tenant could not be polled.')
          })
          if (silent.has(tenant.id)) isAway ||= !(await responds(engine))
        }
      }
      await Promise.all(Array.from({ length: parallelReads }, reader))
      return Math.max(pollMs, tenants.length * pollMsPerTenant)
    },

    /** Resolves when no base backup is being taken. */
    async idle(): Promise<void> {
      await Promise.all([...bases.values()].map(({ ended }) => ended))
    },
  }
}

/** Returns the Postgres of a tenant; of a cluster, the present primary. @throws EngineError UNHEALTHY if there is none */
async function serverOf(
  { id, isolation }: ArchivedTenant,
  { engine, primaryService }: PresentRegion,
  signal: AbortSignal,
): Promise<ArchivedServer> {
  const service = await primaryService({ id, isolation }, signal)
  const replicas = componentServices(isolation).postgres.filter((name) => name !== service)
  return { engine, stack: id, service, replicas }
}

async function stateOf(tenants: readonly ArchivedTenant[], ledger: ArchiveLedger, now: Date): Promise<ArchiveState> {
  const state = { lagSeconds: 0, failed: 0 }
  for (const { id } of tenants) {
    const open = (await ledger.of(id)).find(({ state }) => state === 'open')
    if (open?.error !== undefined || open?.latest === undefined) state.failed++
    const since = open?.latest ?? open?.createdAt ?? now
    state.lagSeconds = Math.max(state.lagSeconds, (now.getTime() - since.getTime()) / 1000)
  }
  return state
}
