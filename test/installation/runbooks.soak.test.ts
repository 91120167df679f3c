// Runs the runbooks of docs/operate/back-up-and-restore.md word for word. An installation with a shared and a dedicated tenant
// is copied, its control database is restored, and then all of it is restored on a new host. Afterwards every tenant, row,
// file, backup and invoice exists.
import { rm } from 'node:fs/promises'
import t from 'tap'
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
  untilReady,
} from './support/operated-installation.ts'

t.test('The runbooks restore an installation', { timeout: 1_800_000 }, async (t) => {
  const installation = await install(t)
  const { shell, call } = installation
  const [acme, globex] = [await create(installation, 'acme', 'Free'), await create(installation, 'globex', 'Pro')]
  const owners = [acme, globex]
  await invoice(installation, owners)
  await backUp(installation, globex)

  const [names = '', images = '', everyDay = ''] = await shellBlocks(page, 'Back up')
  const copy = async () => {
    await shell.run(everyDay)
    for (const owner of owners) await untilReady(installation, owner)
  }
  for (const block of [names, images]) await shell.run(block)
  await copy()
  const second = await backUp(installation, globex)
  const before = await seen(installation, owners)
  t.equal((before['globex: backups'] as unknown[]).length, 2)
  t.equal((before['acme: invoices'] as unknown[]).length, 1)

  await t.test('The runbook restores the control database on the same host', async (t) => {
    const [restore = '', list = '', adopt = ''] = await shellBlocks(
      page,
      'Restore the control database on the same host',
    )
    await shell.run(restore)
    await until(
      () =>
        shell.run(list).then(
          (printed) => printed.includes(second),
          () => false,
        ),
      'the newer backup is listed as unknown',
      timeout,
    )
    t.match(await shell.run(adopt), new RegExp(`"id":"${second}".*"state":"complete"`))
    t.same(await seen(installation, owners), before)
    t.same((await call('GET', '/v1/backups?state=unknown')).body['backups'], [])
  })

  await t.test('The runbook restores everything on a new host', async (t) => {
    await copy()
    await shell.run('deploy/remove --destroy-all-data')
    await rm(installation.checkout, { recursive: true })
    await checkOut(installation.checkout)
    const blocks = await shellBlocks(page, 'Restore everything on a new host')
    for (const block of blocks) t.comment(await shell.run(block))
    t.same(await seen(installation, owners), before)
    for (const state of ['unknown', 'missing'])
      t.same((await call('GET', `/v1/backups?state=${state}`)).body['backups'], [], state)
    t.same((await call('GET', '/v1/tenants?status=failed')).body['tenants'], [])
  })
})
