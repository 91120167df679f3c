// Finds the address and the key of a command: from the options, the environment or the stored contexts.
import { readFile } from 'node:fs/promises'
import { CommandError, exitCodes, usageError } from '../terminal/exit-codes.ts'
import type { Config, Context, Link } from './config-file.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** An address with its key, and what it was read from. */
export interface Found<Target> {
  readonly target: Target
  /** Name of the context or link; `environment` if it was read from the environment. */
  readonly name: string
}

/**
 * Finds the control plane of a command.
 * @param chosen the option `--context`; it takes precedence over the environment
 * @throws CommandError if no control plane is known
 */
export async function findContext(
  config: Config,
  env: Environment,
  chosen: string | undefined,
): Promise<Found<Context>> {
  if (chosen !== undefined) return stored(config.contexts, chosen, 'context')
  const url = nonEmpty(env.TENANTRY_URL)
  const key = nonEmpty(env.TENANTRY_KEY) ?? (await readKeyFile(nonEmpty(env.TENANTRY_KEY_FILE)))
  if (url !== undefined) {
    // The key of a stored context must not be sent to another address.
    if (key === undefined) throw usageError('TENANTRY_URL is set without TENANTRY_KEY or TENANTRY_KEY_FILE.')
    return { target: { url: checkedUrl(url, 'TENANTRY_URL'), key }, name: 'environment' }
  }
  if (config.current_context === undefined)
    throw new CommandError(
      'No installation is known. Log in with `tenantry login`, or set TENANTRY_URL and TENANTRY_KEY.',
      exitCodes.access,
    )
  const found = stored(config.contexts, config.current_context, 'context')
  return key === undefined ? found : { ...found, target: { ...found.target, key } }
}

/**
 * Finds the tenant of a developer's command.
 * @param chosen the option `--link`; it takes precedence over the environment
 * @throws CommandError if no tenant is known
 */
export function findLink(config: Config, env: Environment, chosen: string | undefined): Found<Link> {
  if (chosen !== undefined) return stored(config.links, chosen, 'link')
  const url = nonEmpty(env.TENANTRY_TENANT_URL)
  const key = nonEmpty(env.TENANTRY_SECRET_KEY)
  const database = nonEmpty(env.TENANTRY_DATABASE_URL)
  const own = database === undefined ? {} : { database_url: database }
  if (url !== undefined) {
    if (key === undefined) throw usageError('TENANTRY_TENANT_URL is set without TENANTRY_SECRET_KEY.')
    return { target: { url: checkedUrl(url, 'TENANTRY_TENANT_URL'), secret_key: key, ...own }, name: 'environment' }
  }
  if (config.current_link === undefined)
    throw new CommandError(
      'No tenant is known. Link one with `tenantry link`, or set TENANTRY_TENANT_URL and TENANTRY_SECRET_KEY.',
      exitCodes.access,
    )
  const found = stored(config.links, config.current_link, 'link')
  return { ...found, target: { ...found.target, ...(key === undefined ? {} : { secret_key: key }), ...own } }
}

/** Checks an address of a control plane or a tenant, and removes slashes at its end. @throws CommandError */
export function checkedUrl(text: string, name: string): string {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '' || url.username !== '')
    throw usageError(`Invalid ${name} "${text.slice(0, 100)}". It must be an address like http://127.0.0.1:4400.`)
  return url.href.replace(/\/+$/, '')
}

/** Reads a key from a file. @throws CommandError if the file cannot be read or is empty */
export async function readKeyFile(path: string): Promise<string>
export async function readKeyFile(path: string | undefined): Promise<string | undefined>
export async function readKeyFile(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    throw usageError(`The key file ${path} cannot be read.`, { cause })
  }
  if (text.trim() === '') throw usageError(`The key file ${path} is empty.`)
  return text.trim()
}

/** Returns a key without white space around it. @throws CommandError, whose text does not contain the key */
export function checkedKey(key: string): string {
  const trimmed = key.trim()
  // The error of `fetch` about a line break in a header would print the whole key.
  if (!/^[\x21-\x7e]+$/.test(trimmed)) throw usageError('The key contains characters that no key has.')
  return trimmed
}

function stored<Target>(entries: Readonly<Record<string, Target>>, name: string, kind: string): Found<Target> {
  const target = Object.hasOwn(entries, name) ? entries[name] : undefined
  if (target === undefined) {
    const known = Object.keys(entries).join(', ')
    throw usageError(`Unknown ${kind} "${name.slice(0, 100)}". Known: ${known === '' ? 'none' : known}.`)
  }
  return { target, name }
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text
}
