// The home on a Postgres of the tenant's own. Its SQL runs inside the container, so that no superuser ever logs in over
// a network. SQL is passed on standard input, and no argument contains a password.
import type { ExecResult } from '../engines/index.ts'
import {
  type HomeMigration,
  appliedVersionSql,
  firstMigrationsSql,
  migrateHomeSql,
  ownTarget,
  violationsSql,
  systemParts,
} from './home-migrations.ts'
import { damaged, readReport, HomeError } from './home-report.ts'
import type { HomeServer } from './home-server.ts'
import {
  closeSystemLoginSql,
  createNewHomeSql,
  endSessionsSql,
  homeConnectionLimits,
  restoreHomeRolesSql,
  noLoginSql,
  openLoginsSql,
  openSystemLoginSql,
  schemaExists,
  schemaMissing,
} from './home-sql.ts'
import { homeRoles } from './home-roles.ts'
import { prepareHomesSql, unpreparedSql } from './prepare-database.ts'
import { newVerifiers, oneTimePassword, verifierOf } from './scram.ts'
import { setServicePasswordsSql } from './service-login-sql.ts'
import { endAdminSessionsSql, setSqlPasswordSql } from './sql-login-sql.ts'

/** Name of the home's database, which the image creates, empty, with the cluster. */
export const dedicatedDatabase = 'home'
/** Name with which SQL clients choose the replicas of a cluster. The gateway's Postgres proxy replaces it by `dedicatedDatabase`. */
export const readOnlyDatabase = 'home_read_only'

/** Runs a program in the Postgres container. */
type RunInside = (command: readonly string[], input: string) => Promise<ExecResult>

/**
 * Command of `psql`: quiet, without start-up files, and ending at the first error, which it reports by its SQLSTATE. A
 * time limit applies, because a program inside a container cannot be ended once its caller has gone.
 */
const psql = ['timeout', '35', 'psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=sqlstate']

/**
 * Creates the home of a tenant with its own Postgres. `psql` runs its SQL inside that container. Errors of `run` are
 * passed on.
 * @param maxObjects maximum number of the tenant's own relations, and of its other objects
 */
export function createDedicatedHome(run: RunInside, migrations: HomeMigration[], maxObjects: number): HomeServer {
  const asSuperuser = (sql: string, transaction: readonly string[] = ['-1']) =>
    run([...psql, ...transaction, '-U', 'postgres', '-d', dedicatedDatabase, '-f', '-'], sql)

  /** Runs SQL over TCP as any other client does. The password is the first line of standard input. */
  const asLogin = (role: string, password: string, sql: string) =>
    run(
      [
        'sh',
        '-c',
        'IFS= read -r PGPASSWORD && export PGPASSWORD && exec "$@"',
        'sh',
        ...psql,
        '-h',
        '127.0.0.1',
        '-U',
        role,
        '-d',
        dedicatedDatabase,
        '-f',
        '-',
      ],
      `${password}\n${sql}`,
    )

  const repair: HomeServer['repair'] = async (tenantId, passwords) => {
    const repaired = await asSuperuser(
      `${restoreHomeRolesSql(tenantId, newVerifiers(passwords), homeConnectionLimits, systemParts(migrations))};`,
    )
    if (repaired.code === 0) return 'to be migrated'
    if (!repaired.stderr.includes(schemaMissing)) throw failure('The home could not be repaired.', repaired)
    return 'missing'
  }

  return {
    async prepare(created) {
      await created()
      await succeeded(
        'The database could not be prepared.',
        asSuperuser(
          `${prepareHomesSql(dedicatedDatabase, maxObjects)};\nrevoke all on database postgres, template1 from public;`,
        ),
      )
    },

    async create(tenantId, passwords) {
      const made = await asSuperuser(
        `${createNewHomeSql(
          tenantId,
          newVerifiers(passwords),
          homeConnectionLimits,
          firstMigrationsSql(ownTarget(tenantId), migrations),
        )};`,
      )
      if (made.code === 0) return 'whole'
      if (!made.stderr.includes(schemaExists) || (await repair(tenantId, passwords)) === 'missing')
        throw failure('The home could not be created.', made)
      return 'to be migrated'
    },

    repair,

    async migrate(tenantId) {
      const { password, verifier } = oneTimePassword()
      const role = homeRoles(tenantId).system
      await succeeded(
        'The home could not be opened for a migration.',
        asSuperuser(`${openSystemLoginSql(tenantId, verifier)};`),
      )
      try {
        const applied = await asLogin(role, password, `${appliedVersionSql(tenantId)};`)
        if (applied.code !== 0 && !applied.stderr.includes(undefinedTable))
          throw failure('The home could not be migrated.', applied)
        const version = applied.code === 0 && applied.stdout.trim() !== '' ? Number(applied.stdout) : undefined
        const { stdout } = await succeeded(
          'The home could not be migrated.',
          asLogin(
            role,
            password,
            `set statement_timeout = '20s'; set lock_timeout = '2s';\n${migrateHomeSql(ownTarget(tenantId), migrations, version)};`,
          ),
        )
        return readReport(linesOf(stdout))
      } finally {
        await succeeded(
          'The home could not be closed after a migration.',
          asSuperuser(`${closeSystemLoginSql(tenantId)};`),
        )
      }
    },

    async check(tenantId, password) {
      const { stdout } = await succeeded(
        "The runtime's login does not work.",
        asLogin(
          homeRoles(tenantId).runtime,
          password,
          `set statement_timeout = '3s'; (${violationsSql(tenantId)}) union all ${unpreparedSql(maxObjects)};`,
        ),
      )
      const errors = linesOf(stdout)
      if (errors.length > 0) throw damaged(errors)
    },

    // A suspended tenant's Postgres is stopped.
    setSqlLogin: () => Promise.resolve(),

    async setSqlPassword(tenantId, password) {
      const end = `${endAdminSessionsSql(tenantId)};`
      await succeeded(
        'The password of the SQL login could not be set.',
        // Without one transaction for all: the sessions that end last have begun with the old password.
        asSuperuser(`${end}\nbegin;\n${setSqlPasswordSql(tenantId, verifierOf(password))};\ncommit;\n${end}`, []),
      )
    },

    async setServicePasswords(tenantId, passwords) {
      await succeeded(
        "The passwords of the services' logins could not be set.",
        asSuperuser(`${setServicePasswordsSql(tenantId, passwords)};`),
      )
    },

    async endSessions(tenantId) {
      await succeeded(
        "The home's sessions could not be ended.",
        asSuperuser(`${noLoginSql(tenantId)};\n${endSessionsSql(tenantId)};`, []),
      )
    },

    async openLogins(tenantId, passwords) {
      await succeeded(
        "The home's logins could not be opened.",
        asSuperuser(`${openLoginsSql(tenantId, newVerifiers(passwords))};`),
      )
    },

    // The home is removed with its volume.
    drop: () => Promise.resolve(),
    dropSchema: () => Promise.resolve(),
  }
}

const undefinedTable = '42P01'

function linesOf(output: string): string[] {
  return output.split('\n').filter((line) => line !== '')
}

async function succeeded(what: string, running: Promise<ExecResult>): Promise<ExecResult> {
  const result = await running
  if (result.code !== 0) throw failure(what, result)
  return result
}

function failure(what: string, { code, stderr }: ExecResult): Error {
  return new HomeError(what, { cause: new Error(`psql ended with exit code ${code}: ${stderr.trim().slice(-500)}`) })
}
