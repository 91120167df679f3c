// How the test of the documentation runs docs/build-an-app.md: its shell blocks with curl, and its JavaScript as one program.
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { codeBlocks } from './shell-blocks.ts'
import type { ShellSession } from './shell-session.ts'

interface Page {
  session: ShellSession
  /** A tenant for the JavaScript. The shell blocks create their own. */
  tenant: { path_url: string; keys: { publishable_key: string; secret_key: string; jwt_secret: string } }
}

interface Environment {
  controlUrl: string
  /** The directory in which the commands run. */
  directory: string
}

type GuideCheck = readonly RegExp[] | ((block: string, page: Page) => Promise<void>)

const guide = 'docs/build-an-app.md'

/** The check of each shell block. @param environment is called when the installation runs */
export function guideChecks(environment: () => Environment): Record<string, GuideCheck> {
  const checks: readonly GuideCheck[] = [
    createTenant(environment),
    [], // token.mjs
    [], // the tokens of Ada and Ben
    [/"policy":"private"/, /"path":"coast\/lighthouse\.png","size":25473/],
    returnsError(/"code":"NoSuchBucket"/),
    [/200 image\/png/],
    [/"actions":\["collection \\"notes\\" was created"\]/],
    [/\[\{"text":"a ship in sight","rank":3\}/, /"text":"the fog is gone"/, /204/],
    [/\}\[\{"text":"the gulls are loud"\}\]/, /\[\{"text":"the lamp is lit"\}/, /\[\]$/],
    returnsError(/^\[\]/, /"code":"42501"/),
    followNotes,
    [], // the function is compiled
    [/"name":"count-notes"/, /\[\{"notes":3\}\]/, /\[\{"notes":1\}\]/],
    returnsError(/"code":"PGRST204"/),
    async (block, page) => {
      t.match(await page.session.run(block), /"api_requests":\{"count":\d+,"limit":10000/)
      const { path_url, keys } = page.tenant
      await runJavaScript(guide, environment().directory, {
        TENANT: path_url,
        PUBLISHABLE_KEY: keys.publishable_key,
        SECRET_KEY: keys.secret_key,
        JWT_SECRET: keys.jwt_secret,
      })
    },
  ]
  return Object.fromEntries(checks.map((check, index) => [`${guide}#${index + 1}`, check]))
}

/** Runs a page's JavaScript. The page shows what each call of `console.log` prints, in a comment after it. */
export async function runJavaScript(page: string, directory: string, env: Record<string, string>): Promise<void> {
  const program = (await codeBlocks(page, 'js')).join('')
  await writeFile(join(directory, 'app.mjs'), program)
  const { stdout } = await promisify(execFile)(process.execPath, ['app.mjs'], {
    cwd: directory,
    env,
    timeout: 60_000,
  })
  const shown = [...program.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, comment]) => comment)
  t.same(stdout.trimEnd().split('\n'), shown)
}

/** The guide creates its own tenant. The test's control plane has another port. */
function createTenant(environment: () => Environment): GuideCheck {
  return async (block, { session }) => {
    t.match(
      await session.run(block.replace('http://127.0.0.1:4400', environment().controlUrl)),
      /^http:\S+\/t\/my-app\n$/,
    )
  }
}

/** Runs a block that shows an error. The error does not make curl fail. */
function returnsError(...wanted: RegExp[]): GuideCheck {
  return async (block, { session }) => {
    const output = await session.run(`curl() { command curl "$@"; }\n${block}`)
    for (const pattern of wanted) t.match(output, pattern, block)
  }
}

async function followNotes(block: string, { session }: Page): Promise<void> {
  await session.follow(block, 'record.inserted', async () => {
    await session.run(`curl $TENANT/rest/v1/notes -H "Authorization: Bearer $ADA" \\
      -H 'Content-Type: application/json' -d '{"text":"the lamp is out","rank":4}'`)
  })
}
