// The watchdog as a process: environment, log, signals.
import { Environment, errorSerializer, readOrExit, stopOnSignals, watchdogSettings } from '@tenantry/contract'
import pino from 'pino'
import { engineSocket } from './engine-socket.ts'
import { EngineGone, watchContainers } from './watchdog.ts'

const { level, socket, project } = readOrExit(() => {
  const environment = new Environment(watchdogSettings, process.env)
  return {
    level: environment.logLevel(),
    socket: environment.optional('TENANTRY_DOCKER_SOCKET') ?? '/var/run/docker.sock',
    project: environment.required('TENANTRY_COMPOSE_PROJECT'),
  }
})
const log = pino({
  name: 'watchdog',
  level,
  base: null,
  serializers: { err: errorSerializer(pino.stdSerializers.err) },
})
const engine = engineSocket(socket)
const stopping = new AbortController()

stopOnSignals(
  async () => stopping.abort(),
  (error) => log.error({ err: error }, 'The stop failed.'),
)
log.info({ project }, 'The watchdog watches the containers.')
try {
  await watchContainers({ engine, project, log, now: () => performance.now() }, stopping.signal)
} catch (error) {
  if (!(error instanceof EngineGone)) throw error
  // The Engine restarts the container when it is back, with its new socket.
  log.warn({ err: error }, 'The watchdog ends, and the Docker Engine restarts it with the new socket.')
  process.exitCode = 1
}
