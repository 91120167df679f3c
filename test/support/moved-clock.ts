// A clock that a test sets, for whole processes and for the homes in a Postgres: what the machine's clock would be for all of them.
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { query, type TestPostgres } from './postgres.ts'

type ClockOf = 'controlPlane' | 'runtime'

export interface MovedClock {
  now(): Date
  /** Sets it forward; it goes on from there. */
  moveTo(at: Date): Promise<void>
  /** What a process of Node needs to go by it. The clock of control planes is set last: what they ask goes by it already. */
  preloads: readonly string[]
  environments: Record<ClockOf, Record<string, string>>
  /** Makes a database of which `now()` and `clock_timestamp()` go by it, in statements parsed from then on. */
  makeDatabase(postgres: TestPostgres, name: string): Promise<void>
  remove(): Promise<void>
}

/** The built-in functions under other names, and ours under theirs. */
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

/** As the preload has it: what was read holds for so long. */
const freshMilliseconds = 20

async function report(file: string, ahead: number): Promise<void> {
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
    await report(files.runtime, ahead)
    await wait(2 * freshMilliseconds)
    await report(files.controlPlane, ahead)
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
