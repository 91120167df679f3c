// An installation with Docker Compose and tenants of both isolation models is destroyed, with its host directory, and rebuilt
// from its backup target and its master key by the documented commands: rows, files, usage, invoices, keys and backups are
// compared.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { shellBlocks } from '#test/support/runbook.ts'
import { until } from '#test/support/until.ts'
import {
  backUp,
  checkOut,
  create,
  install,
  invoice,
  page,
  seen,
  timeout,
  writeSettings,
  type Installation,
  type Owner,
} from './support/operated-installation.ts'

const tenantsOfEach = effort({ small: 2, full: 10 })
const suspension = { suspended: true, suspend_reason: 'The invoice is due.' }

/** Dumps the control database now. A new leader takes a dump at once when the target has none. */
async function dump({ backups, shell }: Installation): Promise<void> {
  for (const name of await readdir(backups))
    if (name.startsWith('control-database-')) await rm(join(backups, name), { recursive: true })
  await shell.run('docker compose restart control-plane')
  const isDumped = async () => {
    // A directory may be renamed while it is listed.
    const names = await readdir(backups, { recursive: true }).catch(() => [])
    return names.some((name) => /control-database-.*[0-9a-f]{12}\/manifest$/.test(name))
  }
  await until(isDumped, 'the dump', timeout)
}

t.test('An installation of both isolation models is rebuilt', { timeout: 3_600_000 }, async (t) => {
  const installation = await install(t, { backupsOutside: true })
  const { shell, call, checkout } = installation
  const owners: Owner[] = []
  for (let number = 1; number <= tenantsOfEach; number++)
    owners.push(
      await create(installation, `shared-${number}`, 'Free'),
      await create(installation, `dedicated-${number}`, 'Pro'),
    )
  const halted = [
    await create(installation, 'shared-halted', 'Free'),
    await create(installation, 'dedicated-halted', 'Pro'),
  ]
  await invoice(installation, owners)
  for (const owner of [...owners, ...halted]) await backUp(installation, owner)
  for (const { id } of halted) await call('PATCH', `/v1/tenants/${id}`, suspension)
  await dump(installation)
  const [last] = owners.slice(-1)
  if (last === undefined) throw new Error('There is no tenant.')
  await query(last.url, "insert into ledger (text) values ('after the dump')")
  await until(
    async () => (await call('GET', '/v1/tenants?status=ready').catch(() => undefined))?.status === 200,
    'the control plane',
    timeout,
  )
  await backUp(installation, last)
  const before = await seen(installation, owners)

  const [copyKey = '', ...rebuild] = await shellBlocks(page, 'Rebuild a lost installation with Docker Compose')
  await shell.run(copyKey)
  await shell.run('deploy/remove --destroy-all-data')
  await rm(checkout, { recursive: true })
  const begun = performance.now()
  await checkOut(checkout)
  const [setUp = '', recover = '', ...others] = rebuild
  await shell.run(setUp)
  await writeSettings(checkout)
  t.match(await shell.run(recover), new RegExp(`tenants: ${owners.length + halted.length}\n`))
  let printed = ''
  for (const block of others) printed += await shell.run(block)
  t.comment(
    `${owners.length + halted.length} tenants were rebuilt in ${((performance.now() - begun) / 1000).toFixed(0)} s`,
  )
  for (const { id, name } of [...owners, ...halted])
    t.match(printed, new RegExp(`${id} \\(${name}\\): restored from the backup of `))
  t.match(printed, /backup [0-9a-f-]{36}: adopted/)
  t.same(await seen(installation, owners), before, 'everything is as it was, and the lost platform key is valid')
  for (const state of ['unknown', 'missing'])
    t.same((await call('GET', `/v1/backups?state=${state}`)).body['backups'], [], state)
  for (const { id, name } of halted) {
    const path = `/v1/tenants/${id}`
    const isSuspended = async () => (await call('GET', path)).body['status'] === 'suspended'
    await until(isSuspended, `${name} is suspended again`, timeout)
    t.match((await call('GET', path)).body, { suspend_reason: suspension.suspend_reason }, name)
    await call('PATCH', path, { suspended: false })
  }
  const resumed = await seen(installation, halted)
  for (const { name } of halted) t.match(resumed[`${name}: rows`], [{ count: 200 }])
})
