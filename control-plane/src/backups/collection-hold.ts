// Stops the tenant's runtimes from removing blobs while a backup is made or a restored home is put in place. The calls are
// made inside their containers, with the token that is there.
import { EngineError, isSilentHost } from '../engines/index.ts'
import type { Clock } from '../platform/clock.ts'
import { BackupError } from './backup-error.ts'
import type { FilesLocation } from './home-location.ts'

const holdSeconds = 300
const renewMilliseconds = 60_000
const callMilliseconds = 20_000

const script = `
const [id, method, seconds] = process.argv.slice(1)
const { readFileSync } = await import('node:fs')
const [token] = readFileSync(process.env.TENANTRY_INTERNAL_TOKEN_FILE, 'utf8').trim().split('\\n')
const { TENANTRY_HOST: host, TENANTRY_PORT: port } = process.env
const response = await fetch('http://' + host + ':' + port + '/internal/v1/tenants/' + id + '/hold', {
  method,
  headers: { 'x-tenantry-internal': token, ...(method === 'PUT' ? { 'content-type': 'application/json' } : {}) },
  ...(method === 'PUT' ? { body: JSON.stringify({ seconds: Number(seconds) }) } : {}),
})
process.exit(response.ok ? 0 : 1)
`

/**
 * Holds the collection of blobs while `work` runs, and aborts its signal when the hold is lost.
 * @param mustHoldAll whether each runtime must respond; otherwise those are left out that do not run, or whose host does not respond
 * @throws BackupError FAILED
 */
export async function whileHeld<T>(
  location: FilesLocation,
  tenantId: string,
  clock: Clock,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  mustHoldAll = true,
): Promise<T> {
  const lost = new AbortController()
  const call = async (method: 'PUT' | 'DELETE', signal: AbortSignal) => {
    const command = ['node', '--input-type=module', '-e', script, '--', tenantId, method, String(holdSeconds)]
    const { engine, stack, filesStack = stack, filesServices } = location
    const options = { signal: AbortSignal.any([signal, clock.timeout(callMilliseconds)]) }
    const results = await Promise.all(
      filesServices.map((service) =>
        engine.exec(filesStack, service, command, options).catch((error: unknown) => {
          if (mustHoldAll || !isAbsent(error)) throw error
          return { code: 0 }
        }),
      ),
    )
    if (results.some(({ code }) => code !== 0))
      throw new BackupError('FAILED', "The tenant's runtime did not stop the removal of its files.")
  }
  await call('PUT', signal)
  const stop = clock.every(
    renewMilliseconds,
    () => void call('PUT', signal).catch((cause: unknown) => lost.abort(cause)),
  )
  try {
    return await work(AbortSignal.any([signal, lost.signal]))
  } finally {
    stop()
    // A hold that is not released expires.
    await call('DELETE', clock.timeout(callMilliseconds)).catch(() => undefined)
  }
}

/** Whether no container of the service runs on a host that responds. */
function isAbsent(error: unknown): boolean {
  return isSilentHost(error) || (error instanceof EngineError && error.code === 'NOT_FOUND')
}
