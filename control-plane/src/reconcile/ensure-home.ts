// Creates a tenant's home, or updates or repairs an existing one. It never touches the tenant's data.
import { EngineError } from '../engines/index.ts'
import { lossCondition, observed } from './conditions.ts'
import { recordStep, type Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { isDedicated } from './region.ts'

/**
 * Ensures the home. Work in it is not interrupted; a run can be aborted between two steps. @throws EngineError,
 * HomeError
 */
export async function ensureHome(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<void> {
  const { region, failpoint, homeVersion, observations } = run
  if (isDedicated(snapshot)) await observations.observe('Database', () => region.awaitDatabase(snapshot, signal))
  if (snapshot.homeVersion === homeVersion && (await loginWorks(snapshot, run))) {
    observations.note('Database', observed)
    observations.note('Home', observed)
    return
  }
  await recordStep(snapshot, 'home', run)
  await failpoint('database.before')
  signal.throwIfAborted()
  await observations.observe('Database', () => region.home(snapshot).prepare(() => failpoint('database.created')))
  await failpoint('database.prepared')
  signal.throwIfAborted()
  await observations.observe('Home', () => makeHome(snapshot, run, signal))
}

async function makeHome(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<void> {
  const { region, failpoint } = run
  const home = region.home(snapshot)
  await failpoint('home.before')
  const passwords = {
    runtime: currentOf(snapshot, 'runtime_password'),
    ddl: currentOf(snapshot, 'ddl_password'),
    admin: secretOf(snapshot, 'admin_password'),
  }
  const made =
    snapshot.homeVersion === undefined
      ? await home.create(snapshot.id, passwords)
      : await home.repair(snapshot.id, passwords)
  if (made === 'missing') {
    throw new EngineError(
      'HOME_MISSING',
      'The home and its data are gone from their database. No empty home is created in its place.',
    )
  }
  await failpoint('home.created')
  signal.throwIfAborted()
  if (made === 'to be migrated') await migrate(snapshot, run)
  await failpoint('home.migrated')
}

/** Sets a rotated password of `database_url` in the home. Sessions of the old one end. @throws EngineError, HomeError */
export async function ensurePassword(snapshot: Snapshot, run: Reconciliation): Promise<void> {
  if (!snapshot.databasePasswordDue) return
  const { region, failpoint, observations, store, epoch } = run
  await failpoint('password.before')
  const password = secretOf(snapshot, 'admin_password')
  await observations.observeFailure('Home', () => region.home(snapshot).setSqlPassword(snapshot.id, password))
  await failpoint('password.set')
  await store.recordPasswordSet(snapshot.id, snapshot.generation, epoch)
  await failpoint('password.recorded')
}

/**
 * Sets rotated passwords of the services' logins in the home. The runtimes must know them by now: they log in with the
 * new ones from then on, and keep their sessions. @throws EngineError, HomeError
 */
export async function ensureServicePasswords(snapshot: Snapshot, run: Reconciliation): Promise<void> {
  if (!snapshot.servicePasswordsDue) return
  const { region, failpoint, observations, store, epoch } = run
  await failpoint('service-passwords.before')
  const passwords = { runtime: secretOf(snapshot, 'runtime_password'), ddl: secretOf(snapshot, 'ddl_password') }
  await observations.observeFailure('Home', () => region.home(snapshot).setServicePasswords(snapshot.id, passwords))
  await failpoint('service-passwords.set')
  await store.recordServicePasswordsSet(snapshot.id, snapshot.generation, epoch)
  await failpoint('service-passwords.recorded')
}

/** Migrates the home. A loss is recorded at once, because the next run finds the home complete. */
async function migrate(snapshot: Snapshot, { region, store, clock, epoch }: Reconciliation): Promise<void> {
  const { lost } = await region.home(snapshot).migrate(snapshot.id)
  if (lost.length > 0) await store.recordLoss(snapshot.id, lossCondition(lost, clock.now()), epoch)
}

/**
 * Whether a login works with one of the valid passwords. A home that was damaged from outside is repaired by creating it
 * again.
 */
async function loginWorks(snapshot: Snapshot, { region }: Reconciliation): Promise<boolean> {
  const home = region.home(snapshot)
  for (const password of snapshot.secrets.runtime_password) {
    const works = await home.check(snapshot.id, password).then(
      () => true,
      () => false,
    )
    if (works) return true
  }
  return false
}

/** Returns the password that a service's login is expected to have: during a rotation, the runtimes may not know a newer one. */
function currentOf(snapshot: Snapshot, kind: 'runtime_password' | 'ddl_password'): string {
  const oldest = snapshot.servicePasswordsDue ? snapshot.secrets[kind].at(-1) : undefined
  return oldest ?? secretOf(snapshot, kind)
}

function secretOf(snapshot: Snapshot, kind: keyof Snapshot['secrets']): string {
  const [newest] = snapshot.secrets[kind]
  if (newest === undefined) throw new Error(`The tenant ${snapshot.id} has no ${kind}.`)
  return newest
}
