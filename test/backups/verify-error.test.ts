// A backup whose verification failed for the last time reports that itself, whatever the reason was.
import t from 'tap'
import type { Job } from '#control-plane/backups/backup.ts'
import { keepBackups, type BackupJobDeps } from '#control-plane/backups/jobs.ts'
import type { BackupLedger } from '#control-plane/backups/backup-ledger.ts'
import { NotWanted } from '#control-plane/backups/backup-error.ts'
import { systemClock } from '#control-plane/platform/clock.ts'

const backup = {
  id: 'b',
  tenantId: 't',
  region: 'local',
  state: 'complete',
  trigger: 'request',
  manifestHash: '',
} as Job['backup']
const jobOf = (attempts: number): Job => ({
  operationId: 'o',
  kind: 'verify',
  tenantId: 't',
  state: 'running',
  attempts,
  backup,
  key: new Uint8Array(32),
})

/** Runs the job until it is told that it failed. @returns what was recorded of the verification before */
async function recorded(job: Job, error: Error): Promise<(string | null)[]> {
  const stop = new AbortController()
  const verified: (string | null)[] = []
  const ledger = {
    openJobs: () => Promise.resolve([job]),
    begin: () => Promise.resolve(true),
    scheduled: () => Promise.resolve([]),
    backupStates: () => Promise.resolve(new Map([['b', 'complete']])),
    step: () => Promise.reject(error),
    async recordVerified(_job: Job, text: string | null) {
      verified.push(text)
    },
    async fail() {
      stop.abort()
    },
  } as unknown as BackupLedger
  const deps = {
    ledger,
    target: { list: () => Promise.resolve([]) },
    regions: new Map([['local', { engine: { observe: () => Promise.resolve({ containers: [], volumes: [] }) } }]]),
    clock: systemClock,
    log: { info: () => undefined, warn: () => undefined },
    measure: () => undefined,
    found: () => undefined,
    migrations: [],
    readHome: () => Promise.resolve(),
    tenant: () => Promise.resolve(undefined),
  } as unknown as BackupJobDeps
  await keepBackups(deps)({ epoch: 1n, lost: stop.signal }).catch(() => undefined)
  return verified
}

t.test('after the last attempt, an error inside is recorded', async (t) => {
  t.same(await recorded(jobOf(2), new Error('no such table')), [
    'it failed inside; the log of the control plane says why',
  ])
})

t.test('a verification that nobody wants any more says nothing of the backup', async (t) => {
  t.same(await recorded(jobOf(0), new NotWanted('gone')), [])
})
