// A wall clock that a test sets for whole processes and for databases of homes.
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { query, type TestPostgres } from './postgres.ts'

type ClockOf = 'controlPlane' | 'runtime'

export interface MovedClock {
  now(): Date
  /** Moves the clock forward; it continues from there. */
  moveTo(at: Date): Promise<void>
  /** Modules that a Node process must import to use this clock. Control planes get a new time last, after all that they query. */
  preloads: readonly string[]
  environments: Record<ClockOf, Record<string, string>>
  /** Creates a database in which `now()` and `clock_timestamp()` use this clock. */
  makeDatabase(postgres: TestPostgres, name: string): Promise<void>
  remove(): Promise<void>
}

/** Renames the built-in functions and creates ours under their names. */
const moveDatabase = `
  create schema moved_clock;
  create table moved_clock.ahead (milliseconds bigint not null);
  insert into moved_clock.ahead values (0);
  alter function pg_catalog.now() rename to machine_now;
  alter function pg_catalog.clock_timestamp() rename to machine_clock_timestamp;
  create function pg_catalog.now() returns timestamptz language plpgsql stable security definer as
    $$ begin return machine_now() + (select milliseconds * interval '1 millisecond' from moved_clock.ahead); end $$;
  create function pg_catalog.clock_timestamp() returns timestamptz language plpgsql volatile security definer as
    $$ begin return machine_clock_timestamp() + (select milliseconds * interval '1 millisecond' from moved_clock.ahead); end $$`

/** Milliseconds for which the preload uses an offset that it read. */
const freshMilliseconds = 20

async function writeOffset(file: string, ahead: number): Promise<void> {
  await writeFile(`${file}.new`, String(ahead))
  await rename(`${file}.new`, file)
}

export async function createMovedClock(start: Date): Promise<MovedClock> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-clock-'))
  const files = { runtime: join(directory, 'runtime'), controlPlane: join(directory, 'control-plane') }
  const databases: string[] = []
  let ahead = 0

  const set = async (at: Date) => {
    ahead = at.getTime() - Date.now()
    await Promise.all(databases.map((url) => query(url, 'update moved_clock.ahead set milliseconds = $1', [ahead])))
    await writeOffset(files.runtime, ahead)
    await wait(2 * freshMilliseconds)
    await writeOffset(files.controlPlane, ahead)
  }
  await set(start)

  return {
    now: () => new Date(Date.now() + ahead),
    moveTo: set,
    preloads: [new URL('./moved-clock-preload.ts', import.meta.url).href],
    environments: {
      runtime: { TENANTRY_TEST_CLOCK: files.runtime },
      controlPlane: { TENANTRY_TEST_CLOCK: files.controlPlane },
    },
    async makeDatabase(postgres, name) {
      await query(postgres.url('postgres'), `create database ${name}`)
      const url = postgres.url(name)
      await query(url, moveDatabase)
      await query(url, 'update moved_clock.ahead set milliseconds = $1', [ahead])
      databases.push(url)
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}
