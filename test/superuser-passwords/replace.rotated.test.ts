// The password of the superuser is replaced in a file under load: no request fails, and the old one is dead. The control plane is
// killed at each point of the replacement.
import { randomBytes } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { jobFailpointNames } from '#control-plane/reconcile/failpoints.ts'
import { effort } from '#test/support/effort.ts'
import { startPlatform, type Platform } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { create, fill, rowsOf, startLoad } from '#test/installation/support/load.ts'

const rounds = effort({ small: 2, full: 20 })
const kills = effort({ small: 1, full: 10 })
const newPassword = () => randomBytes(24).toString('base64url')

interface Replaced {
  former: string
  wanted: string
}

/** Writes a new password in front of the others, as an operator does. */
async function replaceInFile(file: string): Promise<Replaced> {
  const lines = await readFile(file, 'utf8')
  const wanted = newPassword()
  await writeFile(`${file}.next`, `${wanted}\n${lines}`, { mode: 0o600 })
  await rename(`${file}.next`, file)
  return { former: lines.split('\n')[0] ?? '', wanted }
}

const login = (platform: Platform, password: string) =>
  query(Object.assign(new URL(platform.postgres.url('control')), { password }).href, 'select 1 as one')

async function isReplaced(t: Test, platform: Platform, { former, wanted }: Replaced): Promise<void> {
  await until(
    () =>
      login(platform, wanted).then(
        () => true,
        () => false,
      ),
    'the new password works',
  )
  await t.rejects(login(platform, former), { code: '28P01' }, 'the old password is dead')
}

/** Waits until both servers are recorded once more. Here they are one server with two databases. */
async function isRecorded(t: Test, platform: Platform, times: number): Promise<void> {
  await until(async () => (await entriesOf(platform)).length >= 2 * times, 'the audit log has the entries')
  const entries = await entriesOf(platform)
  for (const target of ['local', 'control database'])
    t.equal(entries.filter((entry) => entry.target === target).length, times, `${target}: one entry for each`)
  t.ok(entries.every(({ actor }) => actor === 'system'))
}

async function entriesOf(platform: Platform) {
  const { body } = await platform.call('GET', '/v1/audit?limit=1000')
  return (body['entries'] as { action: string; target: string; actor: string }[]).filter(
    ({ action }) => action === 'superuser_password.rotate',
  )
}

t.test('The password of the superuser is replaced under load', { timeout: 600_000 }, async (t) => {
  const platform = await startPlatform({ superuserPassword: newPassword() })
  t.teardown(() => platform.stop())
  const { postgresPasswordFile: file = '' } = platform
  let control = await platform.startControlPlane()
  const tenant = await create(platform, 'acme')
  await fill(platform, tenant)
  let times = 0
  // The first password is recorded without an entry.
  await until(async () => {
    const url = Object.assign(new URL(platform.postgres.url('control')), {
      password: (await readFile(file, 'utf8')).trim(),
    }).href
    const [row] = await query(
      url,
      'select count(*)::int as n from installation, regions where installation.superuser_password_id = regions.superuser_password_id',
    )
    return row?.['n'] === 1
  }, 'the first password is recorded')

  t.test('No request fails, of tenants or of operators', async (t) => {
    const requests = startLoad(rowsOf(platform, tenant))
    // Each burst needs more connections to the control database than the last one has left.
    const calls = startLoad(async (n) => {
      const path = n % 2 === 0 ? '/v1/tenants?limit=100' : `/v1/tenants/${tenant.id}`
      const headers = { authorization: `Bearer ${platform.platformKey}` }
      const all = await Promise.all(
        Array.from({ length: 1 + (n % 8) }, () => fetch(`${platform.controlUrl}${path}`, { headers })),
      )
      return all.find(({ ok }) => !ok) ?? all[0] ?? Response.error()
    })
    const sessions = startLoad(() =>
      fetch(`${platform.controlUrl}/v1/tenants/${tenant.id}/sessions`, {
        headers: { authorization: `Bearer ${platform.platformKey}` },
      }),
    )
    for (let round = 0; round < rounds; round++) {
      const replaced = await replaceInFile(file)
      await isReplaced(t, platform, replaced)
      await isRecorded(t, platform, ++times)
      // The operator removes the former passwords.
      if (round % 2 === 0) await writeFile(file, replaced.wanted)
    }
    const made = await create(platform, 'later')
    t.equal(made.name, 'later', 'a tenant is created with the new password')
    for (const load of [requests, calls, sessions]) await load.stop(t)
  })

  t.test('A file that cannot be used changes nothing', async (t) => {
    const lines = await readFile(file, 'utf8')
    const requests = startLoad(rowsOf(platform, tenant))
    for (const wrong of ['', 'short', `${newPassword()}\nshort`]) {
      await writeFile(file, wrong)
      const before = control.output().length
      await until(
        () => Promise.resolve(control.output().slice(before).includes('could not be replaced')),
        'the log names the failure',
      )
      t.match(control.output().slice(before), /must contain at least 16 characters in each line/)
      t.equal((await platform.call('GET', `/v1/tenants/${tenant.id}`)).status, 200)
    }
    await writeFile(file, lines)
    await requests.stop(t)
    await login(platform, lines.split('\n')[0] ?? '')
  })

  t.test('A control plane that is killed at any point leaves a server that the next one can use', async (t) => {
    control.process.kill('SIGTERM')
    await control.exited
    const requests = startLoad(rowsOf(platform, tenant))
    for (let n = 0; n < kills; n++)
      for (const point of jobFailpointNames) {
        const replaced = await replaceInFile(file)
        const armed = await platform.startControlPlane({ failpoints: `${point}=kill` })
        await armed.exited
        t.equal(armed.process.signalCode, 'SIGKILL', `killed at ${point}`)
        control = await platform.startControlPlane()
        await isReplaced(t, platform, replaced)
        await isRecorded(t, platform, ++times)
        control.process.kill('SIGTERM')
        await control.exited
      }
    await requests.stop(t)
    control = await platform.startControlPlane()
  })

  t.test('A former password in a server that was restored from a copy is replaced again', async (t) => {
    const [wanted = '', former = ''] = (await readFile(file, 'utf8')).split('\n')
    await query(
      Object.assign(new URL(platform.postgres.url('postgres')), { password: wanted }).href,
      `alter role postgres password '${former}'`,
    )
    control.process.kill('SIGKILL')
    await control.exited
    control = await platform.startControlPlane()
    await isReplaced(t, platform, { former, wanted })
    await isRecorded(t, platform, times)
  })
})
