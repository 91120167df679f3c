// Ends gateways that an earlier start had in addition. One that was killed has counts that the control plane lacks, holds leases of
// tenants' requests and slots for connections, and keeps hours of usage open. So it runs once more, without clients, and stops.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { gatewayName } from './gateway-directories.ts'
import { waitForEarlierCounts } from './gateway-sync.ts'
import type { ProcessService, Supervisor } from './process/supervisor.ts'

/** A gateway that no client reaches. */
export interface FormerGateway {
  number: number
  service: ProcessService
  /** URL of its internal listener. */
  url: string
}

interface EndOptions {
  /** The data directory. */
  root: string
  supervisor: Pick<Supervisor, 'start' | 'end'>
  signal: AbortSignal
  /** Kills what remains. */
  expedite: AbortSignal
  log: Logger
}

/** Runs the gateways until the control plane has all that they counted, and removes them. What fails is repeated at the next start. */
export async function endFormerGateways(gateways: readonly FormerGateway[], options: EndOptions): Promise<void> {
  await Promise.all(gateways.map((gateway) => endFormerGateway(gateway, options)))
}

async function endFormerGateway(
  { number, service, url }: FormerGateway,
  { root, supervisor, signal, expedite, log }: EndOptions,
): Promise<void> {
  const name = gatewayName(number)
  try {
    try {
      await supervisor.start(service)
      await waitForEarlierCounts(url, signal)
    } finally {
      await supervisor.end(name, expedite)
    }
    const directory = join(root, name)
    // A clean stop removes the journal when the control plane has acknowledged everything in it.
    if ((await readdir(join(directory, 'journal'))).length > 0) throw new Error(`The journal of ${name} is not empty.`)
    await rm(directory, { recursive: true })
    log.info({ gateway: name }, 'A gateway of an earlier start has sent all that it counted, and was removed.')
  } catch (error) {
    if (signal.aborted) return
    log.warn(
      { gateway: name, err: error },
      'A gateway of an earlier start could not send all that it counted. The next start tries again.',
    )
  }
}
