// The scene of storage's benchmark: an installation with one tenant, and the bare server on the same disk and the same
// Postgres, with a bare forwarder in front of it.
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { internalTokenHeader, tenantHeader } from '@tenantry/contract'
import pg from 'pg'
import { startInstallation, type Installation } from '#test/support/installation.ts'
import { startChild } from './child.ts'
import { createTenant, readRegion, signToken } from './installed.ts'
import type { Location } from './transfer.ts'

export interface StorageScene {
  installation: Installation
  /** Returns the location of a path of the tenant's storage at the runtime, for the user who owns its buckets. */
  atRuntime(path: string): Location
  throughGateway(path: string): Location
  /** Returns the location of a path of the bare server. */
  atBare(path: string): Location
  throughForwarder(path: string): Location
  /** Runs a statement in the tenant's home as the superuser. */
  rows(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Opens a session of the home's superuser. */
  session(): Promise<pg.Client>
  tenantId: string
  userId: string
  /**
   * Starts a new runtime process with empty caches.
   * @returns its process ID
   */
  restart(): Promise<number>
  stop(): Promise<void>
}

const userId = '11111111-1111-4111-8111-111111111111'

export async function openScene(directory: string): Promise<StorageScene> {
  const data = join(directory, 'data')
  let installation = await startInstallation({ dataDirectory: data, runtimes: 1 })
  let region = await readRegion(data)
  const tenant = await createTenant(installation, 'acme', 'Enterprise')
  const token = signToken(tenant.jwtSecret, userId)
  const internal = (await readFile(join(data, 'secrets', 'internal-token'), 'utf8')).trim()
  const bareFiles = join(directory, 'bare')
  await mkdir(bareFiles)
  const startBare = async () => {
    const store = await startChild(support('bare-store.ts'), [bareFiles, region.postgres])
    const forwarder = await startChild(support('bare-forwarder.ts'), [String(store.firstOutput['port'])])
    return { store, forwarder }
  }
  let bare = await startBare()
  const stopBare = async () => {
    await bare.forwarder.stop()
    await bare.store.stop()
  }
  const session = async () => {
    const client = new pg.Client({ connectionString: region.homes(tenant.database) })
    await client.connect()
    await client.query(`set search_path = ${tenant.id}`)
    return client
  }
  const scene: StorageScene = {
    get installation() {
      return installation
    },
    atRuntime: (path) => ({
      port: region.runtimePort,
      path: `/storage/v1${path}`,
      headers: { authorization: `Bearer ${token}`, [internalTokenHeader]: internal, [tenantHeader]: tenant.id },
    }),
    throughGateway: (path) => ({
      port: Number(new URL(installation.gatewayUrl).port),
      path: `/t/${tenant.name}/storage/v1${path}`,
      headers: { authorization: `Bearer ${token}` },
    }),
    atBare: (path) => ({
      port: Number(bare.store.firstOutput['port']),
      path,
      headers: { authorization: `Bearer ${token}` },
    }),
    throughForwarder: (path) => ({
      port: Number(bare.forwarder.firstOutput['port']),
      path,
      headers: { authorization: `Bearer ${token}` },
    }),
    async rows(text, values = []) {
      const client = await session()
      try {
        return (await client.query<Record<string, unknown>>(text, values)).rows
      } finally {
        await client.end()
      }
    },
    session,
    tenantId: tenant.id,
    userId,
    async restart() {
      await stopBare()
      await installation.stop()
      installation = await startInstallation({ dataDirectory: data, runtimes: 1 })
      region = await readRegion(data)
      bare = await startBare()
      await untilServed(scene)
      return installation.pid('runtime-0')
    },
    async stop() {
      await stopBare()
      await installation.stop()
    },
  }
  await untilServed(scene)
  for (const name of ['large', 'small', 'many']) {
    const { port, path, headers } = scene.atRuntime('/bucket')
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    })
    if (response.status !== 201) throw new Error(`bucket ${name}: ${response.status} ${await response.text()}`)
  }
  return scene
}

/** Waits until storage responds at the runtime and through the gateway, which needs the database too. */
async function untilServed(scene: StorageScene): Promise<void> {
  const deadline = performance.now() + 20_000
  for (const { port, path, headers } of [scene.atRuntime('/bucket'), scene.throughGateway('/bucket')]) {
    for (;;) {
      // Connections to a runtime that was stopped may still be open in this process.
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers }).catch(() => undefined)
      await response?.body?.cancel()
      if (response?.status === 200) break
      if (performance.now() > deadline) throw new Error(`The tenant was not served within 20 s: ${response?.status}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

function support(file: string): string {
  return new URL(`./${file}`, import.meta.url).pathname
}
