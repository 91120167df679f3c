// The gateway as a process: environment, token, log, signals. The only file that touches `process`.
import { randomUUID } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { destination, pino } from 'pino'
import { readConfig } from './config.ts'
import { startGateway } from './gateway.ts'

// The gateway may outlive whoever reads its output; a broken pipe must not end it.
const output = destination({ dest: 1, sync: true })
output.on('error', () => undefined)
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)

try {
  const config = readConfig(process.env)
  const log = pino({ name: 'gateway', level: config.logLevel }, output)
  const internalToken = (await readFile(config.internalTokenFile, 'utf8')).trim()
  if (internalToken.length < 16) throw new Error('the gateway cannot start: the internal token is too short')
  await mkdir(config.data, { recursive: true, mode: 0o700 })
  const gateway = await startGateway({
    ...config,
    internalToken,
    now: Date.now,
    elapsed: () => performance.now(),
    newId: randomUUID,
    fetch: globalThis.fetch,
    collect: youngCollector(),
    log,
  })
  let signals = 0
  const onSignal = (signal: NodeJS.Signals) => {
    if (++signals > 1) process.exit(1)
    log.info({ signal }, 'the gateway stops')
    gateway.stop().then(
      () => process.exit(0),
      (cause: unknown) => {
        log.error({ err: cause }, 'the gateway did not stop cleanly')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
} catch (cause) {
  process.stderr.write(`${cause instanceof Error ? cause.message : String(cause)}\n`)
  process.exitCode = 1
}

/** V8 shows its collector only to contexts made after the flag; this process' own globals stay as they are. */
function youngCollector(): () => void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect !== 'function') return () => undefined
  return () => {
    Reflect.apply(collect, undefined, [{ type: 'minor' }])
  }
}
