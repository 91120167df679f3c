// The content of the data directory, which is created once and never removed.
//
//   secrets/     master-key, internal-token, postgres-password, platform-key   (0700, files 0600)
//   postgres/    the Postgres of the tenants' homes   control-database/   the Postgres of the control database
//   sockets/     the sockets of both, and of the host of tenants' services, for the services only   (0700)
//   runtime/     blobs and the last manifests         gateway/, gateway-1/ and so on   the last routes, counts and leases
//   compiled/    the services' code, compiled by Node: they start sooner with it
//   backups/     backups of tenants, unless the operator chooses another directory
//   run/         records of running processes         lock       process that runs them
//   containers/  services of tenants with a database of their own, and their data   s/   sockets of their Postgres servers
//   ports.json, regions.json, installation.json
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigurationError, isMissingFile, replaceFile } from '@tenantry/contract'
import { maxSocketBytes, socketFile, socketPorts } from './process/postgres-socket.ts'
import { setOwner, type Identity } from './process/unprivileged.ts'

export interface DataDirectory {
  root: string
  secrets: { masterKey: string; internalToken: string; postgresPassword: string; platformKey: string }
  /** Directory of the Postgres with the tenants' homes. */
  postgres: string
  /** Directory of the Postgres with the control database. */
  controlDatabase: string
  /** Directory of the Unix sockets of both. Only the services can enter it: no tenant, and no function of one. */
  sockets: string
  runtime: string
  /** Directory of compiled code, which Node creates again if it is missing. */
  compiled: string
  /** Directory of backups, unless the operator chooses another one. */
  backups: string
  run: string
}

/**
 * Creates the data directory with its secrets, which are paths of files. initdb creates the directories of Postgres.
 * @param masterKeyFile file with the master key; undefined for a new one, or the one that the directory has
 * @throws ConfigurationError if the path is too long for the sockets in the directory, or if it has another master key
 */
export async function prepareDataDirectory(
  root: string,
  identity: Identity | undefined,
  masterKeyFile?: string,
): Promise<DataDirectory> {
  const directory: DataDirectory = {
    root,
    secrets: {
      masterKey: join(root, 'secrets', 'master-key'),
      internalToken: join(root, 'secrets', 'internal-token'),
      postgresPassword: join(root, 'secrets', 'postgres-password'),
      platformKey: join(root, 'secrets', 'platform-key'),
    },
    postgres: join(root, 'postgres'),
    controlDatabase: join(root, 'control-database'),
    sockets: join(root, 'sockets'),
    runtime: join(root, 'runtime'),
    compiled: join(root, 'compiled'),
    backups: join(root, 'backups'),
    run: join(root, 'run'),
  }
  const excess = Buffer.byteLength(socketFile(directory.sockets, socketPorts.homes)) - maxSocketBytes
  if (excess > 0) {
    const bytes = Buffer.byteLength(root)
    throw new ConfigurationError(
      `The path of the data directory has ${bytes} bytes. Allowed: ${bytes - excess}, because Unix sockets are in it.`,
    )
  }
  await mkdir(root, { recursive: true, mode: 0o711 })
  await setOwner(root, identity)
  for (const name of ['secrets', 'sockets', 'runtime', 'gateway', 'compiled', 'backups']) {
    await mkdir(join(root, name), { recursive: true, mode: 0o700 })
    await setOwner(join(root, name), identity)
  }
  await chmod(directory.sockets, 0o700)
  await mkdir(directory.run, { recursive: true, mode: 0o755 })
  const masterKey = masterKeyFile === undefined ? undefined : await givenMasterKey(masterKeyFile)
  await secret(directory.secrets.masterKey, () => masterKey ?? randomBytes(32).toString('base64'), identity)
  if (masterKey !== undefined && (await readText(directory.secrets.masterKey)) !== masterKey)
    throw new ConfigurationError(
      `The data directory ${JSON.stringify(root)} has another master key. An installation is rebuilt in an empty directory.`,
    )
  await secret(directory.secrets.internalToken, () => randomBytes(32).toString('base64url'), identity)
  await secret(directory.secrets.postgresPassword, () => randomBytes(24).toString('base64url'), identity)
  return directory
}

async function givenMasterKey(file: string): Promise<string> {
  const text = await readText(file)
  if (text.split('\n').some((line) => Buffer.from(line.trim(), 'base64').length !== 32))
    throw new ConfigurationError(`The file ${JSON.stringify(file)} has no master key: 32 bytes in base64 in each line.`)
  return text
}

async function secret(file: string, make: () => string, identity: Identity | undefined): Promise<void> {
  if ((await readText(file)) !== '') return
  await writeAtomically(file, make(), 0o600, identity)
}

export async function readText(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (cause) {
    if (isMissingFile(cause)) return ''
    throw cause
  }
}

/** Replaces a file atomically, with its owner and permissions: after a crash it has the old content or the new one. */
export async function writeAtomically(
  file: string,
  text: string,
  mode: number,
  identity: Identity | undefined,
): Promise<void> {
  await replaceFile(file, text, { mode, beforeRename: (next) => setOwner(next, identity) })
}
