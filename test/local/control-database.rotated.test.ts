// The control database of `npm start` has a Postgres of its own. An installation of an earlier version has it in the server
// of the tenants' homes; the first start moves it, whatever interrupts the move.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ensureControlDatabase } from '#local/control-database.ts'
import { serviceIdentity } from '#local/process/unprivileged.ts'
import { effort } from '#test/support/effort.ts'
import { startInstallation, type Installation } from '#test/support/installation.ts'
import { query } from '#test/support/postgres.ts'
import { startServers, type RunningServers } from './support/postgres-servers.ts'

const moveUntilKilled = new URL('support/move-until-killed.ts', import.meta.url).pathname
const control = 'tenantry_control'

async function call(installation: Installation, method: string, path: string, body?: object) {
  const response = await fetch(`${installation.controlUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${installation.platformKey}`,
      'content-type': 'application/json',
      prefer: 'wait=60',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** Returns the number and a hash of the rows of each table, and the position of each sequence. */
async function contentOf(url: string): Promise<Record<string, unknown>> {
  const names = await query(
    url,
    `select format('%I.%I', schemaname, tablename) as name, false as sequence from pg_tables where schemaname = 'public'
     union all select format('%I.%I', schemaname, sequencename), true from pg_sequences order by 1`,
  )
  const content: Record<string, unknown> = {}
  for (const { name, sequence } of names)
    [content[String(name)]] = await query(
      url,
      sequence === true
        ? `select last_value, is_called from ${String(name)}`
        : `select count(*)::int, md5(string_agg(row::text, ',' order by row::text)) from ${String(name)} as row`,
    )
  return content
}

const databases = async (url: string) =>
  (await query(url, `select datname as name from pg_database where datname like '${control}%' order by 1`)).map(
    ({ name }) => name,
  )

/** Moves the database back to where earlier versions have it. */
async function moveBack(servers: RunningServers, directory: string): Promise<void> {
  await ensureControlDatabase({
    homes: servers.control,
    control: servers.homes,
    directory,
    identity: await serviceIdentity(),
    log: { info: () => undefined },
  })
  await query(servers.control('postgres'), `drop database ${control}_moved`)
}

t.test(
  'The control database moves to a server of its own, after a kill at any point',
  { timeout: 600_000 },
  async (t) => {
    const parent = await mkdtemp(join(tmpdir(), 'tenantry-move-'))
    await chmod(parent, 0o755)
    const data = join(parent, 'data')
    t.teardown(() => rm(parent, { recursive: true, force: true }))
    const first = await startInstallation({ dataDirectory: data })
    const created = await call(first, 'POST', '/v1/tenants', { name: 'older', plan: 'Free', region: 'local' })
    t.equal(created.status, 201)
    t.equal(await first.stop(), 0)

    const directory = join(data, 'move')
    const servers = await startServers(data)
    t.teardown(() => servers.stop())
    const before = await contentOf(servers.control(control))
    t.ok(Object.keys(before).length > 30, `${Object.keys(before).length} tables and sequences`)
    await moveBack(servers, directory)
    t.same(await databases(servers.control('postgres')), [])
    t.same(await databases(servers.homes('postgres')), [control])

    const step = effort({ small: 100, full: 1 })
    let kills = 0
    for (let last = 1; ; last += step) {
      const urls = [servers.homes('postgres'), servers.control('postgres')]
      const child = spawn(process.execPath, [moveUntilKilled, ...urls, directory, String(last)], { stdio: 'inherit' })
      const [code] = (await once(child, 'exit')) as [number | null]
      if (code === 0) break
      t.equal(child.signalCode, 'SIGKILL', `killed before query ${last}`)
      kills++
      const [old, own] = [await databases(servers.homes('postgres')), await databases(servers.control('postgres'))]
      const isComplete = own.includes(control)
      t.ok(isComplete || old.includes(control), 'the old database or a complete new one exists')
      t.same(await contentOf(isComplete ? servers.control(control) : servers.homes(control)), before)
    }
    t.ok(kills > 2, `${kills} kills`)
    t.same(await contentOf(servers.control(control)), before)
    t.same(await databases(servers.control('postgres')), [control])
    t.same(await databases(servers.homes('postgres')), [`${control}_moved`])
    await t.rejects(access(directory), 'no copied row is left in a file')

    await moveBack(servers, directory)
    await servers.stop()
    await rm(join(data, 'control-database'), { recursive: true })
    const again = await startInstallation({ dataDirectory: data })
    t.teardown(() => again.stop())
    t.equal(again.platformKey, first.platformKey)
    const id = String(created.body['tenant_id'])
    t.match((await call(again, 'GET', `/v1/tenants/${id}`)).body, { name: 'older', status: 'ready' })
    const { secret_key: key } = created.body['keys'] as { secret_key: string }
    const read = await fetch(`${again.gatewayUrl}/t/older/storage/v1/bucket`, {
      headers: { authorization: `Bearer ${key}` },
    })
    t.equal(read.status, 200, 'the tenant is served')
    t.equal(
      (await call(again, 'POST', '/v1/tenants', { name: 'newer', plan: 'Free', region: 'local' })).status,
      201,
      'tenants can be created',
    )
  },
)
