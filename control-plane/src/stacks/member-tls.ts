// TLS between the members of a cluster that has them on several hosts. All members of a cluster have one certificate, which they also
// trust, and no other. Pure.
import { derivedCertificate, type DerivedCertificate } from '../x509/index.ts'
import type { EtcdCredentials } from './etcd-services.ts'
import { SecretText } from './secret-text.ts'

/** Files of the certificate and of its key, below `/run/secrets`. */
const files = { certificate: 'server.pem', privateKey: 'server-key.pem' } as const
const certificatePath = `/run/secrets/${files.certificate}`

/** Maximum number of certificates in memory. */
const maxKnown = 10_000
/** Certificates by their cluster. Each sweep needs them, and a signature takes a millisecond. */
const known = new WeakMap<Pick<EtcdCredentials, 'seed'>, Map<string, DerivedCertificate>>()

/** Returns the certificate of a cluster and its key, which follow from the region's seed. @param cluster ID of its stack */
export function memberCertificate(etcd: Pick<EtcdCredentials, 'seed'>, cluster: string): DerivedCertificate {
  const certificates = known.get(etcd) ?? new Map<string, DerivedCertificate>()
  known.set(etcd, certificates)
  const found = certificates.get(cluster)
  if (found !== undefined) return found
  const made = derivedCertificate({
    seed: etcd.seed,
    purpose: `member-tls:${cluster}`,
    name: 'Tenantry cluster member',
    hosts: ['postgres-1', 'postgres-2', 'postgres-3'],
  })
  if (certificates.size >= maxKnown) certificates.clear()
  certificates.set(cluster, made)
  return made
}

/** Returns the files with the certificate and its key. */
export function memberTlsFiles(
  etcd: Pick<EtcdCredentials, 'seed'>,
  cluster: string,
): Readonly<Record<string, SecretText>> {
  const { certificate, privateKey } = memberCertificate(etcd, cluster)
  return { [files.certificate]: new SecretText(certificate), [files.privateKey]: new SecretText(privateKey) }
}

/** Settings of a member's Postgres as a server. Tenants' sessions, which arrive through the routers, may have no TLS. */
export const serverTlsParameters = {
  ssl: 'on',
  ssl_cert_file: certificatePath,
  ssl_key_file: `/run/secrets/${files.privateKey}`,
  ssl_min_protocol_version: 'TLSv1.3',
} as const

/**
 * Settings of a member as a client of another one. The certificate trusted is that of the cluster, so its names show nothing more. Postgres
 * cannot bind a password to the channel of a certificate with Ed25519.
 */
export const clientTlsSettings = {
  sslmode: 'verify-ca',
  sslrootcert: certificatePath,
  channel_binding: 'disable',
} as const

/** The environment of a member: Patroni does not pass this setting to the program that copies a database. */
export const clientTlsEnvironment = { PGCHANNELBINDING: clientTlsSettings.channel_binding } as const
