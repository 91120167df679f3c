// Opens the web console of an installation in a real browser, and uses it by keyboard alone.
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import type { Test } from 'tap'
import { ensureChromium } from '#scripts/chromium.ts'

/** Starts a browser that ends with the test. */
export async function openBrowser(t: Test): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: await ensureChromium(), args: ['--no-sandbox'] })
  t.teardown(() => browser.close())
  return browser
}

/** A page of the console, and what the browser has reported about it. */
export interface ConsolePage {
  page: Page
  /** Errors of scripts, violations of the page's policy, and messages that a script has opened. */
  violations: string[]
  /** Secrets that responses of the API have contained. */
  secrets: Set<string>
}

const secretFields = ['publishable_key', 'secret_key', 'jwt_secret', 'key', 'secret', 'csrf_token']

/** Opens the console's page, which then shows the sign-in. @param keyLabel the label of the field of the key */
export async function openConsole(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  keyLabel = 'Platform key',
): Promise<ConsolePage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  const violations: string[] = []
  const secrets = new Set<string>()
  page.on('pageerror', (error) => violations.push(error.message))
  page.on('dialog', (dialog) => {
    violations.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', (message) => {
    if (/Content Security Policy|Refused to/i.test(message.text())) violations.push(message.text())
  })
  page.on('response', (response) => {
    if (response.request().method() !== 'POST') return
    response.json().then(
      (body: Record<string, unknown>) => {
        const members = { ...body, ...(body['keys'] as Record<string, unknown> | undefined) }
        for (const field of secretFields) if (typeof members[field] === 'string') secrets.add(members[field])
      },
      () => undefined,
    )
  })
  await page.goto(url)
  await page.getByLabel(keyLabel).waitFor()
  return { page, violations, secrets }
}

/** Signs in by keyboard: the field of the key has the focus when the page opens. */
export async function signIn({ page }: ConsolePage, key: string): Promise<void> {
  // The field has the focus by itself, after the page has been drawn.
  await page.locator('input:focus').waitFor()
  await page.keyboard.type(key)
  await page.keyboard.press('Enter')
  await page.locator('#screen-title').waitFor()
}

const maxTabs = 150

/** Returns the name of the element with the focus: its label, or its text. Scripts of the browser are texts here. */
function focusedName(page: Page): Promise<string> {
  return page.evaluate<string>(`(() => {
    let element = document.activeElement
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement
    const label = element?.labels?.[0]
    const text = element?.getAttribute('aria-label') ?? label?.querySelector('span, code')?.textContent ?? label?.textContent
    return (text ?? element?.textContent ?? '').trim()
  })()`)
}

/**
 * Moves the focus with Tab to the element with this name.
 * @throws Error with the names that had the focus, when none is it
 */
export async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  const seen: string[] = []
  for (let tabs = 0; tabs < maxTabs; tabs++) {
    const focused = await focusedName(page)
    if (typeof name === 'string' ? focused === name : name.test(focused)) return
    seen.push(focused.slice(0, 40))
    // In an editor of code, Tab indents until Escape is pressed.
    if (await page.evaluate<boolean>('document.activeElement?.shadowRoot != null')) await page.keyboard.press('Escape')
    await page.keyboard.press('Tab')
  }
  throw new Error(`The keyboard does not reach ${String(name)}. It reaches: ${[...new Set(seen)].join(' | ')}`)
}

/** Moves the focus to an element and activates it with Enter. */
export async function press(page: Page, name: string | RegExp): Promise<void> {
  await tabTo(page, name)
  await page.keyboard.press('Enter')
  // A new screen moves the focus to its title after it was drawn, which must not happen between a later focus and its key.
  await page.evaluate(
    'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))',
  )
}

/** Moves the focus to a field and replaces its text. */
export async function typeInto(page: Page, name: string | RegExp, text: string): Promise<void> {
  await tabTo(page, name)
  await page.keyboard.press('Control+A')
  await page.keyboard.press('Delete')
  await page.keyboard.type(text)
}

/** Returns everything that a script of the page could read: document, form fields, storage, address and cookies. */
export function readableText(page: Page): Promise<string> {
  return page.evaluate<string>(`[
    document.documentElement.outerHTML,
    ...[...document.querySelectorAll('input')].map(({ value }) => value),
    JSON.stringify(localStorage),
    JSON.stringify(sessionStorage),
    location.href,
    document.cookie,
  ].join('\\n')`)
}
