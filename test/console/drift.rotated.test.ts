// The repair of drift and the hosts in the console, by keyboard, against a control plane with a region whose engine is in memory.
import { totalmem } from 'node:os'
import t from 'tap'
import { shortBytes } from '../../console/src/format/numbers.ts'
import { newName, startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'
import { openBrowser, openConsole, press, signIn } from './support/open-console.ts'
import { openScreen, seriousViolations } from './support/page-checks.ts'

const api = await startApi(t, { cloud: true, jobs: true })
const url = await api.app.listen({ host: '127.0.0.1', port: 0 })
const browser = await openBrowser(t)
const opened = await openConsole(browser, url)
const { page, violations } = opened
await signIn(opened, api.keys.admin)

t.test('One field is repaired at once, one that interrupts after a confirmation', async (t) => {
  const { tenant_id: id } = await api.create(newName(), { plan: 'Pro', region: 'cloud' })
  const policy = { body: { drift_policy: 'report' }, headers: { prefer: 'wait=30' } }
  await api.call('PATCH', `/v1/tenants/${id}`, policy)
  const [postgres, runtime] = api.engine.stacks.get(id)?.containers ?? []
  if (postgres === undefined || runtime === undefined) throw new Error('no containers')
  Object.assign(postgres, { health: 'unhealthy', restartPolicy: 'no' })
  Object.assign(runtime, { restartPolicy: 'no' })
  await openScreen(page, `${url}/#/tenants/${id}/drift`)
  t.same(await seriousViolations(page), [])
  const rows = page.getByRole('region', { name: 'Differences' }).locator('tbody tr')
  t.equal(await rows.count(), 3)
  t.match(await rows.filter({ hasText: 'health' }).innerText(), /all of postgres \(1 more\)\s+interrupts/)

  await press(page, 'Repair runtime restart_policy')
  await page.getByText('repair succeeded').waitFor()
  await until(async () => (await rows.count()) === 2, 'the repaired field is gone')
  t.equal(api.engine.stacks.get(id)?.containers[0]?.restartPolicy, 'no', 'the other difference stays')

  await press(page, 'Repair postgres health')
  const dialog = page.getByRole('dialog', { name: 'Repair and interrupt the tenant?' })
  await dialog.getByText('It also ends these differences: postgres restart_policy.').waitFor()
  t.same(await seriousViolations(page), [])
  await press(page, 'Repair')
  await page.getByText('Nothing differs.').waitFor()
  t.match((await api.call('GET', `/v1/tenants/${id}`)).body, { drift_policy: 'report' })
})

t.test('A repair that is rejected shows the error of the API', async (t) => {
  const { tenant_id: id } = await api.create(newName(), { plan: 'Pro', region: 'cloud' })
  await api.call('PATCH', `/v1/tenants/${id}`, { body: { drift_policy: 'report' }, headers: { prefer: 'wait=30' } })
  const runtime = api.engine.stacks.get(id)?.containers[1]
  Object.assign(runtime ?? {}, { restartPolicy: 'no' })
  await openScreen(page, `${url}/#/tenants/${id}/drift`)
  // A change of the tenant that is reported late would load the differences again, and remove this one.
  await page.route('**/drift', () => undefined)
  t.teardown(() => page.unroute('**/drift'))
  Object.assign(runtime ?? {}, { restartPolicy: 'unless-stopped' })
  await press(page, 'Repair runtime restart_policy')
  await page.getByText('NOT_DRIFTED').waitFor()
  t.pass('the difference had gone meanwhile')
})

t.test('On a narrow screen, the current tab of a tenant is in view', async (t) => {
  const { tenant_id: id } = await api.create(newName(), { plan: 'Pro', region: 'cloud' })
  await page.setViewportSize({ width: 360, height: 740 })
  await openScreen(page, `${url}/#/tenants/${id}/settings`)
  const tab = page.locator('.tabs [aria-current]')
  t.equal(await tab.innerText(), 'Settings')
  const { x = -1, width = 0 } = (await tab.boundingBox()) ?? {}
  t.ok(x >= 0 && x + width <= 360, `${x} to ${x + width}`)
  await page.setViewportSize({ width: 1280, height: 800 })
})

t.test('Regions show their hosts with free resources, and one that does not respond', async (t) => {
  const of = (name: string) => page.getByRole('region', { name, exact: true })
  await openScreen(page, `${url}/#/regions`)
  await of('local').getByText('reachable').waitFor()
  const memory = of('local').getByRole('region', { name: 'Memory' })
  t.match(await memory.innerText(), `free of ${shortBytes(totalmem())}`)
  t.match(await memory.innerText(), /Reserved: 0 B \(0 %\) by tenants/)
  t.match(await of('cloud').innerText(), /With their own services\s+3/)
  t.match(await of('cloud').innerText(), /8\.59 GB; what is free is not known/, 'the engine in memory runs no programs')
  t.same(await seriousViolations(page), [])
  api.engine.isReachable = false
  t.teardown(() => (api.engine.isReachable = true))
  const cloud = async () => (await api.call('GET', '/v1/hosts/cloud')).body as { error: string | null }
  await until(async () => (await cloud()).error !== null, 'a failed measurement')
  await openScreen(page, `${url}/#/fleet`)
  await openScreen(page, `${url}/#/regions`)
  await of('cloud').getByText('The figures are those of the last measurement.').waitFor()
  t.same(violations, [])
})
