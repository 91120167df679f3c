// Runs the gateway as a process: environment, token, log, signals. Only this file uses `process`.
import { randomUUID } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ConfigurationError, errorSerializer, exitForConfiguration, stopOnSignals } from '@tenantry/contract'
import { destination, pino } from 'pino'
import { readConfig } from './config.ts'
import { startGateway } from './gateway.ts'

// The gateway may outlive the readers of its output, so a broken pipe must not end it.
const output = destination({ dest: 1, sync: true })
output.on('error', () => undefined)
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)

try {
  const config = readConfig(process.env)
  const log = pino(
    { name: 'gateway', level: config.logLevel, serializers: { err: errorSerializer(pino.stdSerializers.err) } },
    output,
  )
  const internalToken = (await readFile(config.internalTokenFile, 'utf8')).trim()
  if (internalToken.length < 16)
    throw new ConfigurationError('The gateway cannot start: the internal token is shorter than 16 characters.')
  await mkdir(config.data, { recursive: true, mode: 0o700 })
  const { postgres, ...others } = config
  const tls = postgres?.tls === undefined ? {} : { tls: await readPem(postgres.tls) }
  const gateway = await startGateway({
    ...others,
    ...(postgres === undefined ? {} : { postgres: { port: postgres.port, ...tls } }),
    internalToken,
    now: Date.now,
    elapsed: () => performance.now(),
    newId: randomUUID,
    machineBoot: (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim(),
    fetch: globalThis.fetch,
    collect: youngCollector(),
    log,
  })
  const stop = () => {
    log.info('The gateway is stopping.')
    return gateway.stop()
  }
  stopOnSignals(stop, (cause) => log.error({ err: cause }, 'The gateway did not stop cleanly.'))
} catch (cause) {
  if (cause instanceof ConfigurationError) exitForConfiguration(cause.message)
  process.stderr.write(`${cause instanceof Error ? cause.message : String(cause)}\n`)
  process.exitCode = 1
}

async function readPem({ certFile, keyFile }: { certFile: string; keyFile: string }) {
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')])
  return { cert, key }
}

/**
 * Returns a collection of V8's young generation. V8 exposes its collector only to contexts created after the flag, so this
 * process' own globals stay as they are.
 */
function youngCollector(): () => void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect !== 'function') return () => undefined
  return () => {
    Reflect.apply(collect, undefined, [{ type: 'minor' }])
  }
}
