// A program that archives and copies the WAL of all tenants, as the leading control plane does, until it is killed. Its days
// are short, so that base backups are taken and expire all the time.
import { createArchiveBucket } from '#control-plane/backups/archive/archive-bucket.ts'
import { createArchiveDirectory } from '#control-plane/backups/archive/archive-target.ts'
import { createArchiveFiles } from '#control-plane/backups/archive/archive-files.ts'
import { createArchiveCopier } from '#control-plane/backups/archive/copy-archives.ts'
import { createPoll } from '#control-plane/backups/archive/jobs-archives.ts'
import { createArchiveLedger } from '#control-plane/backups/archive/store-archives.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createSeal } from '#control-plane/platform/seal.ts'
import type { S3Location } from '@tenantry/contract/s3'
import { createSpooledEngine } from './spooled-engine.ts'

/** The settings of the program: its first argument, in JSON. */
export interface ArchiverSettings {
  controlUrl: string
  /** The master key in base64. */
  masterKey: string
  installation: string
  region: string
  spools: string
  directory: string
  bucket: S3Location
  /** The time at which the clock is right, in milliseconds; from then on, it is faster. */
  since: number
  /** The length of a day of this clock in milliseconds. */
  dayMilliseconds: number
}

const pauseMilliseconds = 50

/** Opens the ledger and the files that the program uses. */
export function openArchiver(settings: ArchiverSettings) {
  const { since, dayMilliseconds, installation } = settings
  const now = () => new Date(since + (Date.now() - since) * (86_400_000 / dayMilliseconds))
  const clock = { ...systemClock, now }
  const database = openDatabase(settings.controlUrl)
  const ledger = createArchiveLedger(database, createSeal(Buffer.from(settings.masterKey, 'base64')), now)
  // The bucket is the first target, so every file is uploaded.
  const targets = [
    createArchiveBucket(settings.bucket, installation, 'bucket'),
    createArchiveDirectory(settings.directory, installation, 'directory'),
  ]
  return { clock, database, ledger, targets, files: createArchiveFiles(targets, clock) }
}

async function run(settings: ArchiverSettings): Promise<never> {
  const { clock, ledger, files } = openArchiver(settings)
  const engine = createSpooledEngine(settings.spools, clock.now)
  const regions = new Map([[settings.region, { engine, primaryService: () => Promise.resolve('postgres') }]])
  const log = {
    warn: (details: object, message: string) => {
      const { err } = details as { err?: unknown }
      process.stdout.write(`${message} ${err instanceof Error ? (err.stack ?? err.message) : ''}\n`)
    },
  }
  const signal = new AbortController().signal
  const poll = createPoll({ ledger, files, regions, clock, log, epoch: 0n, measure: () => undefined }, signal)
  const copyTo = createArchiveCopier({ ledger, files, clock })
  const repeated = async (work: () => Promise<unknown>): Promise<never> => {
    for (;;) {
      await work().catch((error: unknown) => log.warn({ err: error }, 'The work failed and is repeated.'))
      await clock.sleep(pauseMilliseconds)
    }
  }
  return Promise.race([
    repeated(() => poll.tidy()),
    repeated(() => poll.run(settings.region)),
    ...files.targets.map((target) => repeated(() => copyTo(target, signal))),
  ])
}

if (import.meta.main) await run(JSON.parse(process.argv[2] ?? '') as ArchiverSettings)
