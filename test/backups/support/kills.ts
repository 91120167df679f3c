// A control plane that is killed in the middle of what it does with a backup, and started again.
import type { Test } from 'tap'
import { until } from '#test/support/until.ts'
import { createOwner, ended, furnish, seen, startBackupPlatform, type BackupPlatform } from './tenants.ts'

const megabyte = 2 ** 20

/** A tenant with a complete backup. */
export async function startKills(t: Test) {
  const platform = await startBackupPlatform(t)
  const ada = await createOwner(platform, 'ada')
  await furnish(platform, ada, 6 * megabyte)
  const before = await seen(platform, ada)
  const taken = await platform.call('POST', `/v1/tenants/${ada.id}/backups`)
  await ended(platform, taken)
  await platform.stopControlPlanes()
  let plane = await platform.startControlPlane()

  /** Asks for it, and kills the control plane when the work has come to that step. */
  const interrupted = async (step: string, path: string, body?: unknown) => {
    const response = await platform.call('POST', path, body)
    await atStep(platform, response, step)
    await plane.kill()
    plane = await platform.startControlPlane()
    return { response, operation: await ended(platform, response) }
  }
  return { platform, ada, before, backupId: String(taken.body['id']), interrupted }
}

/** Until the operation has come to a step, or has ended: then the step was too quick to be met. */
async function atStep(
  platform: BackupPlatform,
  { body }: { body: Record<string, unknown> },
  step: string,
): Promise<void> {
  const { id } = body['operation'] as { id: string }
  await until(async () => {
    const [row] = await platform.sql('select step, finished_at from operations where id = $1', [id])
    return row?.['step'] === step || row?.['finished_at'] !== null
  })
}
