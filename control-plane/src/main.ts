// The control plane as a process, with its environment and signals. No other file uses `process`.
import { lookup } from 'node:dns/promises'
import { checkOrExit, errorSerializer, followToken, readOrExit, stopOnSignals } from '@tenantry/contract'
import pino from 'pino'
import { readConfig } from './config.ts'
import { startControlPlane } from './control-plane.ts'
import { systemClock } from './platform/clock.ts'
import { parseFailpoints } from './reconcile/index.ts'

const config = readOrExit(() => readConfig(process.env))
const log = pino({ level: config.logLevel, base: null, serializers: { err: errorSerializer(pino.stdSerializers.err) } })
followToken(config.internalToken, (error) => log.warn({ err: error }, error.message))
const failpoint = readOrExit(() =>
  parseFailpoints(
    config.failpoints,
    (signal) => process.kill(process.pid, signal),
    (name) => log.trace({ failpoint: name }, 'A failpoint was passed.'),
  ),
)
const resolve = async (hostname: string) => (await lookup(hostname, { all: true })).map(({ address }) => address)
const plane = await checkOrExit(() =>
  startControlPlane(config, { clock: systemClock, random: Math.random, log, failpoint, fetch, resolve }),
)
stopOnSignals(
  () => plane.stop(),
  (error) => log.error({ err: error }, 'The stop failed.'),
)
