// Commands that store, show and remove contexts: `login`, `logout`, `whoami` and `context`.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError, bodyOf, type ControlClient } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { writeConfig, type Config, type Context } from '../connection/config-file.ts'
import { checkedUrl, findContext, readKeyFile } from '../connection/connection.ts'
import { usageError } from '../terminal/exit-codes.ts'
import { prompt, readStandardInput } from '../terminal/prompt.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** The first characters of a key, by which the API distinguishes keys. */
const prefixLength = 10

/** Adds `login`, `logout` and `whoami`, also as `auth login` and so on, and the group `context`. */
export function addLoginCommands(program: Command, terminal: Terminal): void {
  addLogin(program, terminal)
  addLogin(program.command('auth').description('log in and out'), terminal)
  const context = program.command('context').description('list and choose installations')
  context.command('list').description('list the stored contexts').action(action(terminal, list))
  context.command('use <context>').description('choose the context of later commands').action(action(terminal, use))
  context.command('remove <context>').description('remove a context with its key').action(action(terminal, remove))
}

function addLogin(parent: Command, terminal: Terminal): void {
  parent
    .command('login')
    .description('store the address and the key of an installation as a context')
    .option('--url <url>', 'address of the control plane')
    .option('--key-file <file>', 'file with the platform key; `-` is standard input')
    .option('--local [directory]', 'the installation that `npm start` runs; its directory is .tenantry by default')
    .option('--name <name>', 'name of the context')
    .action(action(terminal, login))
  parent
    .command('logout [context]')
    .description('remove a context with its key; the current one by default')
    .action(
      action(terminal, async (call, name?: string) => {
        const chosen = name ?? (await call.config()).current_context
        if (chosen === undefined) throw usageError('There is no current context.')
        await remove(call, chosen)
      }),
    )
  parent.command('whoami').description('show the installation, the key and its scope').action(action(terminal, whoami))
}

async function login(call: Call): Promise<void> {
  const given = call.isSet('local') || call.text('local') !== undefined ? await local(call) : await remote(call)
  const name = call.text('name') ?? given.name
  const client = call.clientOf(given)
  // All scopes may read the plans.
  await client.GET('/v1/plans')
  const config = await call.config()
  const context: Context = { url: given.url, key: given.key }
  await writeConfig(call.configPath, {
    ...config,
    current_context: name,
    contexts: { ...config.contexts, [name]: context },
  })
  call.output.one(
    { context: name, url: given.url },
    () => `Logged in to ${given.url} as the context "${name}". Next: tenantry tenants list`,
  )
}

/** Reads address and key of an installation that `npm start` runs. */
async function local(call: Call): Promise<Context & { name: string }> {
  const directory = call.path(call.text('local') ?? '.tenantry')
  const file = join(directory, 'installation.json')
  let url: unknown
  try {
    const record: unknown = JSON.parse(await readFile(file, 'utf8'))
    url = typeof record === 'object' && record !== null && 'control_url' in record ? record.control_url : undefined
  } catch (cause) {
    throw usageError(`No installation has started in ${directory}. Run \`npm start\` first.`, { cause })
  }
  if (typeof url !== 'string') throw usageError(`The file ${file} does not name the control plane.`)
  return { name: 'local', url, key: await readKeyFile(join(directory, 'secrets', 'platform-key')) }
}

async function remote(call: Call): Promise<Context & { name: string }> {
  const { env } = call.terminal
  const text = call.text('url') ?? env.TENANTRY_URL
  if (text === undefined || text === '')
    throw usageError('Use --url URL, or --local for an installation of `npm start`.')
  const url = checkedUrl(text, call.text('url') === undefined ? 'TENANTRY_URL' : '--url')
  const file = call.text('keyFile')
  const key =
    file === '-'
      ? (await readStandardInput(call.terminal, 'the platform key')).trim()
      : file !== undefined
        ? await readKeyFile(call.path(file))
        : (env.TENANTRY_KEY ??
          (await prompt(call.terminal, 'Platform key', { hidden: true, instead: 'Use --key-file.' })))
  if (key === '') throw usageError('The platform key is empty.')
  return { name: new URL(url).host, url, key }
}

async function whoami(call: Call): Promise<void> {
  const { target, name } = await findContext(await call.config(), call.terminal.env, call.text('context'))
  call.output.one({ context: name, url: target.url, ...(await describeKey(call.clientOf(target), target.key)) })
}

/** Returns the name and the scope of a key, as far as the key may read them. @throws ApiError if it is not valid */
export async function describeKey(
  client: ControlClient,
  key: string,
): Promise<{ scope: 'admin' | 'read' | 'billing'; prefix: string; name?: string; expires_at?: string | null }> {
  const prefix = key.slice(0, prefixLength)
  try {
    const { keys } = bodyOf(await client.GET('/v1/keys'))
    const own = keys.find((one) => one.prefix === prefix)
    return { scope: 'admin', prefix, ...(own === undefined ? {} : { name: own.name, expires_at: own.expires_at }) }
  } catch (error) {
    if (!isWrongScope(error)) throw error
  }
  try {
    await client.GET('/v1/operations', { params: { query: { limit: '1' } } })
    return { scope: 'read', prefix }
  } catch (error) {
    if (!isWrongScope(error)) throw error
    return { scope: 'billing', prefix }
  }
}

function isWrongScope(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'WRONG_SCOPE'
}

async function list(call: Call): Promise<void> {
  const config = await call.config()
  const rows = Object.entries(config.contexts).map(([name, { url }]) => ({
    name,
    url,
    current: name === config.current_context,
  }))
  call.output.rows(
    rows,
    [
      { title: 'NAME', value: ({ name }) => name },
      { title: 'URL', value: ({ url }) => url },
      { title: 'CURRENT', value: ({ current }) => (current ? 'yes' : 'no') },
    ],
    'No contexts. Store one with: tenantry login',
  )
}

async function use(call: Call, name = ''): Promise<void> {
  const config = await call.config()
  const { url } = known(config, name)
  await writeConfig(call.configPath, { ...config, current_context: name })
  call.output.one({ context: name, url }, () => `The context is "${name}", ${url}.`)
}

async function remove(call: Call, name = ''): Promise<void> {
  const config = await call.config()
  const { url } = known(config, name)
  const { current_context: current, ...rest } = config
  await writeConfig(call.configPath, {
    ...rest,
    ...(current === undefined || current === name ? {} : { current_context: current }),
    contexts: Object.fromEntries(Object.entries(config.contexts).filter(([one]) => one !== name)),
  })
  call.output.one({ removed: name, url }, () => `The context "${name}" and its key are removed.`)
}

function known(config: Config, name: string): Context {
  const context = Object.hasOwn(config.contexts, name) ? config.contexts[name] : undefined
  if (context === undefined)
    throw usageError(
      `Unknown context "${name.slice(0, 100)}". Known: ${Object.keys(config.contexts).join(', ') || 'none'}.`,
    )
  return context
}
