// The passwords of the superusers of the Postgres servers that the control plane creates, one in each Docker region. The first
// one is derived from the master key once, and stored, so that another master key does not change it.
import type { Database } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { Seal } from '../platform/seal.ts'
import { SuperuserUrl } from '../platform/superuser-url.ts'
import type { RegionConfig } from '../regions/index.ts'

interface SealedPasswords {
  superuserPassword: Uint8Array | null
  nextSuperuserPassword: Uint8Array | null
  firstSuperuserPassword: Uint8Array | null
}

/** The passwords of a region's superuser. */
interface RegionPasswords {
  current: string
  /** The password that is being set; undefined for none. */
  next: string | undefined
  /** The password that the server began with. Its container has it, and a new data directory begins with it. */
  first: string
}

/** The columns of all passwords. */
export const passwordColumns = {
  superuserPassword: true,
  nextSuperuserPassword: true,
  firstSuperuserPassword: true,
} as const

/** Returns the contexts of a region's sealed passwords. */
export function passwordContexts(region: string): Record<keyof RegionPasswords, string> {
  return { current: `region:${region}`, next: `region:${region}:next`, first: `region:${region}:first` }
}

/** Decrypts a region's passwords. @returns undefined for a server that the control plane does not create */
export function openPasswords(region: string, row: SealedPasswords, seal: Seal): RegionPasswords | undefined {
  if (row.superuserPassword === null) return undefined
  const contexts = passwordContexts(region)
  const current = seal.open(row.superuserPassword, contexts.current)
  return {
    current,
    next: row.nextSuperuserPassword === null ? undefined : seal.open(row.nextSuperuserPassword, contexts.next),
    first: row.firstSuperuserPassword === null ? current : seal.open(row.firstSuperuserPassword, contexts.first),
  }
}

/** Returns the regions with the stored passwords, and stores those of new regions. */
export function keepSuperuserPasswords(
  database: Database,
  seal: Seal,
  regions: readonly RegionConfig[],
): Promise<RegionConfig[]> {
  return Promise.all(
    regions.map(async (region) => {
      if (region.docker === undefined) return region
      const { id } = region
      // Another control plane may store it at the same time.
      await database.region.updateMany({
        where: { id, superuserPassword: null },
        data: { superuserPassword: seal.seal(region.superuserPassword, passwordContexts(id).current) },
      })
      const read = async () => {
        const row = await database.region.findUniqueOrThrow({ where: { id }, select: passwordColumns })
        return openPasswords(id, row, seal)
      }
      const stored = await read()
      if (stored === undefined) return region
      const url = Object.assign(new URL(region.postgres_url), { password: stored.current })
      const superuser = new SuperuserUrl(url.href, async () => {
        const { next, current, first } = (await read()) ?? stored
        return [...new Set([...(next === undefined ? [] : [next]), current, first])]
      })
      return { ...region, superuserPassword: stored.first, postgres_url: url.href, superuser }
    }),
  )
}

/** Requests of operators for new passwords. */
export type PasswordRequests = ReturnType<typeof createPasswordRequests>

/** Creates the requests, which the leader carries out. */
export function createPasswordRequests(seal: Seal) {
  return {
    /** Stores the region's next password, unless one is being set. */
    async request(region: string, password: string, { transaction, audit }: RecordedWrite): Promise<void> {
      await lock(transaction, `superuser:${region}`)
      const { count } = await transaction.region.updateMany({
        where: { id: region, nextSuperuserPassword: null },
        data: { nextSuperuserPassword: seal.seal(password, passwordContexts(region).next) },
      })
      if (count > 0) audit({ action: 'region.rotate_superuser_password', target: region, detail: {} })
    },
  }
}
