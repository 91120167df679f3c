// The file with the contexts: addresses of installations and tenants, with their keys. Only the user may read it.
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CommandError, exitCodes } from '../terminal/exit-codes.ts'

/** An installation that the user operates. */
export interface Context {
  /** Address of the control plane. */
  readonly url: string
  /** Platform key. */
  readonly key: string
}

/** A tenant that the user develops for. */
export interface Link {
  /** Address of the tenant. */
  readonly url: string
  /** The tenant's secret key. */
  readonly secret_key: string
  /** Address of the tenant's database with its password, if the user has stored it. */
  readonly database_url?: string
}

/** Content of the file. */
export interface Config {
  readonly current_context?: string
  readonly contexts: Readonly<Record<string, Context>>
  readonly current_link?: string
  readonly links: Readonly<Record<string, Link>>
}

/** Returns the path of the file: `$XDG_CONFIG_HOME/tenantry/config.json`, by default in `~/.config`. */
export function configPath(env: Readonly<Record<string, string | undefined>>): string {
  const base = env.XDG_CONFIG_HOME
  return join(
    base === undefined || base === '' ? join(env.HOME ?? homedir(), '.config') : base,
    'tenantry',
    'config.json',
  )
}

/** Reads the file. A missing one has no contexts. @throws CommandError if it is not valid */
export async function readConfig(path: string): Promise<Config> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { contexts: {}, links: {} }
    throw new CommandError(`The file ${path} cannot be read.`, exitCodes.failure, { cause: error })
  }
  return parseConfig(text, path)
}

/** Replaces the file. It is written with mode 0600, also if the former one had another mode. */
export async function writeConfig(path: string, config: Config): Promise<void> {
  const directory = dirname(path)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const draft = join(directory, `.config.${process.pid}.json`)
  try {
    await writeFile(draft, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600, flag: 'w' })
    await chmod(draft, 0o600)
    await rename(draft, path)
  } finally {
    await rm(draft, { force: true })
  }
}

function parseConfig(text: string, path: string): Config {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw invalidConfig(path, { cause })
  }
  if (!isObject(value)) throw invalidConfig(path)
  const { contexts = {}, links = {}, current_context: context, current_link: link } = value
  if (!isRecordOf(contexts, ['url', 'key']) || !isRecordOf(links, ['url', 'secret_key'])) throw invalidConfig(path)
  return {
    ...(typeof context === 'string' ? { current_context: context } : {}),
    contexts: contexts as unknown as Record<string, Context>,
    ...(typeof link === 'string' ? { current_link: link } : {}),
    links: links as unknown as Record<string, Link>,
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isRecordOf(value: unknown, members: readonly string[]): value is Record<string, Record<string, unknown>> {
  return (
    isObject(value) &&
    Object.values(value).every((entry) => isObject(entry) && members.every((name) => typeof entry[name] === 'string'))
  )
}

function invalidConfig(path: string, options?: ErrorOptions): CommandError {
  return new CommandError(
    `The file ${path} is not a valid list of contexts. Correct or remove it.`,
    exitCodes.failure,
    options,
  )
}
