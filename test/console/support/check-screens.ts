// Opens every screen of the console in one color scheme, wide and narrow, and checks it with axe.
import type { Browser } from 'playwright-core'
import type { Test } from 'tap'
import type { Installation } from '#test/support/installation.ts'
import { openConsole, readableText, signIn } from './open-console.ts'
import { openScreen, seriousViolations } from './page-checks.ts'
import { screensOf } from './screens.ts'

interface ScreenChecks {
  installation: Pick<Installation, 'controlUrl' | 'platformKey'>
  browser: Browser
  tenantId: string
  colorScheme: 'light' | 'dark'
}

/**
 * Asserts that axe finds nothing serious on any screen, that no screen is wider than 360 px, and that nothing is loaded from
 * another site.
 */
export async function checkScreens(
  t: Test,
  { installation: { controlUrl, platformKey }, browser, tenantId, colorScheme }: ScreenChecks,
): Promise<void> {
  const opened = await openConsole(browser, controlUrl, { colorScheme })
  const { page, violations } = opened
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  const check = async (name: string) => t.same(await seriousViolations(page), [], name)
  await check('sign-in')
  await signIn(opened, platformKey)
  for (const [name, address] of Object.entries(screensOf(tenantId))) {
    await page.setViewportSize({ width: 1280, height: 800 })
    await openScreen(page, `${controlUrl}/${address}`)
    await check(name)
    await page.setViewportSize({ width: 360, height: 740 })
    t.ok(await page.evaluate<boolean>('document.documentElement.scrollWidth <= 360'), `${name} fits into 360 px`)
  }
  await page.setViewportSize({ width: 1280, height: 800 })
  await openScreen(page, `${controlUrl}/#/fleet`)
  await page.getByRole('button', { name: 'Create a tenant' }).click()
  await page.getByLabel('Isolation').waitFor()
  await check('dialog')
  t.same(violations, [])
  t.same(
    requests.filter((url) => !url.startsWith(controlUrl)),
    [],
    'no request to another site',
  )
  t.notOk((await readableText(page)).includes(platformKey))
  await page.context().close()
}
