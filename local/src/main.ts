// `npm start`: the whole platform on one machine, as child processes of this one.
import { writeSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError, configurationExitCode, readOrExit } from '@tenantry/contract'
import { readPasswordFile } from '../../control-plane/src/platform/superuser-url.ts'
import { lockDataDirectory, DataDirectoryInUse } from './process/data-lock.ts'
import { initialiseDataDirectory, postgresBinaries } from './process/postgres-files.ts'
import { socketUrl } from './process/postgres-socket.ts'
import { Supervisor } from './process/supervisor.ts'
import { setOwner, serviceIdentity, type Identity } from './process/unprivileged.ts'
import { ensureControlDatabase } from './control-database.ts'
import { prepareDataDirectory, readText, writeAtomically } from './data-directory.ts'
import { endFormerGateways, type FormerGateway } from './former-gateways.ts'
import { createGatewayDirectories, formerGateways } from './gateway-directories.ts'
import { waitForGateways } from './gateway-sync.ts'
import { parseOptions, usage, UsageError, type LocalOptions } from './options.ts'
import { openLog, openOutput } from './output.ts'
import { directoriesOf, passedSettings } from './passed-settings.ts'
import { choosePorts, PortTaken, sparePorts } from './ports.ts'
import { postgresServers, writeAccessFiles } from './postgres-servers.ts'
import { openTenantServices } from './tenant-services.ts'
import { recoverControlDatabase, restoreTenants } from './recover.ts'
import {
  controlPlaneService,
  controlPlaneStopOrder,
  gatewayService,
  gatewayServices,
  postgresServices,
  regionId,
  runtimeServices,
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
let openingTenantServices: ReturnType<typeof openTenantServices> | undefined
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

async function start(options: LocalOptions): Promise<void> {
  const { data: root, port, runtimes, gateways, warmHomes, domain, json, logLevel, watch } = options
  const begin = performance.now()
  const identity = await serviceIdentity()
  const data = await prepareDataDirectory(root, identity, options.recover)
  release = await lockDataDirectory(root)
  const running = new Supervisor({
    runDirectory: data.run,
    identity,
    log,
    onConfigurationError: (error) => void endWithError(error),
  })
  supervisor = running
  await running.endOrphans()

  await createGatewayDirectories(root, gateways, identity)
  const portsFile = join(root, 'ports.json')
  const ports = await choosePorts(portsFile, port, { runtimes, gateways })
  const gatewayUrls = ports.gatewayInternals.map((internal) => `http://127.0.0.1:${internal}`)
  const binaries = await postgresBinaries()
  const [postgresPassword] = readPasswordFile(data.secrets.postgresPassword, 'secrets/postgres-password')
  await createBackupDirectory(identity)
  const directories = await directoriesOf(passed)
  // A stop closes only what it finds open or opening.
  stopping.signal.throwIfAborted()
  openingTenantServices = openTenantServices({
    data,
    binaries,
    identity,
    ports,
    gatewayUrl: gatewayUrls[0] ?? '',
    logLevel,
    runtimeSettings: passed.runtime,
    log,
  })
  const tenantServices = await openingTenantServices
  const servers = postgresServers(data, postgresPassword, runtimes)
  const services: ServiceOptions = { data, ports, domain, logLevel, watch, servers, passed, directories }
  const urls = { control: `http://127.0.0.1:${ports.control}`, gateway: `http://127.0.0.1:${ports.gateway}` }
  const region = {
    id: regionId,
    engine: 'process',
    domain,
    gateway_url: urls.gateway,
    postgres_url: socketUrl(servers.homes, 'postgres'),
    postgres_password_file: data.secrets.postgresPassword,
    // Clients of tenants connect to the gateway's Postgres proxy.
    database_host: `127.0.0.1:${passed.gateway['TENANTRY_POSTGRES_PORT'] ?? ports.postgres}`,
    // The position of a runtime is its number.
    runtime_urls: ports.runtimes.map((runtime) => `http://127.0.0.1:${runtime}`),
    warm_homes: warmHomes,
    gateway_internal_urls: gatewayUrls,
    processes: tenantServices?.settings,
  }
  await writeAtomically(join(root, 'regions.json'), JSON.stringify([region]), 0o600, identity)

  const access = { binaries, superuserPassword: postgresPassword, identity }
  const { controlDatabase, homes } = servers
  const created = await initialiseDataDirectory({ ...access, directory: controlDatabase.directory })
  // The first one is still unused if this start has created it.
  const template = created === 'created' ? controlDatabase.directory : undefined
  if ((await initialiseDataDirectory({ ...access, directory: homes.directory, template })) === 'created')
    log.info('The database was created.')
  await Promise.all([homes, controlDatabase].map((server) => writeAccessFiles(server, identity)))
  // Runtimes and gateways can start before the control plane: they wait for it, or continue with stored data.
  const others = Promise.all(
    [...runtimeServices(services), ...gatewayServices(services)].map((service) => running.start(service)),
  )
  // This failure is reported below, after one of Postgres.
  others.catch(() => undefined)
  const postgres = postgresServices(services, binaries)
  await Promise.all([running.start(postgres.homes), running.start(postgres.controlDatabase)])
  await ensureControlDatabase({
    homes: (database) => homes.superuser.in(database),
    control: (database) => controlDatabase.superuser.in(database),
    directory: join(root, 'move'),
    identity,
    log,
  })
  const controlPlane = controlPlaneService(services)
  const program = { service: controlPlane, identity, output: json ? 2 : 1, signal: stopping.signal }
  if (options.recover !== undefined) await recoverControlDatabase(program)
  const firstRun = (await readText(data.secrets.platformKey)) === ''
  const since = new Date()
  await running.start(controlPlane)
  await others
  await waitForGateways(gatewayUrls, stopping.signal)
  const former = await formerGatewaysOf(services, portsFile)
  await endFormerGateways(former, {
    root,
    supervisor: running,
    signal: stopping.signal,
    expedite: expedite.signal,
    log,
  })

  if (options.recover !== undefined && !(await restoreTenants(program, urls.control, data.secrets.platformKey, since)))
    log.error('Some tenants were not restored. Start with --recover again after you have removed the cause.')
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

/** Returns the gateways that an earlier start had in addition, at ports of their own. */
async function formerGatewaysOf(services: ServiceOptions, portsFile: string): Promise<FormerGateway[]> {
  const { data, ports } = services
  const numbers = await formerGateways(data.root, ports.gatewayInternals.length)
  const spare = await sparePorts(portsFile, ports, 2 * numbers.length)
  return numbers.map((number, at) => {
    const [port = 0, internalPort = 0] = spare.slice(2 * at)
    const service = gatewayService(services, { number, port, internalPort, isPortShared: false })
    return { number, service, url: `http://127.0.0.1:${internalPort}` }
  })
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

/** Ends the installation with an error of a service's configuration, which no restart can correct. */
async function endWithError(error: ConfigurationError): Promise<void> {
  if (stopping.signal.aborted) return
  stopping.abort()
  await stop(configurationExitCode, error.message)
}

/** Stops the installation. @param reason last line of the log, unless a signal caused the stop */
async function stop(code: number, reason?: string): Promise<void> {
  try {
    await supervisor?.stop(expedite.signal, controlPlaneStopOrder)
    // The start reports why they could not be opened.
    const tenantServices = await openingTenantServices?.catch(() => undefined)
    await tenantServices?.close(expedite.signal).catch((error: unknown) => {
      log.error({ err: error }, "Not all of the tenants' services could be stopped.")
      code = 1
    })
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
    const parsed = parseOptions(process.argv.slice(2), { cwd: process.cwd(), cores: availableParallelism() })
    if (parsed !== undefined) return parsed
    writeSync(1, usage)
    process.exit(0)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    writeSync(2, `${error.message}\n\n${usage}`)
    process.exit(2)
  }
}
