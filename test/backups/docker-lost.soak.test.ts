// A tenant whose volume was removed fails, never starts on an empty volume, and can be restored in place.
import t from 'tap'
import { until } from '#test/support/until.ts'
import { startKills } from './support/kills.ts'
import { ended, seen } from './support/tenants.ts'

t.test('a restore in place brings back a lost volume', async (t) => {
  const { platform, ada, before, backupId } = await startKills(t)
  const owner = { installation: platform.installation, stack: ada.id }
  const signal = () => AbortSignal.timeout(60_000)
  const status = async () => String((await platform.call('GET', `/v1/tenants/${ada.id}`)).body['status'])
  for (const volume of ['data', 'files']) {
    await platform.stopControlPlanes()
    const { containers } = await platform.host.observe(owner, signal())
    for (const { name } of containers) await platform.host.removeContainer(name, owner, signal())
    await platform.host.removeVolume(`tenantry-${ada.id}-${volume}`, owner, signal())
    await platform.startControlPlane()
    await until(async () => (await status()) === 'failed')
    t.match((await platform.call('GET', `/v1/tenants/${ada.id}`)).body, {
      reason: new RegExp(`The volume "${volume}" and its data are gone`),
    })
    const operation = await ended(
      platform,
      await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: 'same' }),
      240,
    )
    t.match(operation, { state: 'succeeded', error: null }, volume)
    await until(async () => (await status()) === 'ready')
    t.same(await seen(platform, ada), before, `${volume}: no data is lost`)
  }
})
