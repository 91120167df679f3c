// Runs the runtime as a process: environment and signals. Only this file uses `process`.
import { randomUUID } from 'node:crypto'
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { totalmem } from 'node:os'
import { errorSerializer, followToken, readOrExit, stopOnSignals } from '@tenantry/contract'
import pino from 'pino'
import { readConfig } from './config.ts'
import { startRuntime } from './runtime.ts'
import { parseStorageFailpoints } from './storage/failpoints.ts'

/** The time after which a connection is attempted at the next address of a name. The host of one router of a cluster may be lost. */
const attemptMilliseconds = 200

setDefaultAutoSelectFamilyAttemptTimeout(attemptMilliseconds)
const config = readOrExit(() => readConfig(process.env, process.constrainedMemory() || totalmem()))
const log = pino({ level: config.logLevel, base: null, serializers: { err: errorSerializer(pino.stdSerializers.err) } })
followToken(config.internalToken, (error) => log.warn({ err: error }, error.message))
const failpoint = readOrExit(() =>
  parseStorageFailpoints(config.failpoints, () => process.kill(process.pid, 'SIGKILL')),
)
const runtime = await startRuntime(config, {
  log,
  failpoint,
  fetch,
  now: Date.now,
  elapsed: () => performance.now(),
  random: Math.random,
  newId: randomUUID,
  onError: (error) => log.warn({ err: error }, error.message),
})
stopOnSignals(
  () => runtime.stop(),
  (error) => log.error({ err: error }, 'The runtime did not stop cleanly.'),
)
