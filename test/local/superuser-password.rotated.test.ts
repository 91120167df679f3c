// The password of the superuser of both servers of `npm start` is replaced while they run, and they start with it again.
import { randomBytes } from 'node:crypto'
import { chown, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { socketUrl, socketPorts } from '#local/process/postgres-socket.ts'
import { removeInstallation, startInstallation, type Installation } from '#test/support/installation.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

t.test('npm start', { timeout: 240_000 }, async (t) => {
  let installation: Installation = await startInstallation()
  t.teardown(() => removeInstallation(installation))
  const { data } = installation
  const file = join(data, 'secrets', 'postgres-password')
  const login = (port: number, password: string) =>
    query(socketUrl({ sockets: join(data, 'sockets'), port, password }, 'postgres'), 'select 1 as one')
  const works = (port: number, password: string) =>
    login(port, password).then(
      () => true,
      () => false,
    )
  const replace = async () => {
    const lines = await readFile(file, 'utf8')
    const wanted = randomBytes(24).toString('base64url')
    await writeFile(`${file}.next`, `${wanted}\n${lines}`, { mode: 0o600 })
    // The services run as another user, who owns the file.
    const { uid, gid } = await stat(file)
    await chown(`${file}.next`, uid, gid)
    await rename(`${file}.next`, file)
    return { wanted, former: lines.split('\n')[0] ?? '' }
  }
  const isOn = async (t: Test, port: number, { wanted, former }: { wanted: string; former: string }) => {
    await until(() => works(port, wanted), 'the new password works')
    await t.rejects(login(port, former), { code: '28P01' }, 'the old password is dead')
  }
  const tenants = async () => {
    const response = await fetch(`${installation.controlUrl}/v1/tenants`, {
      headers: { authorization: `Bearer ${installation.platformKey}` },
    })
    return response.status
  }

  t.test('Both servers get the new password', async (t) => {
    const replaced = await replace()
    for (const port of Object.values(socketPorts)) await isOn(t, port, replaced)
    t.equal(await tenants(), 200)
  })

  t.test('A killed server starts again with the password that it has', async (t) => {
    for (const service of ['postgres', 'control-database'] as const) {
      const pid = await installation.pid(service)
      process.kill(pid, 'SIGKILL')
      await until(async () => (await installation.pid(service).catch(() => pid)) !== pid, 'the server starts again')
    }
    await until(async () => (await tenants()) === 200, 'the control plane has connected again')
    const [current = ''] = (await readFile(file, 'utf8')).split('\n')
    for (const port of Object.values(socketPorts)) t.same(await login(port, current), [{ one: 1 }])
  })

  t.test('A start of the installation with a new password in the file', async (t) => {
    t.equal(await installation.stop(), 0)
    const replaced = await replace()
    installation = await startInstallation({ dataDirectory: data })
    t.equal(await tenants(), 200)
    for (const port of Object.values(socketPorts)) await isOn(t, port, replaced)
    // The former ones are removed.
    t.equal(await installation.stop(), 0)
    await writeFile(file, replaced.wanted)
    installation = await startInstallation({ dataDirectory: data })
    t.equal(await tenants(), 200)
  })
})
