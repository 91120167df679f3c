// Runs the gateway as a process: environment, token, log, signals. Only this file uses `process`.
import { randomUUID } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ConfigurationError, errorSerializer, exitForConfiguration, stopOnSignals, TokenFile } from '@tenantry/contract'
import { destination, pino } from 'pino'
import type { PostgresTls } from './certificates/certificate-source.ts'
import { readConfig } from './config.ts'
import { startGateway } from './gateway.ts'

// The gateway may outlive the readers of its output, so a broken pipe must not end it.
const output = destination({ dest: 1, sync: true })
output.on('error', () => undefined)
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)

const minTokenLength = 16

try {
  const config = readConfig(process.env)
  const log = pino(
    { name: 'gateway', level: config.logLevel, serializers: { err: errorSerializer(pino.stdSerializers.err) } },
    output,
  )
  const internalToken = new TokenFile(config.internalTokenFile, minTokenLength)
  internalToken.follow((error) => log.warn({ err: error }, error.message))
  await mkdir(config.data, { recursive: true, mode: 0o700 })
  const { postgres, accessLogShare = 0, ...others } = config
  const gateway = await startGateway({
    ...others,
    ...(postgres === undefined ? {} : { postgres: { ...postgres, tls: await readTls(postgres.tls) } }),
    ...(accessLogShare === 0 ? {} : { accessLog: { share: accessLogShare, random: Math.random } }),
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

/** Reads the operator's certificate. Without one, the gateway requests one of the installation's own authority. */
async function readTls(files: { certFile: string; keyFile: string } | undefined): Promise<PostgresTls> {
  if (files === undefined) return 'issued'
  const read = async () => {
    const [cert, key] = await Promise.all([readFile(files.certFile, 'utf8'), readFile(files.keyFile, 'utf8')])
    return { cert, key }
  }
  return { ...(await read()), read }
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
