// The secrets and certificates of a platform on several hosts. They are created once and stored in files.
import { randomBytes } from 'node:crypto'
import {
  type Authority,
  type Issued,
  issuePeerCertificate,
  issueServerCertificate,
  newAuthority,
} from '../certificates/index.ts'
import { etcdHosts } from '../stacks/index.ts'
import type { DatabaseSecrets } from './control-database.ts'
import { databaseName } from './control-database.ts'
import { databaseRange, dockerProxyAddress } from './platform-networks.ts'
import type { PlatformOptions } from './platform-options.ts'

/** The files of the platform that outlive a run. */
export interface StoredFiles {
  /** Returns a file; undefined if it does not exist. */
  read(path: string): string | undefined
  /** Returns a file, and creates it if it does not exist. */
  keep(path: string, create: () => string): string
  /** Returns the names of the files in a directory; none if it does not exist. */
  names(directory: string): string[]
}

/** The secrets of a platform. */
export type PlatformSecrets = ReturnType<typeof platformSecrets>

/** Returns the secrets, and creates those that are missing. */
export function platformSecrets(options: PlatformOptions, files: StoredFiles, now: Date) {
  const random = (encoding: 'base64' | 'base64url') => `${randomBytes(32).toString(encoding)}\n`
  const authority = (name: string): Authority => {
    const made = stored(files, `authorities/${name}`, () => newAuthority(`${options.name} ${name}`, now))
    return { certificate: made.certificate, privateKey: made.privateKey }
  }
  const proxies = authority('docker-proxies')
  return {
    masterKey: files.keep('secrets/master-key', () => random('base64')),
    internalToken: files.keep('secrets/internal-token', () => random('base64url')),
    /** Certificate of the authority of the Docker proxies. */
    proxyAuthority: proxies.certificate,
    controlPlane: stored(files, 'issued/control-plane', () =>
      issuePeerCertificate(proxies, 'control plane', ['control-plane'], now),
    ),
    /** Certificates of the Docker proxies, by host. */
    proxies: new Map(
      options.hosts.map((host) => {
        const name = `docker-proxy-${host.id}`
        const address = dockerProxyAddress(options, host)
        return [host.id, stored(files, `issued/${name}`, () => issueServerCertificate(proxies, name, [address], now))]
      }),
    ),
    /** The certificate for clients of the gateways; undefined if the operator has one. */
    server: options.hasCertificate
      ? undefined
      : stored(files, 'issued/server', () => {
          const names = [options.domain, `*.${options.domain}`]
          const own = authority('clients')
          const { certificate, privateKey } = issueServerCertificate(own, 'Tenantry', names, now)
          return { certificate: `${certificate}${own.certificate}`, privateKey }
        }),
    database: options.hasControlDatabase ? databaseSecrets(options, files, authority, now) : undefined,
  }
}

function databaseSecrets(
  options: PlatformOptions,
  files: StoredFiles,
  authority: (name: string) => Authority,
  now: Date,
): DatabaseSecrets {
  const random = () => `${randomBytes(32).toString('base64url')}\n`
  const etcd = authority('etcd')
  const issued = stored(files, 'issued/etcd', () =>
    issuePeerCertificate(etcd, 'Tenantry etcd', etcdHosts(databaseRange(options)), now),
  )
  const superuserPassword = files.keep('secrets/superuser-password', random).trim()
  files.keep(
    'secrets/control-database-url',
    () => `postgresql://postgres:${superuserPassword}@${databaseName}:5432/postgres\n`,
  )
  return {
    superuserPassword,
    etcd: { authority: etcd.certificate, ...issued, seed: files.keep('secrets/etcd-seed', random).trim() },
  }
}

/** Returns a certificate and its key from two files, and creates both if one is missing. */
function stored(files: StoredFiles, path: string, create: () => Issued): Issued {
  let made: Issued | undefined
  const part = (file: string, of: keyof Issued) => files.keep(`${path}${file}`, () => (made ??= create())[of])
  return { certificate: part('.pem', 'certificate'), privateKey: part('-key.pem', 'privateKey') }
}
