// The door as a process: environment, log, sockets, signals. It also watches the watchdog, which watches it.
import { chmod, rm } from 'node:fs/promises'
import { once } from 'node:events'
import { readOrExit, stopOnSignals } from '@tenantry/contract'
import pino from 'pino'
import { readProxyConfig } from './config.ts'
import { createProxy } from './proxy.ts'
import { engineSocket } from './engine-socket.ts'
import { EngineGone, watchContainers } from './watchdog.ts'

const config = readOrExit(() => readProxyConfig(process.env))
const log = pino({ name: 'docker-proxy', level: config.logLevel, base: null })
const engine = engineSocket(config.engineSocket)
const proxy = createProxy({ rules: config.rules, engine, log })
const stopping = new AbortController()

// A socket that a kill left behind takes no connections, and keeps its name.
await rm(config.socket, { force: true })
proxy.server.listen(config.socket)
await once(proxy.server, 'listening')
await chmod(config.socket, 0o600)
log.info({ installation: config.rules.installation }, 'the door is open')

async function stop(): Promise<void> {
  log.info('the door closes')
  stopping.abort()
  await proxy.close()
}

stopOnSignals(stop, (error) => log.error({ err: error }, 'the stop failed'))

try {
  await watchContainers({ engine, project: config.composeProject, log, now: () => performance.now() }, stopping.signal)
} catch (error) {
  if (!(error instanceof EngineGone)) throw error
  // The Engine starts the container again when it is back, with its new socket.
  log.warn({ err: error }, 'the door closes, and opens again with the Engine')
  await proxy.close()
  process.exitCode = 1
}
