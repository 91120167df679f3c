// The credentials of the etcd of regions with clusters. They are created once, and stored sealed.
import { randomBytes, X509Certificate } from 'node:crypto'
import { ConfigurationError } from '@tenantry/contract'
import { issuePeerCertificate, type AuthorityStore } from '../certificates/index.ts'
import type { Database } from '../platform/database.ts'
import type { Seal } from '../platform/seal.ts'
import type { RegionConfig } from '../regions/index.ts'
import { etcdHosts, parseRange, type EtcdCredentials } from '../stacks/index.ts'

interface EtcdCredentialsDeps {
  database: Database
  seal: Seal
  now: () => Date
  authority: Pick<AuthorityStore, 'get'>
}

const commonName = 'Tenantry etcd'

/**
 * Returns the regions with the credentials of their etcd, and creates those of regions that have clusters for the first
 * time.
 * @throws ConfigurationError when a region without clusters has tenants with clusters
 */
export async function keepEtcdCredentials(
  deps: EtcdCredentialsDeps,
  regions: readonly RegionConfig[],
): Promise<RegionConfig[]> {
  return Promise.all(
    regions.map(async (region) => {
      if (region.docker?.clusters !== undefined) return { ...region, etcd: await credentialsOf(deps, region) }
      const where = { regionId: region.id, isolation: 'cluster-per-tenant' }
      const clusters = await deps.database.tenant.count({ where })
      if (clusters === 0) return region
      throw new ConfigurationError(
        `TENANTRY_REGIONS_FILE: the region "${region.id}" has ${clusters} tenants with clusters, but no "clusters".`,
      )
    }),
  )
}

async function credentialsOf(
  { database, seal, now, authority }: EtcdCredentialsDeps,
  { id, docker }: RegionConfig,
): Promise<EtcdCredentials> {
  const context = `etcd:${id}`
  const hosts = etcdHosts(parseRange(docker?.network_range ?? ''))
  const stored = async (): Promise<EtcdCredentials | undefined> => {
    const { etcdCredentials } = await database.region.findUniqueOrThrow({ where: { id } })
    return etcdCredentials === null ? undefined : (JSON.parse(seal.open(etcdCredentials, context)) as EtcdCredentials)
  }
  const before = await stored()
  if (before !== undefined && isValidFor(before, hosts)) return before
  const issuer = await authority.get()
  const made: EtcdCredentials = {
    authority: issuer.certificate,
    ...issuePeerCertificate(issuer, commonName, hosts, now()),
    seed: before?.seed ?? randomBytes(32).toString('base64url'),
  }
  const data = { etcdCredentials: seal.seal(JSON.stringify(made), context) }
  if (before === undefined) {
    // Another control plane may store its own at the same time.
    await database.region.updateMany({ where: { id, etcdCredentials: null }, data })
    return (await stored()) ?? made
  }
  await database.region.update({ where: { id }, data })
  return made
}

/** Whether the certificate is valid for the hosts, which follow from the region's range of networks. */
function isValidFor({ certificate }: EtcdCredentials, hosts: readonly string[]): boolean {
  const names = new X509Certificate(certificate).subjectAltName ?? ''
  const listed = new Set(names.split(', ').map((name) => name.replace(/^(?:DNS|IP Address):/, '')))
  return hosts.every((host) => listed.has(host))
}
