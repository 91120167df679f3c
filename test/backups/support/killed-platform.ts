// A platform whose parts a test kills one at a time, with a bucket and a directory as backup targets, a tenant that does not
// change, and a tenant that is written to all the time.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { Test } from 'tap'
import { startPlatform, type Platform } from '#test/support/platform.ts'
import { query, startPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { startBucketTarget } from './bucket-target.ts'

/** More than one part of an upload to the bucket. */
const fileBytes = 6 * 2 ** 20
const files = ['one', 'two', 'three', 'four']
const writePauseMilliseconds = 10

export interface Owner {
  id: string
  name: string
  key: string
  url: string
}

/** The parts that a test kills and that start again. */
export type Victim = 'control plane' | 'control database' | 'homes' | 'bucket' | 'runtime'

export type KilledPlatform = Awaited<ReturnType<typeof startKilledPlatform>>

/** Starts the platform. It stops with the test. */
export async function startKilledPlatform(t: Test) {
  const root = await mkdtemp(join(tmpdir(), 'tenantry-kills-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const directory = join(root, 'directory')
  await mkdir(directory)
  // The bucket is the first target, so every backup begins there.
  const { server: bucket, file: targets } = await startBucketTarget(t, [{ name: 'nearby', directory }])
  const controlDatabase = await startPostgres()
  t.teardown(() => controlDatabase.stop())
  const platform = await startPlatform({
    control: {
      TENANTRY_CONTROL_DATABASE_URL: controlDatabase.url('control'),
      TENANTRY_BACKUP_TARGETS_FILE: targets,
      TENANTRY_DUMP_MINUTES: '1',
    },
  })
  t.teardown(() => platform.stop())
  let control = await platform.startControlPlane()
  const kills: Record<Victim, () => Promise<unknown>> = {
    'control plane': async () => {
      control.process.kill('SIGKILL')
      await control.exited
      control = await platform.startControlPlane()
    },
    'control database': () => controlDatabase.crash(),
    homes: () => platform.postgres.crash(),
    bucket: () => bucket.kill().then(() => bucket.start()),
    runtime: () => platform.restartRuntime(),
  }
  const call: Platform['call'] = async (...request) => {
    let response: Awaited<ReturnType<Platform['call']>> | undefined
    await until(async () => {
      response = await platform.call(...request).catch(() => undefined)
      return response !== undefined && response.status < 500
    })
    if (response === undefined) throw new Error('no response')
    return response
  }
  return {
    platform,
    /** Kills a part with SIGKILL, a Postgres with SIGQUIT, and starts it again. */
    kill: (victim: Victim) => kills[victim](),
    /** Calls the operators' API, again after a 5xx response and without a response. */
    call,
    controlSql: (sql: string, values: unknown[] = []) => query(controlDatabase.url('control'), sql, values),

    /** Returns what the targets contain of backups: the paths in the directory, the keys in the bucket, and its unfinished uploads. */
    async stored(): Promise<string[]> {
      const { whole, begun } = await bucket.keys()
      const entries = await readdir(directory, { recursive: true, withFileTypes: true })
      return [
        ...entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)),
        ...whole,
        ...begun.map((key) => `${key} (unfinished)`),
      ]
    },

    /** Returns the logins, schemas and databases that the work on backups creates for a while. */
    scratch: () =>
      query(
        platform.postgres.url(platform.homesDatabase),
        `select rolname as name from pg_roles where rolname like 'tenantry_reader_%' or rolname like 'tenantry_loader_%'
         union all select nspname from pg_namespace where nspname like 't\\_%\\_%' and nspname not like '%\\_pristine'
         union all select datname from pg_database where datname like 'tenantry_scratch%'`,
      ),

    /** Creates a tenant with rows and files. */
    async create(name: string): Promise<Owner> {
      const { body } = await call(
        'POST',
        '/v1/tenants',
        { name, plan: 'Pro', region: 'local', isolation: 'schema-per-tenant' },
        { prefer: 'wait=60' },
      )
      if (body['status'] !== 'ready') throw new Error(JSON.stringify(body))
      const owner = toOwner(body)
      const post = async (path: string, content: Uint8Array | string, type: string) => {
        const response = await platform.tenantCall(name, 'POST', path, { key: owner.key, body: content, type })
        if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      }
      await post('/storage/v1/bucket', '{"name":"papers","policy":"private"}', 'application/json')
      for (const file of files)
        await post(`/storage/v1/object/papers/${file}`, randomBytes(fileBytes), 'application/octet-stream')
      await query(
        owner.url,
        `create table ledger (id bigint generated always as identity primary key, text text);
         insert into ledger (text) select repeat(md5(n::text), 8) from generate_series(1, 20000) n;
         create table writes (number int primary key)`,
      )
      return owner
    },

    /** Returns what the users of a tenant see, once it is served. Two results are equal when nothing was lost. */
    async seen({ name, key, url }: Owner): Promise<Record<string, unknown>> {
      const content: Record<string, unknown> = {}
      for (const file of files) {
        const get = () => platform.tenantCall(name, 'GET', `/storage/v1/object/papers/${file}`, { key })
        await until(async () => {
          const response = await get().catch(() => undefined)
          const bytes = await response?.arrayBuffer().catch(() => undefined)
          if (response?.status !== 200 || bytes === undefined) return false
          content[file] = createHash('sha256').update(Buffer.from(bytes)).digest('hex')
          return true
        }, `the file ${file} of ${name}`)
      }
      const rows = `select count(*)::int as count, md5(string_agg(id || text, ',' order by id)) as hash from ledger`
      await until(async () => {
        content['rows'] = await query(url, rows).catch(() => undefined)
        return content['rows'] !== undefined
      }, `the rows of ${name}`)
      return content
    },
  }
}

export function toOwner(body: Record<string, unknown>): Owner {
  const keys = body['keys'] as Record<string, string>
  return {
    id: String(body['tenant_id']),
    name: String(body['name']),
    key: keys['secret_key'] ?? '',
    url: String(body['database_url']),
  }
}

/** Writes the numbers from 1 on into the tenant's table `writes`, one after the other, until it is stopped. */
export function startWriter({ url }: Owner) {
  const state = { acknowledged: 0, isStopped: false }
  const session = async () => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    await client.connect()
    try {
      while (!state.isStopped) {
        // A commit without a response is written again, and changes nothing then.
        await client.query('insert into writes values ($1) on conflict do nothing', [state.acknowledged + 1])
        state.acknowledged++
        await new Promise((resolve) => setTimeout(resolve, writePauseMilliseconds))
      }
    } finally {
      await client.end().catch(() => undefined)
    }
  }
  const ended = (async () => {
    while (!state.isStopped) {
      await session().catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, writePauseMilliseconds))
    }
  })()
  return {
    state,
    async stop(): Promise<number> {
      state.isStopped = true
      await ended
      return state.acknowledged
    },
  }
}
