// The runtime as a process: reads its environment, builds, listens, stops. Nothing else touches `process`.
import { join } from 'node:path'
import { readOrExit, stopOnSignals } from '@tenantry/contract'
import pino from 'pino'
import { buildApp } from './app.ts'
import { readConfig } from './config.ts'
import { Connections, defaultConnectionLimits } from './database/connections.ts'
import { createEventsArea } from './events/events-area.ts'
import { createFunctionsArea, type FunctionsArea } from './functions/functions-area.ts'
import { followTables } from './functions/triggers/table-triggers.ts'
import { createMeteringArea } from './metering/metering-area.ts'
import { RunWitness } from './metering/run-witness.ts'
import { WitnessFile } from './metering/witness-file.ts'
import { createRestArea } from './rest/rest-area.ts'
import { openBackend } from './storage/backend/open-backend.ts'
import { parseStorageFailpoints } from './storage/failpoints.ts'
import { createStorageArea } from './storage/storage-area.ts'
import type { Area } from './tenancy/area.ts'
import { Authenticator } from './tenancy/authenticate.ts'
import { TenantRegistry } from './tenancy/tenant-registry.ts'

/** A stop waits so long for requests under way. */
const drainMilliseconds = 10_000

const config = readOrExit(() => readConfig(process.env))
const log = pino({ level: config.logLevel, base: null })
const now = () => new Date()
const problem = (error: Error) => log.warn({ err: error }, error.message)

const connections = new Connections({ ...defaultConnectionLimits, total: config.maxConnections })
const registry: TenantRegistry = new TenantRegistry({
  controlUrl: config.controlUrl,
  internalToken: config.internalToken,
  file: join(config.data, 'manifests.ndjson'),
  connections,
  fetch,
  onChange: (tenantId) => {
    for (const area of areas) area.forget(tenantId)
  },
  onProblem: problem,
})
const authenticator = new Authenticator()
const tenantOf = (id: string) => registry.get(id)
const events = createEventsArea({ now, elapsed: () => performance.now(), authenticator, tenantOf, onProblem: problem })
const failpoint = readOrExit(() => parseStorageFailpoints(config.failpoints, () => process.kill(process.pid, 'SIGKILL')))
const storage = createStorageArea({
  backend: await openBackend(config.storage, config.data, failpoint),
  tenants: () => registry.all(),
  failpoint,
  limits: config.limits,
  now: Date.now,
  onProblem: problem,
})
const poke = (tenantId: string) => {
  events.poke(tenantId)
  functions.poke(tenantId)
}
const runs = new RunWitness()
const functions: FunctionsArea = createFunctionsArea({
  now,
  onEnd: (tenantId, end) => runs.note(tenantId, end),
  authenticator,
  files: storage.files,
  tenants: () => registry.all(),
  tenantOf,
  hasSiblings: config.siblings > 0,
  reachable: config.functionsMayReach,
  onWrite: poke,
  onConfinement: (confinement) => log.info({ confinement }, 'how functions are confined'),
  onProblem: problem,
})
const rest = createRestArea({ now, hasSiblings: config.siblings > 0, allowsRollback: config.allowsRollback, onTables: followTables, onProblem: problem })
const areas: Area[] = [
  storage,
  rest,
  functions,
  events,
  createMeteringArea({
    ...config,
    fetch,
    now,
    tenantOf,
    onRead: (tenant) => events.keeper.look(tenant),
    runs,
    witnessFile: new WitnessFile({ path: join(config.data, 'run-witness.ndjson'), witness: runs, onProblem: problem }),
    documents: rest.documentBytes,
    files: storage.collector,
  }),
]

await registry.load()
for (const area of areas) await area.start()
const app = await buildApp({
  internalToken: config.internalToken, authenticator, areas, tenantOf, now, logger: log, onWrite: poke,
})
const stopping = new AbortController()
const loops = Promise.all([registry.run(stopping.signal), ...areas.map((area) => area.run(stopping.signal))])
await app.listen({ host: config.host, port: config.port })
log.info({ host: config.host, port: config.port }, 'the runtime listens')

async function stop(): Promise<void> {
  log.info('stopping')
  stopping.abort()
  const cut = setTimeout(() => app.server.closeAllConnections(), drainMilliseconds)
  await app.close()
  clearTimeout(cut)
  await loops
  for (const area of areas) await area.close()
  await connections.close()
}

stopOnSignals(stop, (error) => log.error({ err: error }, 'the stop failed'))
