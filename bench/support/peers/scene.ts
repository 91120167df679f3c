// The scene of the benchmark of peers: an installation as `npm start` runs it, with tenants behind its gateway, and the peers
// with the same rows and the same command.
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { connected } from '#control-plane/platform/single-connection.ts'
import { compileFunction } from '#examples/functions/compile.ts'
import { startInstallation, type Installation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'
import { createTenant, deployFunction, readRegion, signToken, type InstalledTenant } from '../installed.ts'
import { fillTodos, todos, type User } from '../rest-scene.ts'
import { sendJson } from '../send-json.ts'
import type { Location } from '../transfer.ts'
import { startFunctionPeers } from './function-peers.ts'
import type { PeerPrograms } from './packages.ts'
import { processesOf, type Processes } from '../processes.ts'
import type { RestService } from './rest-operations.ts'
import { startRestPeer } from './rest-peer.ts'

export interface Service {
  port: number
  processes: Processes
  /** Returns where the service has a path, for a user. */
  at(user: Pick<User, 'token'>, path: string): Location
}

export interface PeersScene {
  /** The users that own rows. */
  users: readonly User[]
  rest: Record<RestService, Service>
  /** Services that respond with the command's output. */
  functions: Record<'tenantry' | 'workerd' | 'deno', Service>
  /** The user that calls the function. */
  caller: Pick<User, 'token'>
  stop(): Promise<void>
}

/** The rate limit of the tenants, which is on and never reached. */
const rateLimit = { per_second: 1_000_000, burst: 1_000_000 }
const functionName = 'greet'
/** The body that the caller sends to the function. */
export const event = '{"name":"Ada"}'
/** The function's response to the caller. */
export const greeting = '{"greeting":"Hello, Ada!","user_id":"ada"}'

/**
 * Opens the scene.
 * @param directory an empty directory
 * @param connections the peer's connections to Postgres
 */
export async function openScene(directory: string, programs: PeerPrograms, connections: number): Promise<PeersScene> {
  // The services' user enters it.
  await chmod(directory, 0o711)
  const stops: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const end of stops.toReversed()) await end()
  }
  try {
    const installation = await startInstallation({ dataDirectory: join(directory, 'data'), warmHomes: 10 })
    stops.push(() => installation.stop())
    const [rows, functions] = [await openTenant(installation, 'rows'), await openTenant(installation, 'functions')]
    const processes = await processesOf(installation)
    const gatewayPort = portOf(installation)

    await sendJson(rows.at({ token: rows.secretKey }, '/rest/v1/schemas'), 'POST', 201, todos)
    await sendJson(rows.at({ token: rows.secretKey }, '/admin/reload-schemas'), 'POST', 200, {})
    const region = await readRegion(installation.data)
    const connection = { connectionString: region.homes(rows.database) }
    const { users, restPeer } = await connected(connection, async (session) => {
      await session.query(`set search_path = ${rows.id}`)
      const users = await fillTodos(session, rows.jwtSecret)
      return { users, restPeer: await startRestPeer(directory, programs.platformaticDb, session, connections) }
    })
    stops.push(() => restPeer.stop())

    const command = await compileFunction(functionName)
    const url = `${installation.gatewayUrl}/t/${functions.name}`
    await deployFunction(url, { authorization: `Bearer ${functions.secretKey}` }, functionName, command)
    const { workerd, deno } = await startFunctionPeers(directory, programs, command)
    stops.push(workerd.stop, deno.stop)
    const caller = { token: signToken(functions.jwtSecret, 'ada') }
    const peer = (port: number, processes: Processes): Service => ({
      port,
      processes,
      at: (_user, path) => ({ port, path, headers: {} }),
    })
    const scene: PeersScene = {
      users,
      rest: {
        tenantry: { port: gatewayPort, processes, at: (user, path) => rows.at(user, `/rest/v1${path}`) },
        platformaticDb: peer(restPeer.port, { process: [restPeer.pid], Postgres: [restPeer.postgresPid] }),
      },
      functions: {
        tenantry: {
          port: gatewayPort,
          processes,
          at: (user) => functions.at(user, `/functions/v1/invoke/${functionName}`),
        },
        workerd: peer(workerd.port, { process: [workerd.pid] }),
        deno: peer(deno.port, { process: [deno.pid] }),
      },
      caller,
      stop,
    }
    for (const service of Object.values(scene.functions))
      await until(() => isServed(service.at(caller, '/')), 'a function is served', 20_000)
    return scene
  } catch (error) {
    await stop()
    throw error
  }
}

export interface OpenTenant extends InstalledTenant {
  /** Returns where the gateway has a path of the tenant. */
  at: Service['at']
}

/** Creates a tenant whose requests, rate and storage are limited, and waits until the gateway serves it. */
export async function openTenant(installation: Installation, name: string): Promise<OpenTenant> {
  const tenant = await createTenant(installation, name, 'Pro', { rate_limit: rateLimit })
  const at: Service['at'] = ({ token }, path) => ({
    port: portOf(installation),
    path: `/t/${name}${path}`,
    headers: { authorization: `Bearer ${token}` },
  })
  await until(
    async () => (await statusOf(at({ token: tenant.secretKey }, '/storage/v1/bucket'))) === 200,
    `the tenant ${name} is served`,
    20_000,
  )
  return { ...tenant, at }
}

async function statusOf({ port, path, headers }: Location): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
  await response.body?.cancel()
  return response.status
}

async function isServed(location: Location): Promise<boolean> {
  const output = await sendJson(location, 'POST', 200, JSON.parse(event) as object).catch(() => undefined)
  return JSON.stringify(output) === greeting
}

function portOf({ gatewayUrl }: Installation): number {
  return Number(new URL(gatewayUrl).port)
}
