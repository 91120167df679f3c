// The command that restores the control database from the newest dump. It reads the control plane's environment.
import { checkOrExit, errorSerializer, readOrExit } from '@tenantry/contract'
import pino from 'pino'
import { readConfig } from './config.ts'
import { systemClock } from './platform/clock.ts'
import { recover } from './recover.ts'

const config = readOrExit(() => readConfig(process.env))
const serializers = { err: errorSerializer(pino.stdSerializers.err) }
const log = pino({ level: config.logLevel, base: null, serializers }, pino.destination({ dest: 2, sync: true }))
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
const print = (line: string) => void process.stdout.write(`${line}\n`)
await checkOrExit(() => recover(config, { clock: systemClock, log, print }, stopping.signal))
