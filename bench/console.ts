// How fast the console shows a tenant's screen, in Chromium, in an installation of `npm start`.
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { ensureChromium } from '#scripts/chromium.ts'
import { startInstallation, type Installation } from '#test/support/installation.ts'
import { median, quantile, type Figures, type Report } from '#bench/figures.ts'

const tenants = 20
const rounds = 40

export async function figures(report: Report): Promise<Figures> {
  const scratch = await mkdtemp(join(import.meta.dirname, '..', '.tenantry-bench-'))
  try {
    const installation = await startInstallation({ dataDirectory: join(scratch, 'data') })
    try {
      const ids = await createTenants(installation)
      report(`${ids.length} tenants`)
      return await measure(installation, ids, report)
    } finally {
      await installation.stop()
    }
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

async function createTenants({ controlUrl, platformKey }: Installation): Promise<string[]> {
  const ids: string[] = []
  for (let nth = 0; nth < tenants; nth++) {
    const response = await fetch(`${controlUrl}/v1/tenants`, {
      method: 'POST',
      headers: { authorization: `Bearer ${platformKey}`, 'content-type': 'application/json', prefer: 'wait=30' },
      body: JSON.stringify({ name: `customer-${nth}`, plan: 'Free', region: 'local' }),
    })
    const body = (await response.json()) as { tenant_id?: string }
    if (body.tenant_id === undefined) throw new Error(`create: ${response.status} ${JSON.stringify(body)}`)
    ids.push(body.tenant_id)
  }
  return ids
}

/** A script of the page: goes to an address, and returns the milliseconds until the tenant's name and facts are drawn. */
const showTenant = (id: string) => `(async () => {
  const begin = performance.now()
  location.hash = '#/tenants/${id}/overview'
  const isShown = () =>
    [...document.querySelectorAll('#screen code')].some(({ textContent }) => textContent === '${id}') &&
    document.querySelector('#screen dl') !== null
  while (!isShown()) await new Promise((resolve) => requestAnimationFrame(resolve))
  return performance.now() - begin
})()`

async function measure({ controlUrl, platformKey }: Installation, ids: string[], report: Report): Promise<Figures> {
  const browser = await chromium.launch({ executablePath: await ensureChromium(), args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage()
    await page.goto(controlUrl)
    await page.getByLabel('Platform key').fill(platformKey)
    await page.keyboard.press('Enter')
    await page.locator('#screen-title').waitFor()
    const first: number[] = []
    const next: number[] = []
    const floor: number[] = []
    for (let round = 0; round < rounds; round++) {
      const id = ids[round % ids.length] ?? ''
      // Each tenant's screen follows that of the fleet, as for an operator.
      await page.goto(`${controlUrl}/#/fleet`)
      await page.getByRole('link', { name: 'customer-0', exact: true }).first().waitFor()
      next.push(await page.evaluate<number>(showTenant(id)))
      let begin = performance.now()
      await page.reload({ waitUntil: 'commit' })
      await page.locator('#screen dl').first().waitFor()
      first.push(performance.now() - begin)
      begin = performance.now()
      const response = await page.request.get(`${controlUrl}/v1/tenants/${id}`)
      await response.body()
      floor.push(performance.now() - begin)
    }
    report(
      `a tenant's screen: p50 ${median(next).toFixed(0)} ms; with the load of the page: ${median(first).toFixed(0)} ms`,
    )
    const figure = (values: number[], q: number, target: string) => ({
      value: quantile(values, q),
      unit: 'ms',
      floor: quantile(floor, q),
      target,
    })
    return {
      tenant_p50_ms: figure(next, 0.5, 'stated'),
      tenant_p95_ms: figure(next, 0.95, '≤ 300'),
      tenant_loaded_p50_ms: figure(first, 0.5, 'stated'),
      tenant_loaded_p95_ms: figure(first, 0.95, '≤ 300'),
    }
  } finally {
    await browser.close()
  }
}
