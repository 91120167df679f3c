// The secrets and certificates of a platform on several hosts. They are created once and stored in files.
import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto'
import { ConfigurationError } from '@tenantry/contract'
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
  /** Returns a file; undefined if it does not exist. @throws ConfigurationError if it is empty */
  read(path: string): string | undefined
  /** Writes a file. */
  write(path: string, text: string): void
  /** Returns a file, and creates it if it does not exist. @throws ConfigurationError if it is empty */
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

/**
 * Returns a certificate and its key from two files, and creates both if there is no certificate. The key is written first: one
 * without a certificate is from a run that was interrupted, and has signed nothing.
 * @throws ConfigurationError for a certificate without its key
 */
function stored(files: StoredFiles, path: string, create: () => Issued): Issued {
  const [certificatePath, keyPath] = [`${path}.pem`, `${path}-key.pem`]
  const certificate = files.read(certificatePath)
  if (certificate === undefined) {
    const made = create()
    files.write(keyPath, made.privateKey)
    files.write(certificatePath, made.certificate)
    return made
  }
  const privateKey = files.read(keyPath)
  if (privateKey === undefined)
    throw new ConfigurationError(
      `The file ${keyPath} does not exist, but ${certificatePath} does. Restore it from a copy, or remove both if they are not used yet.`,
    )
  return { certificate, privateKey: checkedKey(privateKey, certificate, path) }
}

/** Returns the key of a certificate. @throws ConfigurationError for another one, and for a file that is not in PEM */
function checkedKey(privateKey: string, certificate: string, path: string): string {
  try {
    if (new X509Certificate(certificate).checkPrivateKey(createPrivateKey(privateKey))) return privateKey
  } catch (cause) {
    throw new ConfigurationError(`The files ${path}.pem and ${path}-key.pem are not in PEM.`, { cause })
  }
  throw new ConfigurationError(`The key in ${path}-key.pem is not that of the certificate in ${path}.pem.`)
}
