// Moves that stop at a failpoint, with the whole control plane, until a test lets them continue.
import { readFile } from 'node:fs/promises'
import type { Test } from 'tap'
import type { FailpointName } from '#control-plane/reconcile/failpoints.ts'
import type { Platform, Service } from '#test/support/platform.ts'
import { until } from '#test/support/until.ts'
import { databaseOf, ended, first, second, type Owner } from './platform.ts'

/** A move that has stopped. */
export interface StoppedMove {
  /** The database in which the home was before. */
  from: string
  to: string
  resume(): void
  /** Waits until the operation has ended. */
  operation(): Promise<Record<string, unknown>>
  /** The output of the control plane that carries the move out. */
  output(): string
}

/**
 * Returns a function that moves the tenant's home to the other database, until the failpoint. Each move has a new control
 * plane.
 * @param control the control plane that runs now
 */
export function stoppingMoves(platform: Platform, tenant: Owner, control: Service) {
  return async (t: Test, name: FailpointName): Promise<StoppedMove> => {
    control.process.kill('SIGTERM')
    await control.exited
    const carrying = await platform.startControlPlane({ failpoints: `${name}=stop` })
    control = carrying
    const from = await databaseOf(platform, tenant)
    const to = from === first ? second : first
    const { status, body } = await platform.call('POST', `/v1/tenants/${tenant.id}/move`, { database: to })
    t.equal(status, 202, JSON.stringify(body))
    const isStopped = async () => / T /.test(await readFile(`/proc/${carrying.process.pid}/stat`, 'utf8'))
    await until(isStopped, 'the failpoint')
    return {
      from,
      to,
      resume: () => void carrying.process.kill('SIGCONT'),
      operation: () => ended(platform, String((body['operation'] as Record<string, unknown>)['id'])),
      output: () => carrying.output(),
    }
  }
}
