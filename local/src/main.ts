// `npm start`: the whole platform on one machine, as child processes of this one.
import { writeSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigurationError, configurationExitCode, readOrExit } from '@tenantry/contract'
import pg from 'pg'
import { lockDataDirectory, DataDirectoryInUse } from './process/data-lock.ts'
import { initialiseDataDirectory, postgresBinaries } from './process/postgres-files.ts'
import { Supervisor } from './process/supervisor.ts'
import { setOwner, serviceIdentity, type Identity } from './process/unprivileged.ts'
import { closeOpenDatabases, ensureClosedDatabase } from '../../control-plane/src/platform/closed-databases.ts'
import { prepareDataDirectory, readText, writeAtomically } from './data-directory.ts'
import { waitForRoutes } from './gateway-routes.ts'
import { parseOptions, usage, UsageError, type LocalOptions } from './options.ts'
import { openLog, openOutput } from './output.ts'
import { directoriesOf, passedSettings } from './passed-settings.ts'
import { choosePorts, PortTaken } from './ports.ts'
import {
  controlPlaneService,
  gatewayService,
  postgresService,
  postgresUrl,
  runtimeService,
  type ServiceOptions,
} from './services.ts'

const options = readOptions()
const passed = readOrExit(() => passedSettings(process.env, process.cwd()))
// With --json, standard output contains only the one JSON line.
const [standardOutput, standardError] = [openOutput(1), openOutput(2)]
const log = options.json
  ? openLog(standardError, options.logLevel, process.stderr.isTTY)
  : openLog(standardOutput, options.logLevel, process.stdout.isTTY)

const stopping = new AbortController()
const expedite = new AbortController()
let supervisor: Supervisor | undefined
let release: (() => Promise<void>) | undefined
// SIGHUP: the terminal was closed.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (stopping.signal.aborted) {
      log.warn('A second signal was received. Remaining processes are killed.')
      expedite.abort()
      return
    }
    log.info({ signal }, 'The installation stops.')
    stopping.abort()
    void stop(0)
  })
}
// The reader of the output may end before this process.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

try {
  await start(options)
} catch (error) {
  if (!stopping.signal.aborted) {
    if (error instanceof ConfigurationError) await endWithError(error)
    if (error instanceof PortTaken || error instanceof DataDirectoryInUse) log.fatal(error.message)
    else log.fatal({ err: error }, error instanceof Error ? error.message : 'The start failed.')
    await stop(1)
  }
}

async function start({ data: root, port, domain, json, logLevel, watch }: LocalOptions): Promise<void> {
  const begin = performance.now()
  const identity = await serviceIdentity()
  const data = await prepareDataDirectory(root, identity)
  release = await lockDataDirectory(root)
  const running = new Supervisor({
    runDirectory: data.run,
    identity,
    log,
    onConfigurationError: (error) => void endWithError(error),
  })
  supervisor = running
  await running.endOrphans()

  const ports = await choosePorts(join(root, 'ports.json'), port)
  const binaries = await postgresBinaries()
  const postgresPassword = await readText(data.secrets.postgresPassword)
  await createBackupDirectory(identity)
  const directories = await directoriesOf(passed)
  const services: ServiceOptions = { data, ports, domain, logLevel, watch, postgresPassword, passed, directories }
  const urls = { control: `http://127.0.0.1:${ports.control}`, gateway: `http://127.0.0.1:${ports.gateway}` }
  const region = {
    id: 'local',
    engine: 'process',
    domain,
    gateway_url: urls.gateway,
    postgres_url: postgresUrl(services, 'postgres'),
    runtime_urls: [`http://127.0.0.1:${ports.runtime}`],
    gateway_internal_urls: [`http://127.0.0.1:${ports.gatewayInternal}`],
  }
  await writeAtomically(join(root, 'regions.json'), JSON.stringify([region]), 0o600, identity)

  const created = await initialiseDataDirectory({
    binaries,
    directory: data.postgres,
    superuserPassword: postgresPassword,
    identity,
  })
  if (created === 'created') log.info('The database was created.')
  // Runtime and gateway can start before the control plane: they wait for it, or continue with stored data.
  const others = Promise.all([running.start(runtimeService(services)), running.start(gatewayService(services))])
  // This failure is reported below, after one of Postgres.
  others.catch(() => undefined)
  await running.start(postgresService(services, binaries))
  await ensureDatabase(postgresUrl(services, 'postgres'), 'tenantry_control')
  const firstRun = (await readText(data.secrets.platformKey)) === ''
  await running.start(controlPlaneService(services))
  await others
  await waitForRoutes(urls.gateway, stopping.signal)

  const platformKey = await readText(data.secrets.platformKey)
  await writeAtomically(
    join(root, 'installation.json'),
    JSON.stringify({ control_url: urls.control, gateway_url: urls.gateway }),
    0o644,
    undefined,
  )
  const seconds = ((performance.now() - begin) / 1000).toFixed(1)
  log.info(`The installation is ready after ${seconds} s.`)
  if (json)
    standardOutput.write(
      `${JSON.stringify({ control_url: urls.control, gateway_url: urls.gateway, platform_key: platformKey, data: root })}\n`,
    )
  else standardOutput.write(welcome({ urls, platformKey, keyFile: data.secrets.platformKey, firstRun }))
}

function welcome({
  urls,
  platformKey,
  keyFile,
  firstRun,
}: {
  urls: { control: string; gateway: string }
  platformKey: string
  keyFile: string
  firstRun: boolean
}): string {
  const key = firstRun ? platformKey : `$(cat ${keyFile})`
  const createTenant =
    `curl -s ${urls.control}/v1/tenants -H "Authorization: Bearer ${key}" -H 'Content-Type: application/json'` +
    ` -H 'Prefer: wait=10' -d '{"name":"acme","plan":"Free","region":"local"}'`
  return `
  control plane   ${urls.control}        (API page: ${urls.control}/docs)
  gateway         ${urls.gateway}        (tenants: ${urls.gateway}/t/NAME)
  platform key    ${firstRun ? `${platformKey}   (shown once; stored in ${keyFile})` : `in ${keyFile}`}

  A first tenant:

    ${createTenant}

  Stop with Ctrl-C.

`
}

/**
 * Creates the directory of backups for the services' own user, which may lack the rights. The operator manages an
 * existing one.
 */
async function createBackupDirectory(identity: Identity | undefined): Promise<void> {
  const directory = passed.controlPlane['TENANTRY_BACKUPS']
  if (directory === undefined) return
  if ((await mkdir(directory, { recursive: true, mode: 0o700 })) !== undefined) await setOwner(directory, identity)
}

async function ensureDatabase(url: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  await client.connect()
  try {
    await ensureClosedDatabase(client, name)
    // This includes databases that an earlier version, or a kill of it, has left open.
    await closeOpenDatabases(client)
  } finally {
    await client.end()
  }
}

/** Ends the installation with an error of a service's configuration, which no restart can correct. */
async function endWithError(error: ConfigurationError): Promise<void> {
  if (stopping.signal.aborted) return
  stopping.abort()
  await stop(configurationExitCode, error.message)
}

/** Stops the installation. @param reason last line of the log, unless a signal caused the stop */
async function stop(code: number, reason?: string): Promise<void> {
  try {
    await supervisor?.stop(expedite.signal)
    await release?.()
    log.info('The installation has stopped.')
  } catch (error) {
    log.error({ err: error }, 'The stop failed.')
    code = 1
  }
  if (reason !== undefined) log.fatal(reason)
  await Promise.all([standardOutput.close(), standardError.close()])
  process.exit(code)
}

function readOptions(): LocalOptions {
  try {
    const parsed = parseOptions(process.argv.slice(2), process.cwd())
    if (parsed !== undefined) return parsed
    writeSync(1, usage)
    process.exit(0)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    writeSync(2, `${error.message}\n\n${usage}`)
    process.exit(2)
  }
}
