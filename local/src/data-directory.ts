// What lies in the data directory: made once, kept for ever.
//
//   secrets/     master-key, internal-token, postgres-password, platform-key   (0700, files 0600)
//   postgres/    the embedded Postgres
//   runtime/     blobs and the last manifests        gateway/   the last routes
//   run/         which processes run                 lock       who runs them
//   ports.json, regions.json, installation.json
import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissingFile } from '@tenantry/contract'
import { giveTo, type Identity } from './process/unprivileged.ts'

export interface DataDirectory {
  root: string
  secrets: { masterKey: string; internalToken: string; postgresPassword: string; platformKey: string }
  postgres: string
  runtime: string
  gateway: string
  run: string
}

/** Files of `secrets` are paths; `postgres` itself is made by initdb. */
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
  await giveTo(root, identity)
  for (const name of ['secrets', 'runtime', 'gateway']) {
    await mkdir(join(root, name), { recursive: true, mode: 0o700 })
    await giveTo(join(root, name), identity)
  }
  await mkdir(directory.run, { recursive: true, mode: 0o755 })
  await secret(directory.secrets.masterKey, () => randomBytes(32).toString('base64'), identity)
  await secret(directory.secrets.internalToken, () => randomBytes(32).toString('base64url'), identity)
  await secret(directory.secrets.postgresPassword, () => randomBytes(24).toString('base64url'), identity)
  return directory
}

async function secret(file: string, make: () => string, identity: Identity | undefined): Promise<void> {
  if ((await readText(file)) !== '') return
  await writeWhole(file, make(), 0o600, identity)
}

export async function readText(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (cause) {
    if (isMissingFile(cause)) return ''
    throw cause
  }
}

/** The old content or the new one, on disk, never a part. */
export async function writeWhole(
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
  await giveTo(next, identity)
  await rename(next, file)
}
