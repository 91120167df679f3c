// Commands that store the address and the key of a tenant: `link` and `unlink`.
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { writeConfig, type Link } from '../connection/config-file.ts'
import { checkedUrl, findLink, readKeyFile } from '../connection/connection.ts'
import { usageError } from '../terminal/exit-codes.ts'
import { prompt, readStandardInput } from '../terminal/prompt.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { TenantClient } from './tenant-client.ts'

/** Adds `link` and `unlink`. */
export function addLinkCommands(program: Command, terminal: Terminal): void {
  program
    .command('link [url]')
    .description('store the address and the secret key of a tenant; without an address, show the current link')
    .option('--key-file <file>', 'file with the secret key; `-` is standard input')
    .option('--database-url-file <file>', 'file with the `database_url`, for `sql`')
    .option('--name <name>', "name of the link; by default the tenant's")
    .action(action(terminal, (call, url?: string) => (url === undefined ? show(call) : link(call, url))))
  program.command('unlink <link>').description('remove a link with its keys').action(action(terminal, unlink))
}

async function show(call: Call): Promise<void> {
  const { target, name } = findLink(await call.config(), call.terminal.env, call.text('link'))
  call.output.one({ link: name, url: target.url, has_database_url: target.database_url !== undefined })
}

async function link(call: Call, text: string): Promise<void> {
  const url = checkedUrl(text, 'address')
  const file = call.text('keyFile')
  const key =
    file === '-'
      ? (await readStandardInput(call.terminal, 'the secret key')).trim()
      : file !== undefined
        ? await readKeyFile(call.path(file))
        : (call.terminal.env.TENANTRY_SECRET_KEY ??
          (await prompt(call.terminal, 'Secret key', { hidden: true, instead: 'Use --key-file.' })))
  if (key === '') throw usageError('The secret key is empty.')
  const databaseFile = call.text('databaseUrlFile')
  const database = databaseFile === undefined ? undefined : await readKeyFile(call.path(databaseFile))
  // Only the service role may list functions.
  await new TenantClient(url, key, call.terminal.signal).json('/functions/v1')
  const name = call.text('name') ?? nameOf(url)
  const stored: Link = { url, secret_key: key, ...(database === undefined ? {} : { database_url: database }) }
  const config = await call.config()
  await writeConfig(call.configPath, { ...config, current_link: name, links: { ...config.links, [name]: stored } })
  call.output.one({ link: name, url }, () => `Linked ${url} as "${name}". Next: tenantry schemas pull`)
}

/** Returns the name of a tenant in its address, by path or by host name. */
function nameOf(url: string): string {
  const { pathname, hostname } = new URL(url)
  return /^\/t\/([^/]+)$/.exec(pathname)?.[1] ?? hostname.split('.')[0] ?? hostname
}

async function unlink(call: Call, name = ''): Promise<void> {
  const config = await call.config()
  const { current_link: current, ...rest } = config
  if (!Object.hasOwn(config.links, name))
    throw usageError(`Unknown link "${name.slice(0, 100)}". Known: ${Object.keys(config.links).join(', ') || 'none'}.`)
  await writeConfig(call.configPath, {
    ...rest,
    ...(current === undefined || current === name ? {} : { current_link: current }),
    links: Object.fromEntries(Object.entries(config.links).filter(([one]) => one !== name)),
  })
  call.output.one({ removed: name }, () => `The link "${name}" and its keys are removed.`)
}
