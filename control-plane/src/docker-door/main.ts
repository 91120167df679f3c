// The door as a process: environment, log, sockets, signals.
import { chmod, rm } from 'node:fs/promises'
import { once } from 'node:events'
import { readOrExit, stopOnSignals } from '@tenantry/contract'
import pino from 'pino'
import { readDoorConfig } from './config.ts'
import { createDoor } from './door.ts'
import { engineSocket } from './engine-socket.ts'

const config = readOrExit(() => readDoorConfig(process.env))
const log = pino({ name: 'docker-door', level: config.logLevel, base: null })
const door = createDoor({ rules: config.rules, engine: engineSocket(config.engineSocket), log })

// A socket that a kill left behind takes no connections, and keeps its name.
await rm(config.socket, { force: true })
door.server.listen(config.socket)
await once(door.server, 'listening')
await chmod(config.socket, 0o600)
log.info({ installation: config.rules.installation }, 'the door is open')

async function stop(): Promise<void> {
  log.info('the door closes')
  await door.close()
}

stopOnSignals(stop, (error) => log.error({ err: error }, 'the stop failed'))
