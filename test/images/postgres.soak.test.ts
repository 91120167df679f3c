// The Postgres image: what its entrypoint does with its volumes, and which logins it admits.
import t, { type Test } from 'tap'
import { effort } from '#test/support/effort.ts'
import { createSandbox, until, type ExecResult, type Running, type Sandbox } from './support/sandbox.ts'

const kills = effort({ small: 4, full: 20 })
const killedAtOnce = 2

async function isReady(server: Running): Promise<boolean> {
  if (!(await server.isRunning())) throw new Error(`Postgres has ended: ${await server.logs()}`)
  return (await server.exec(['pg_isready', '--quiet', '--host=/run/postgresql'])).code === 0
}

async function startServer(sandbox: Sandbox, data: string, secrets?: string): Promise<Running> {
  const server = await sandbox.start('postgres', { data, ...(secrets === undefined ? {} : { secrets }) })
  await until('Postgres to respond', () => isReady(server))
  return server
}

/** Runs SQL over the socket, as the superuser. */
async function sql(server: Running, text: string, database = 'postgres'): Promise<string> {
  const { code, output } = await server.exec([
    'psql',
    '--no-psqlrc',
    '--host=/run/postgresql',
    '--tuples-only',
    '--no-align',
    `--dbname=${database}`,
    `--command=${text}`,
  ])
  if (code !== 0) throw new Error(output)
  return output
}

/** Logs in over TCP, with a password. */
function login(server: Running, user: string, password: string): Promise<ExecResult> {
  return server.exec(
    [
      'psql',
      '--no-psqlrc',
      '--host=127.0.0.1',
      `--username=${user}`,
      '--dbname=home',
      '--tuples-only',
      '--no-align',
      '--command=select current_user',
    ],
    { PGPASSWORD: password },
  )
}

/** Starts a server on a volume that it must reject, and returns its log. */
async function rejection(t: Test, sandbox: Sandbox, data: string): Promise<string> {
  const server = await sandbox.start('postgres', { data })
  t.equal(await server.ended(), 1)
  return server.logs()
}

t.test('An empty volume becomes a complete cluster', async (t) => {
  const sandbox = createSandbox(t)
  const server = await startServer(sandbox, await sandbox.volume())
  t.equal(
    await sql(server, "select string_agg(datname, ',' order by datname) from pg_database"),
    'home,postgres,template0,template1',
  )
  t.equal(
    await sql(
      server,
      "select pg_encoding_to_char(encoding), datcollate, datctype from pg_database where datname = 'home'",
    ),
    'UTF8|C.UTF-8|C.UTF-8',
  )
  t.equal(
    await sql(
      server,
      `select string_agg(name || '=' || setting, ',' order by name) from pg_settings
        where name in ('data_checksums', 'password_encryption', 'jit', 'fsync')`,
    ),
    'data_checksums=on,fsync=on,jit=off,password_encryption=scram-sha-256',
  )
  t.equal(
    await sql(server, "select rolpassword is null from pg_authid where rolname = 'postgres'"),
    't',
    'the superuser has no password',
  )
})

t.test('A named empty volume becomes a cluster only with permission, once', async (t) => {
  const sandbox = createSandbox(t)
  const environment = { TENANTRY_VOLUME: 'tenantry-x-data' }
  const data = await sandbox.volume()
  const listing = 'cd /var/lib/postgresql && find . -mindepth 1 ! -name lock | sort'
  const rejected = async (what: string, message: RegExp) => {
    const before = await sandbox.shell('postgres', data, listing)
    const server = await sandbox.start('postgres', { data, environment })
    t.equal(await server.ended(), 1, what)
    t.match(await server.logs(), message, what)
    t.equal(await sandbox.shell('postgres', data, listing), before, `${what}: nothing was changed`)
  }
  const start = async () => {
    const server = await sandbox.start('postgres', { data, environment })
    await until('Postgres to respond', () => isReady(server))
    return server
  }
  const noPermission =
    /"tenantry-x-data" holds no data directory, and the control plane has not permitted to create one/
  await rejected('an empty volume', noPermission)
  await sandbox.shell('postgres', data, 'echo tenantry-y-data > /var/lib/postgresql/initialize')
  await rejected("another volume's permission", noPermission)

  await sandbox.shell('postgres', data, 'echo tenantry-x-data > /var/lib/postgresql/initialize')
  const first = await start()
  await sql(first, 'create table saved as select 42 as number', 'home')
  t.equal((await first.exec(['ls', '/var/lib/postgresql'])).output, '17\nlock\nowner', 'the permission is used up')
  await first.container.remove({ force: true })

  t.comment('a second permission has no effect')
  await sandbox.shell('postgres', data, 'echo tenantry-x-data > /var/lib/postgresql/initialize')
  const second = await start()
  t.equal(await sql(second, 'select number from saved', 'home'), '42')
  await second.container.remove({ force: true })

  await sandbox.shell('postgres', data, 'echo tenantry-y-data > /var/lib/postgresql/owner')
  await rejected('the volume of another container', /the volume is "tenantry-y-data" and not "tenantry-x-data"/)
  await sandbox.shell(
    'postgres',
    data,
    'echo tenantry-x-data > /var/lib/postgresql/owner; rm -r /var/lib/postgresql/17',
  )
  await rejected('a volume whose data directory is gone', noPermission)
})

t.test('A data directory from before volumes were named gets its owner', async (t) => {
  const sandbox = createSandbox(t)
  const data = await sandbox.volume()
  const before = await startServer(sandbox, data)
  await sql(before, 'create table saved as select 42 as number', 'home')
  t.equal((await before.exec(['ls', '/var/lib/postgresql'])).output, '17\nlock')
  await before.container.remove({ force: true })
  const server = await sandbox.start('postgres', { data, environment: { TENANTRY_VOLUME: 'tenantry-x-data' } })
  await until('Postgres to respond', () => isReady(server))
  t.equal(await sql(server, 'select number from saved', 'home'), '42')
  t.equal((await server.exec(['cat', '/var/lib/postgresql/owner'])).output, 'tenantry-x-data')
})

t.test('Settings are arguments, and cannot open another port', async (t) => {
  const sandbox = createSandbox(t)
  const server = await sandbox.start('postgres', {
    data: await sandbox.volume(),
    command: ['-c', 'max_connections=33', '-c', 'port=6000', '-c', 'hba_file=/tmp/mine'],
  })
  await until('Postgres to respond', () => isReady(server))
  t.equal(
    await sql(
      server,
      "select string_agg(setting, ',' order by name) from pg_settings where name in ('hba_file', 'max_connections', 'port')",
    ),
    '/usr/share/tenantry/pg_hba.conf,33,5432',
  )
})

t.test('A container that is killed during its first start is complete after the next one', async (t) => {
  const sandbox = createSandbox(t)
  const undisturbed = await sandbox.start('postgres', { data: await sandbox.volume() })
  const started = performance.now()
  await until('Postgres to respond', () => isReady(undisturbed))
  const usual = performance.now() - started
  let halfMade = 0
  const killAndStart = async (number: number) => {
    const data = await sandbox.volume()
    const server = await sandbox.start('postgres', { data })
    await new Promise((resolve) => setTimeout(resolve, (usual * number) / kills))
    await server.container.kill({ signal: 'SIGKILL' })
    await server.container.wait()
    // A container that is killed early has created nothing yet.
    if ((await sandbox.shell('postgres', data, 'ls /var/lib/postgresql/* || true')).includes('data.making')) halfMade++
    await server.container.start()
    await until('Postgres to respond', () => isReady(server))
    t.equal(
      await sql(server, "select count(*) from pg_class where relname = 'pg_class'", 'home'),
      '1',
      `killed after ${number} of ${kills} parts of a start`,
    )
    t.equal((await server.exec(['ls', '/var/lib/postgresql/17'])).output, 'data')
    await server.container.remove({ force: true })
  }
  for (let number = 0; number < kills; number += killedAtOnce) {
    await Promise.all(Array.from({ length: killedAtOnce }, (_, more) => killAndStart(number + more)))
  }
  t.comment(`${halfMade} of ${kills} were killed while the data directory was made`)
})

t.test('A half-created data directory is created again', async (t) => {
  const sandbox = createSandbox(t)
  const data = await sandbox.volume()
  await sandbox.shell('postgres', data, 'mkdir -p $PGDATA.making/base && echo 17 > $PGDATA.making/PG_VERSION')
  const server = await startServer(sandbox, data)
  t.equal(await sql(server, 'select 1', 'home'), '1')
})

t.test('A killed server starts again with its data, whatever its lock file contains', async (t) => {
  const sandbox = createSandbox(t)
  const data = await sandbox.volume()
  const server = await startServer(sandbox, data)
  await sql(server, 'create table saved as select 42 as number', 'home')
  for (const lockFile of ['', '1\n', '7\n/var/lib/postgresql/17/data\n']) {
    await server.container.kill({ signal: 'SIGKILL' })
    await server.container.wait()
    await sandbox.shell('postgres', data, `printf '%b' '${lockFile.replaceAll('\n', '\\n')}' > $PGDATA/postmaster.pid`)
    await server.container.start()
    await until('Postgres to respond', () => isReady(server))
    t.equal(await sql(server, 'select number from saved', 'home'), '42', JSON.stringify(lockFile))
  }
})

t.test('Only one container runs on a volume', async (t) => {
  const sandbox = createSandbox(t)
  const data = await sandbox.volume()
  const server = await startServer(sandbox, data)
  t.match(await rejection(t, sandbox, data), /another container runs on this volume/)
  t.equal(await sql(server, 'select 1'), '1')
})

t.test('A data directory of another version, or with other files, is rejected and not changed', async (t) => {
  const sandbox = createSandbox(t)
  const cases = [
    {
      make: 'mkdir -p $PGDATA && echo 16 > $PGDATA/PG_VERSION',
      message: /the data directory is of Postgres 16; this image is 17/,
    },
    {
      make: 'mkdir -p /var/lib/postgresql/16/data && echo 16 > /var/lib/postgresql/16/data/PG_VERSION',
      message: /holds a data directory of Postgres 16 at \/var\/lib\/postgresql\/16\/data; this image is 17/,
    },
    {
      make: 'echo 15 > /var/lib/postgresql/PG_VERSION',
      message: /holds a data directory of Postgres 15 at \/var\/lib\/postgresql; this image is 17/,
    },
    {
      make: 'mkdir -p $PGDATA && echo precious > $PGDATA/file',
      message: /holds files, but no PG_VERSION: not touched/,
    },
  ]
  const listing = 'cd /var/lib/postgresql && find . -type f ! -name lock -exec cat {} + -print'
  for (const { make, message } of cases) {
    const data = await sandbox.volume()
    await sandbox.shell('postgres', data, make)
    const before = await sandbox.shell('postgres', data, listing)
    t.match(await rejection(t, sandbox, data), message)
    t.equal(await sandbox.shell('postgres', data, listing), before)
  }
})

t.test('Without a password file the superuser logs in only over the socket', async (t) => {
  const sandbox = createSandbox(t)
  const server = await startServer(sandbox, await sandbox.volume())
  await sql(server, "alter role postgres password 'known'; create role tenant login password 'theirs'")
  const superuser = await login(server, 'postgres', 'known')
  t.equal(superuser.code, 2)
  t.match(superuser.output, /pg_hba\.conf rejects connection/)
  t.same(await login(server, 'tenant', 'theirs'), { code: 0, output: 'tenant' })
  t.match((await login(server, 'tenant', 'wrong')).output, /password authentication failed/)
  t.match(
    (await server.exec(['psql', '--host=/run/postgresql', '--username=tenant', '--dbname=home', '--command=select 1']))
      .output,
    /pg_hba\.conf rejects connection/,
  )
  t.match(
    (
      await server.exec(
        ['psql', 'host=127.0.0.1 user=tenant dbname=home replication=true', '--command=IDENTIFY_SYSTEM'],
        { PGPASSWORD: 'theirs' },
      )
    ).output,
    /no pg_hba\.conf entry for replication connection/,
  )
})

t.test("With a password file the superuser's password is exactly the one in the file", async (t) => {
  const sandbox = createSandbox(t)
  const data = await sandbox.volume()
  const first = "first'; drop database home; --\\'"
  const secrets = await sandbox.secrets('postgres', { 'superuser-password': first })
  const server = await startServer(sandbox, data, secrets)
  t.same(await login(server, 'postgres', first), { code: 0, output: 'postgres' })
  t.match((await login(server, 'postgres', 'wrong')).output, /password authentication failed/)
  t.notOk((await server.logs()).includes(first), 'the password is not in the log')

  await sandbox.writeSecrets(secrets, 'postgres', { 'superuser-password': 'second\n' })
  await server.container.kill({ signal: 'SIGKILL' })
  await server.container.wait()
  await server.container.start()
  await until('Postgres to respond', () => isReady(server))
  t.match((await login(server, 'postgres', first)).output, /password authentication failed/)
  t.same(await login(server, 'postgres', 'second'), { code: 0, output: 'postgres' })

  // The control plane replaces the password while the server runs, and the container still has the file.
  await sql(server, "alter role postgres password 'third'")
  await server.container.restart()
  await until('Postgres to respond', () => isReady(server))
  t.match((await login(server, 'postgres', 'second')).output, /password authentication failed/, 'a start sets it once')
  t.same(await login(server, 'postgres', 'third'), { code: 0, output: 'postgres' })

  await sandbox.writeSecrets(secrets, 'postgres', { 'superuser-password': 'fourth\nthird\n' })
  await server.container.restart()
  await until('Postgres to respond', () => isReady(server))
  t.same(await login(server, 'postgres', 'fourth'), { code: 0, output: 'postgres' }, 'the first line is the password')
  t.match((await login(server, 'postgres', 'third')).output, /password authentication failed/)

  await server.container.stop()
  for (const wrong of ['', '\ntwo', 'tab\tin it']) {
    await sandbox.writeSecrets(secrets, 'postgres', { 'superuser-password': wrong })
    await server.container.start()
    t.equal(await server.ended(), 1)
    t.match(await server.logs(), /superuser-password must begin with a line/)
  }
})

t.test('A stop is clean, and a killed command in the container does not disturb sessions', async (t) => {
  const sandbox = createSandbox(t)
  const server = await startServer(sandbox, await sandbox.volume())
  const session = server.exec([
    'psql',
    '--host=/run/postgresql',
    '--tuples-only',
    '--no-align',
    '--command=select pg_sleep(2)',
    '--command=select 1',
  ])
  // The child of the shell is orphaned, and ends by a signal.
  t.equal((await server.exec(['/bin/bash', '-c', "(sh -c 'kill -9 $$' &) ; exit 0"])).code, 0)
  t.same(await session, { code: 0, output: '1' })
  await server.container.stop()
  t.equal(await server.ended(), 0)
  const logs = await server.logs()
  t.match(logs, /received fast shutdown request[^]*database system is shut down/)
  t.notMatch(logs, /terminated by signal/)
})
