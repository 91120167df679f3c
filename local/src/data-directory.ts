// The content of the data directory, which is created once and never removed.
//
//   secrets/     master-key, internal-token, postgres-password, platform-key   (0700, files 0600)
//   postgres/    the embedded Postgres
//   runtime/     blobs and the last manifests        gateway/   the last routes
//   run/         records of running processes         lock       process that runs them
//   ports.json, regions.json, installation.json
import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissingFile } from '@tenantry/contract'
import { setOwner, type Identity } from './process/unprivileged.ts'

export interface DataDirectory {
  root: string
  secrets: { masterKey: string; internalToken: string; postgresPassword: string; platformKey: string }
  postgres: string
  runtime: string
  gateway: string
  run: string
}

/** Creates the data directory with its secrets, which are paths of files. initdb creates `postgres`. */
export async function prepareDataDirectory(root: string, identity: Identity | undefined): Promise<DataDirectory> {
  const directory: DataDirectory = {
    root,
    secrets: {
      masterKey: join(root, 'secrets', 'master-key'),
      internalToken: join(root, 'secrets', 'internal-token'),
      postgresPassword: join(root, 'secrets', 'postgres-password'),
      platformKey: join(root, 'secrets', 'platform-key'),
    },
    postgres: join(root, 'postgres'),
    runtime: join(root, 'runtime'),
    gateway: join(root, 'gateway'),
    run: join(root, 'run'),
  }
  await mkdir(root, { recursive: true, mode: 0o711 })
  await setOwner(root, identity)
  for (const name of ['secrets', 'runtime', 'gateway']) {
    await mkdir(join(root, name), { recursive: true, mode: 0o700 })
    await setOwner(join(root, name), identity)
  }
  await mkdir(directory.run, { recursive: true, mode: 0o755 })
  await secret(directory.secrets.masterKey, () => randomBytes(32).toString('base64'), identity)
  await secret(directory.secrets.internalToken, () => randomBytes(32).toString('base64url'), identity)
  await secret(directory.secrets.postgresPassword, () => randomBytes(24).toString('base64url'), identity)
  return directory
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

/** Replaces a file atomically: after a crash it has the old content or the new one. */
export async function writeAtomically(
  file: string,
  text: string,
  mode: number,
  identity: Identity | undefined,
): Promise<void> {
  const next = `${file}.next`
  const handle = await open(next, 'w', mode)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await setOwner(next, identity)
  await rename(next, file)
}
