// The control plane records the error of a verification on its backup after the last attempt.
import t from 'tap'
import type { Job } from '#control-plane/backups/backup.ts'
import { runBackups, type BackupJobDeps } from '#control-plane/backups/jobs.ts'
import type { BackupLedger } from '#control-plane/backups/store-ledger.ts'
import type { BackupTarget } from '#control-plane/backups/backup-target.ts'
import { createTargets } from '#control-plane/backups/target-set.ts'
import { OperationSuperseded } from '#control-plane/backups/backup-error.ts'
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

/** Runs the job until its failure is recorded. @returns the verification errors that were recorded before */
async function recordedErrors(job: Job, error: Error): Promise<(string | null)[]> {
  const stop = new AbortController()
  const verified: (string | null)[] = []
  const ledger = {
    openJobs: () => Promise.resolve([job]),
    begin: () => Promise.resolve(true),
    scheduled: () => Promise.resolve([]),
    backupStates: () => Promise.resolve(new Map([['b', 'complete']])),
    failAbandoned: () => Promise.resolve(),
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
    targets: createTargets(
      [{ name: 'directory', list: () => Promise.resolve([]) } as unknown as BackupTarget],
      systemClock,
    ),
    regions: new Map([['local', { engine: { observe: () => Promise.resolve({ containers: [], volumes: [] }) } }]]),
    clock: systemClock,
    log: { info: () => undefined, warn: () => undefined },
    measure: () => undefined,
    found: () => undefined,
    available: () => undefined,
    changes: { subscribe: () => () => undefined },
    migrations: [],
    readHome: () => Promise.resolve(),
    tenant: () => Promise.resolve(undefined),
  } as unknown as BackupJobDeps
  await runBackups(deps)({ epoch: 1n, lost: stop.signal }).catch(() => undefined)
  return verified
}

t.test('after the last attempt, an internal error is recorded', async (t) => {
  t.same(await recordedErrors(jobOf(2), new Error('no such table')), [
    'An internal error occurred. The log of the control plane has the details.',
  ])
})

t.test('a verification that is no longer wanted records nothing', async (t) => {
  t.same(await recordedErrors(jobOf(0), new OperationSuperseded('gone')), [])
})
