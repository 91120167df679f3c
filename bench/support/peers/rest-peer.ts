// Platformatic DB on a Postgres of the same kind as the one of `npm start`: the same binaries and settings, durable commits, a
// Unix socket, and the same rows.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { sharedServerSettings } from '#control-plane/stacks/index.ts'
import { serviceIdentity, setOwner } from '#local/process/unprivileged.ts'
import { query, startPostgres } from '#test/support/postgres.ts'
import { startChild } from '../child.ts'

const columns = 'id, owner_id, title, done, rank, created_at'
/** The columns and indexes that a reload creates for the collection, without its tenant. */
const table = `
  create table todos (
    id uuid primary key default gen_random_uuid(), owner_id text, title text not null, done boolean,
    rank double precision, created_at timestamptz
  );
  create index on todos (owner_id)`

export interface RestPeer {
  port: number
  pid: number
  postgresPid: number
  stop(): Promise<void>
}

/**
 * Starts the peer with a copy of the rows.
 * @param directory which Postgres' user can enter
 * @param module the path of the package's main file
 * @param todos a session in the schema whose table is copied
 * @param connections the peer's connections to Postgres
 */
export async function startRestPeer(
  directory: string,
  module: string,
  todos: pg.Client,
  connections: number,
): Promise<RestPeer> {
  const sockets = join(directory, 'peer')
  await mkdir(sockets)
  await setOwner(sockets, await serviceIdentity())
  const postgres = await startPostgres({ fsync: 'on', ...sharedServerSettings, unix_socket_directories: sockets })
  try {
    await query(postgres.url('postgres'), 'create database peer')
    const url = Object.assign(new URL(postgres.url('peer')), {
      host: `${encodeURIComponent(sockets)}:${postgres.port}`,
    }).href
    await copyTodos(todos, url)
    const child = await startChild(
      new URL('./platformatic-db.ts', import.meta.url).pathname,
      [module, String(connections)],
      {
        DATABASE_URL: url,
        NODE_ENV: 'production',
      },
    )
    return {
      port: Number(child.firstOutput['port']),
      pid: child.pid,
      postgresPid: postgres.pid(),
      async stop() {
        await child.stop()
        await postgres.stop()
      },
    }
  } catch (error) {
    await postgres.stop()
    throw error
  }
}

async function copyTodos(from: pg.Client, url: string): Promise<void> {
  const { rows } = await from.query<{ all: string }>(
    `select json_agg(t)::text as all from (select ${columns} from todos) t`,
  )
  const to = new pg.Client({ connectionString: url })
  await to.connect()
  try {
    await to.query(table)
    await to.query(`insert into todos select ${columns} from json_populate_recordset(null::todos, $1)`, [rows[0]?.all])
    await to.query('vacuum analyze todos')
    await to.query('checkpoint')
  } finally {
    await to.end()
  }
}
