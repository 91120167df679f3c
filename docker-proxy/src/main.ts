// The Docker proxy as a process: environment, log, sockets, signals. It also watches the watchdog, which watches the proxy.
import { chmod, rm } from 'node:fs/promises'
import { once } from 'node:events'
import { errorSerializer, readOrExit, stopOnSignals } from '@tenantry/contract'
import pino from 'pino'
import { readProxyConfig } from './config.ts'
import { createProxy } from './proxy.ts'
import { engineSocket } from './engine-socket.ts'
import { EngineGone, watchContainers } from './watchdog.ts'

const config = readOrExit(() => readProxyConfig(process.env))
const log = pino({
  name: 'docker-proxy',
  level: config.logLevel,
  base: null,
  serializers: { err: errorSerializer(pino.stdSerializers.err) },
})
const engine = engineSocket(config.engineSocket)
const { rules, remote } = config
const proxy = createProxy({ rules, engine, log })
const remoteProxy = remote && createProxy({ rules, engine, log, tls: remote.tls })
const stopping = new AbortController()

// The socket of a killed process accepts no connections but still has its name.
await rm(config.socket, { force: true })
proxy.server.listen(config.socket)
await once(proxy.server, 'listening')
await chmod(config.socket, 0o600)
if (remote !== undefined && remoteProxy !== undefined) {
  remoteProxy.server.listen(remote.port)
  await once(remoteProxy.server, 'listening')
}
log.info({ installation: rules.installation, port: remote?.port }, 'The Docker proxy listens.')

async function close(): Promise<void> {
  await Promise.all([proxy.close(), remoteProxy?.close()])
}

async function stop(): Promise<void> {
  log.info('The Docker proxy stops.')
  stopping.abort()
  await close()
}

stopOnSignals(stop, (error) => log.error({ err: error }, 'The stop failed.'))

try {
  await watchContainers({ engine, project: config.composeProject, log, now: () => performance.now() }, stopping.signal)
} catch (error) {
  if (!(error instanceof EngineGone)) throw error
  // The Engine restarts the container when it is back, with its new socket.
  log.warn({ err: error }, 'The Docker proxy ends, and the Docker Engine restarts it with the new socket.')
  await close()
  process.exitCode = 1
}
