// The example `npm run chat`, on an installation as `npm start` makes it, with two real browsers: messages, presence, the
// live table, a restart of the runtime, hostile texts, the keyboard, both themes and a narrow screen.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { BrowserContextOptions, Page } from 'playwright-core'
import t from 'tap'
import { openBrowser, typeInto } from '#test/console/support/open-console.ts'
import { seriousViolations } from '#test/console/support/page-checks.ts'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'

const project = new URL('../../', import.meta.url).pathname
const hostile = '<img src=x onerror="window.attacked = 1">'

t.test('The chat', { timeout: 600_000 }, async (t) => {
  const installation = await startInstallation()
  t.teardown(() => removeInstallation(installation))
  const args = ['examples/realtime/chat.ts', '--data', installation.data, '--port', '0']
  const program = spawn(process.execPath, args, { cwd: project, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(program, 'exit') as Promise<[number | null]>
  let output = ''
  program.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  t.teardown(() => program.kill('SIGKILL'))
  await until(() => output.includes('Ctrl+C') || program.exitCode !== null, 'the page is served')
  const address = /http:\/\/127\.0\.0\.1:\d+(?= in two)/.exec(output)?.[0] ?? ''
  const [, url, key] = /curl (\S+)\/rest\/v1\/tasks -H 'Authorization: Bearer (\S+)'/.exec(output) ?? []

  const browser = await openBrowser(t)
  const violations: string[] = []
  const open = async (name: string, options: BrowserContextOptions = {}): Promise<Page> => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
    const page = await context.newPage()
    page.on('pageerror', (error) => violations.push(error.message))
    page.on('console', (message) => {
      if (/Content Security Policy|Refused to/i.test(message.text())) violations.push(message.text())
    })
    page.on('request', (request) => {
      if (![address, url ?? '', 'data:'].some((own) => request.url().startsWith(own))) violations.push(request.url())
    })
    await page.goto(address)
    await connected(page)
    // By keyboard alone.
    await typeInto(page, 'Your name', name)
    await page.keyboard.press('Enter')
    await page.locator('#people').getByText(name, { exact: true }).waitFor()
    return page
  }
  const connected = (page: Page) => page.locator('#status[data-state=connected]').waitFor({ timeout: 120_000 })
  const people = async (page: Page) => (await page.locator('#people li').allTextContents()).sort()
  const send = async (page: Page, text: string) => {
    await typeInto(page, 'Message', text)
    await page.keyboard.press('Enter')
  }
  const untilShown = (page: Page, text: string) => page.locator('.message').getByText(text, { exact: true }).waitFor()
  const untilTask = (page: Page, title: string) => page.locator('#tasks').getByText(title, { exact: true }).waitFor()
  const insert = async (title: string) => {
    const response = await fetch(`${url}/rest/v1/tasks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ title }),
    })
    t.equal(response.status, 201)
  }

  const ada = await open('Ada')
  const ben = await open('Ben')

  await t.test('A message of one browser appears in the other', async () => {
    await send(ada, 'Is anyone here?')
    for (const page of [ada, ben]) await untilShown(page, 'Is anyone here?')
    await send(ben, 'I am.')
    for (const page of [ada, ben]) await untilShown(page, 'I am.')
  })

  await t.test('The list of people changes when one comes and leaves', async (t) => {
    t.same(await people(ada), ['Ada', 'Ben'])
    const eve = await open('Eve')
    await until(async () => (await people(ada)).length === 3, 'Eve is shown')
    t.same(await people(ada), ['Ada', 'Ben', 'Eve'])
    await eve.context().close()
    await until(async () => (await people(ada)).length === 2, 'Eve is no longer shown')
    await ada.getByText('Eve left').waitFor()
  })

  await t.test('A record that REST inserts appears, and tasks of the page are those of its user', async (t) => {
    await insert('water the plants')
    for (const page of [ada, ben]) await untilTask(page, 'water the plants')
    await typeInto(ada, 'New task', 'read a book')
    await ada.keyboard.press('Enter')
    await untilTask(ben, 'read a book')
    t.ok(await ben.getByLabel('Done: read a book').isDisabled())
    await ada.getByLabel('Done: read a book').focus()
    await ada.keyboard.press('Space')
    await until(() => ben.getByLabel('Done: read a book').isChecked(), 'the change in the other browser')
    await ada.getByRole('button', { name: 'Remove: read a book' }).press('Enter')
    await until(async () => (await ben.getByText('read a book').count()) === 0, 'the removal in the other browser')
  })

  await t.test('Names and texts of others are shown as text', async (t) => {
    await typeInto(ben, 'Your name', hostile.slice(0, 40))
    await ben.keyboard.press('Enter')
    await ada.locator('#people').getByText(hostile.slice(0, 40), { exact: true }).waitFor()
    await send(ben, hostile)
    await untilShown(ada, hostile)
    await insert(hostile)
    await untilTask(ada, hostile)
    for (const page of [ada, ben]) t.equal(await page.evaluate('window.attacked'), undefined)
  })

  await t.test('axe finds nothing serious in both themes, and the page fits into 360 px', async (t) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await ada.emulateMedia({ colorScheme })
      // The policy of the page rejects other scripts, so the check runs by the debugger's way.
      t.same(await seriousViolations(ada), [], colorScheme)
    }
    await ada.setViewportSize({ width: 360, height: 740 })
    t.ok(await ada.evaluate<boolean>('document.documentElement.scrollWidth <= 360'))
  })

  await t.test('After a kill of the runtimes, the pages join again and show what they missed', async (t) => {
    // The page may be connected again before the test sees that it was not.
    for (const page of [ada, ben])
      await page.evaluate(`{
        const status = document.querySelector('#status')
        window.states = []
        new MutationObserver(() => window.states.push(status.dataset.state)).observe(status, { attributes: true })
      }`)
    // Any of the runtimes may serve the tenant.
    for (const name of await installation.runtimes()) process.kill(await installation.pid(name), 'SIGKILL')
    for (const page of [ada, ben]) {
      let seen: { states: string[]; text: string } | undefined
      await until(async () => {
        const { states } = (seen = await page.evaluate<{ states: string[]; text: string }>(
          '({ states, text: document.body.innerText })',
        ))
        return states.includes('connecting') && states.at(-1) === 'connected' && (await people(page)).length === 2
      }, 'the page has joined again').catch((cause: unknown) => {
        throw new Error(`The page shows ${JSON.stringify(seen)}`, { cause })
      })
    }
    await insert('after the restart')
    for (const page of [ada, ben]) await untilTask(page, 'after the restart')
    await send(ada, 'Back again')
    await untilShown(ben, 'Back again')
    t.ok(await ada.locator('#tasks').getByText('water the plants').isVisible())
  })

  t.same(violations, [], 'no errors of scripts, and no request to another site')
  program.kill('SIGINT')
  t.same((await ended)[0], 0)
  t.match(output, /deleted the tenant chat-/)
})
