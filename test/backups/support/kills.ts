// Kills the control plane in the middle of an operation on a backup, and starts it again.
import type { Test } from 'tap'
import { until } from '#test/support/until.ts'
import { createOwner, ended, furnish, seen, startBackupPlatform, type BackupPlatform } from './tenants.ts'

const megabyte = 2 ** 20

/** Starts a platform with a tenant that has a complete backup. */
export async function startKills(t: Test) {
  const platform = await startBackupPlatform(t)
  const ada = await createOwner(platform, 'ada')
  await furnish(platform, ada, 6 * megabyte)
  const before = await seen(platform, ada)
  const taken = await platform.call('POST', `/v1/tenants/${ada.id}/backups`)
  await ended(platform, taken)
  await platform.stopControlPlanes()
  let plane = await platform.startControlPlane()

  /** Sends the request, kills the control plane when the operation reaches the step, and waits for the operation's end. */
  const interrupted = async (step: string, path: string, body?: unknown) => {
    const response = await platform.call('POST', path, body)
    await untilStep(platform, response, step)
    await plane.kill()
    plane = await platform.startControlPlane()
    return { response, operation: await ended(platform, response) }
  }
  return { platform, ada, before, backupId: String(taken.body['id']), interrupted }
}

/** Waits until the operation reaches the step, or ends because the step was too quick to observe. */
async function untilStep(
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
