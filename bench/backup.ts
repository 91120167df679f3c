// Backups of a shared and of a dedicated tenant: the throughput of a backup and of a restore, of files and of rows, and how much
// slower the tenant's requests are during a backup; and the cost of archiving a dedicated tenant's WAL.
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { openEngineWithImages } from '#scripts/engine-with-images.ts'
import { median, noise, quantile, type Figures, type Report } from '#bench/figures.ts'
import {
  contents,
  openScene,
  type BackupScene,
  type Content,
  type FilledTenant,
  type Isolation,
} from '#bench/support/backup-scene.ts'
import { archiveCost } from '#bench/support/archive-cost.ts'
import { bareBackup } from '#bench/support/bare-backup.ts'
import { reportRounds } from '#bench/support/in-turn.ts'
import { pacedLoad, type PacedRequest } from '#bench/support/paced-load.ts'

interface Size {
  /** The size of each tenant. */
  megabytes: number
  rounds: number
  /** The length of each measurement of requests. */
  seconds: number
}

const perSecond = 100
const smallFile = Buffer.alloc(4_096, 'x')

type Floor = Awaited<ReturnType<typeof bareBackup>>

export async function figures(
  report: Report,
  size: Size = { megabytes: 1_000, rounds: 3, seconds: 10 },
): Promise<Figures> {
  // Next to the project, where an installation's own data is.
  const scratch = await mkdtemp(join(import.meta.dirname, '..', '.tenantry-bench-'))
  try {
    return {
      ...(await measured('shared', scratch, size, report)),
      ...(await dedicated(scratch, size, report)),
    }
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

/** Measures dedicated tenants, where there is a Docker Engine. */
async function dedicated(scratch: string, size: Size, report: Report): Promise<Figures> {
  const engine = await openEngineWithImages(report).catch((error: unknown) => {
    report(`Dedicated tenants are not measured: ${String(error)}`)
    return undefined
  })
  if (engine === undefined) return {}
  try {
    return await measured('dedicated', scratch, size, report)
  } finally {
    await engine.stop()
  }
}

async function measured(isolation: Isolation, scratch: string, size: Size, report: Report): Promise<Figures> {
  const directory = join(scratch, isolation)
  await mkdir(directory)
  const floors: Floor[] = []
  for (let round = 0; round < size.rounds; round++) floors.push(await bareBackup(directory, size.megabytes))
  const floor = {
    backup: median(floors.map(({ backup }) => backup)),
    restore: median(floors.map(({ restore }) => restore)),
  }
  const scene = await openScene(isolation, directory)
  try {
    let figures: Figures = {}
    for (const content of contents) {
      const tenant = await scene.create(content, size.megabytes)
      const name = `${isolation}_${content}`
      figures = {
        ...figures,
        ...(await throughput(scene, tenant, { name, content, floor, rounds: size.rounds }, report)),
        ...(await duringBackups(scene, tenant, { name, ...size }, report)),
        ...(isolation === 'dedicated' && content === 'rows' ? await archiveCost(scene, tenant, size, report) : {}),
      }
    }
    return figures
  } finally {
    await scene.stop()
  }
}

async function throughput(
  scene: BackupScene,
  { id, bytes }: FilledTenant,
  { name, content, floor, rounds }: { name: string; content: Content; floor: Floor; rounds: number },
  report: Report,
): Promise<Figures> {
  const speeds = { backup: [] as number[], restore: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    const backup = await scene.perform(`/v1/tenants/${id}/backups`)
    const restore = await scene.perform(`/v1/backups/${backup.id}/restore`, { into: 'same' })
    await scene.remove(backup.id)
    speeds.backup.push(bytes / 1_000_000 / backup.seconds)
    speeds.restore.push(bytes / 1_000_000 / restore.seconds)
  }
  reportRounds(report, `${name}, MB/s`, speeds)
  const figure = (kind: 'backup' | 'restore', target: string) => {
    const value = median(speeds[kind])
    // The floor reads no database.
    const comparison = content === 'files' ? { floor: floor[kind], ratio: value / floor[kind] } : {}
    return { [`${name}_${kind}`]: { value, unit: 'MB/s', ...comparison, target } }
  }
  return { ...figure('backup', '≥ 80'), ...figure('restore', '≥ 60') }
}

/** Compares the tenant's requests during one backup after another with those before. */
async function duringBackups(
  scene: BackupScene,
  { id, atGateway }: FilledTenant,
  { name, rounds, seconds }: { name: string } & Omit<Size, 'megabytes'>,
  report: Report,
): Promise<Figures> {
  const requests: PacedRequest[] = [
    { method: 'GET', location: atGateway('/storage/v1/bucket') },
    { method: 'POST', location: overwriting(atGateway('/storage/v1/object/files/small')), body: smallFile },
  ]
  const p99 = async () => quantile(await pacedLoad(requests, { perSecond, seconds }), 0.99)
  await p99()
  const times = { quiet: [] as number[], busy: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    times.quiet.push(await p99())
    const during = new AbortController()
    const [busy, backups] = await Promise.all([
      p99().finally(() => during.abort()),
      takeBackups(scene, id, during.signal),
    ])
    times.busy.push(busy)
    for (const backup of backups) await scene.remove(backup)
  }
  reportRounds(report, `${name}, p99 in ms`, times, 1)
  return {
    [`${name}_p99_ratio`]: { value: median(times.busy) / median(times.quiet), unit: '×', target: '≤ 2' },
    [`${name}_quiet_p99`]: { value: median(times.quiet), unit: 'ms' },
    [`${name}_quiet_p99_noise`]: { value: noise(times.quiet), unit: '%' },
  }
}

/** Takes backups until the signal aborts. @returns their IDs */
async function takeBackups(scene: BackupScene, id: string, signal: AbortSignal): Promise<string[]> {
  const isOver = () => signal.aborted
  const backups: string[] = []
  while (!isOver()) backups.push((await scene.perform(`/v1/tenants/${id}/backups`)).id)
  return backups
}

function overwriting({ headers, ...location }: PacedRequest['location']): PacedRequest['location'] {
  return { ...location, headers: { ...headers, 'x-upsert': 'true', 'content-type': 'application/octet-stream' } }
}
