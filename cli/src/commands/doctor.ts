// `doctor` checks an installation and reports what to do.
import { stat } from 'node:fs/promises'
import { ApiError, bodyOf, type ControlClient } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { findContext } from '../connection/connection.ts'
import { CommandError, exitCodes, Interrupted } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { readRegions } from './installation.ts'
import { describeKey } from './login.ts'

const maxClockDifferenceMs = 60_000
const expiryWarningDays = 14
const dayMs = 86_400_000

/** The result of one check. */
interface Finding {
  readonly check: string
  readonly status: 'ok' | 'warning' | 'failed'
  readonly message: string
  /** The next step for the operator; null if there is none. */
  readonly advice: string | null
}

type Check = (call: Call, client: ControlClient, target: { url: string; key: string }) => Promise<Finding[]>

/** Adds `doctor`. */
export function addDoctorCommand(program: Command, terminal: Terminal): void {
  program.command('doctor').description('check an installation, and report what to do').action(action(terminal, doctor))
}

async function doctor(call: Call): Promise<void> {
  const { target } = await findContext(await call.config(), call.terminal.env, call.text('context'))
  const client = call.clientOf(target)
  const findings: Finding[] = []
  for (const [name, check] of Object.entries(checks)) {
    call.output.progress(`Checking ${name} …`)
    const found = await check(call, client, target).catch((error: unknown) => [failure(call, name, error)])
    findings.push(...found)
    // Without a connection or a valid key, all other checks would fail alike.
    if ((name === 'connection' || name === 'key') && found.some(({ status }) => status === 'failed')) break
  }
  call.output.rows(
    findings,
    [
      { title: 'CHECK', value: ({ check }) => check },
      { title: 'STATUS', value: ({ status }) => status },
      { title: 'MESSAGE', value: ({ message }) => message },
      { title: 'WHAT TO DO', value: ({ advice }) => advice },
    ],
    '',
  )
  const failed = findings.filter(({ status }) => status === 'failed').length
  if (failed > 0)
    throw new CommandError(`${failed} of ${findings.length} checks have failed.`, exitCodes.failedOperation)
}

const checks: Readonly<Record<string, Check>> = {
  configuration: async (call) => {
    const found = await stat(call.configPath).catch(() => undefined)
    if (found === undefined) return [ok('configuration', 'There are no stored contexts.')]
    return (found.mode & 0o077) === 0
      ? [ok('configuration', 'Only you can read the stored keys.')]
      : [warning('configuration', 'Other users can read the stored keys.', `Run: chmod 600 ${call.configPath}`)]
  },
  connection: async ({ terminal }, client, { url }) => {
    const begin = terminal.now()
    const result = await client.GET('/health')
    const difference = Math.abs(Date.parse(result.response.headers.get('date') ?? '') - (begin + terminal.now()) / 2)
    const { hostname, protocol } = new URL(url)
    const isLocal = /^(localhost|127\.|\[::1\]|::1)/.test(hostname)
    return [
      ok('connection', `The control plane at ${url} is ${bodyOf(result).status}.`),
      ...(protocol === 'http:' && !isLocal
        ? [warning('connection', 'The key is sent without encryption.', 'Put a proxy with TLS in front of it.')]
        : []),
      ...(difference > maxClockDifferenceMs
        ? [warning('connection', 'The clocks differ by more than a minute.', 'Synchronize the clocks with NTP.')]
        : []),
    ]
  },
  key: async ({ terminal }, client, { key }) => {
    const { scope, name, expires_at: expires } = await describeKey(client, key)
    const days = expires == null ? Infinity : (Date.parse(expires) - terminal.now()) / dayMs
    return days < expiryWarningDays
      ? [warning('key', `The key expires at ${expires ?? ''}.`, 'Rotate it: tenantry keys rotate')]
      : [ok('key', `The key${name === undefined ? '' : ` "${name}"`} has the scope ${scope}.`)]
  },
  regions: async (_call, client) => {
    const regions = await readRegions(client)
    const bad = regions.flatMap(({ id, conditions }) =>
      conditions.filter(({ status }) => status !== 'True').map((condition) => ({ id, ...condition })),
    )
    if (bad.length === 0) return [ok('regions', `Regions without an error: ${regions.map(({ id }) => id).join(', ')}.`)]
    return bad.map(({ id, type, reason, message }) => {
      const text = `${id}: ${type} ${reason} ${message}`
      // The control plane does not know whether the hosts have a private link.
      return type === 'Encrypted'
        ? warning('regions', text, 'See docs/operate/several-hosts.md.')
        : failed('regions', text, 'See docs/operate/incidents.md.')
    })
  },
  tenants: async (_call, client) => {
    const query = { status: 'failed', limit: '10' } as const
    const { tenants, next_cursor: more } = bodyOf(await client.GET('/v1/tenants', { params: { query } }))
    if (tenants.length === 0) return [ok('tenants', 'No tenant has failed.')]
    return tenants
      .map(({ name, reason }) => failed('tenants', `${name}: ${reason ?? 'failed'}`, `tenantry health ${name}`))
      .concat(more === null ? [] : [failed('tenants', 'There are more.', 'tenantry tenants list --status failed')])
  },
  backups: async (_call, client) => {
    const query = { state: 'unknown', limit: '1' } as const
    const { backups } = bodyOf(await client.GET('/v1/backups', { params: { query } }))
    return backups.length === 0
      ? [ok('backups', 'The control database knows all backups of the targets.')]
      : [warning('backups', 'Targets contain backups that the control database does not know.', 'See docs/backups.md.')]
  },
  webhooks: async (_call, client) => {
    const { webhooks } = bodyOf(await client.GET('/v1/webhooks'))
    const gone = webhooks.filter(({ disabled_reason: reason }) => reason === 'gone')
    return gone.length === 0
      ? [ok('webhooks', `${webhooks.length} webhooks are registered.`)]
      : gone.map(({ id, url }) =>
          failed('webhooks', `${url} was disabled, because it is gone.`, `tenantry webhooks enable ${id}`),
        )
  },
  usage: async (_call, client) => {
    const { missing_sources: missing } = bodyOf(await client.GET('/v1/usage', { params: { query: { limit: '1' } } }))
    return missing.length === 0
      ? [ok('usage', 'All sources have reported what they counted.')]
      : [warning('usage', `These have not reported: ${missing.join(', ')}.`, 'See docs/metering.md.')]
  },
  audit: async (_call, client) => {
    const { whole, entries, broken_at: at } = bodyOf(await client.GET('/v1/audit/verify'))
    return whole
      ? [ok('audit', `The log of ${entries} entries is unchanged.`)]
      : [failed('audit', `The log was changed at the entry ${at ?? ''}.`, 'Compare it with your exports.')]
  },
}

/** A check that the key may not make, or that has failed itself. */
function failure(call: Call, check: string, error: unknown): Finding {
  if (call.terminal.signal.aborted) throw new Interrupted()
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof ApiError && error.code === 'WRONG_SCOPE')
    return warning(check, message, 'Use a key with this scope.')
  if (error instanceof ApiError && error.code === 'BACKUPS_OFF')
    return warning(check, 'The installation has no backup target.', 'Configure one: see docs/backups.md.')
  if (check === 'connection') return failed(check, message, 'Check the address, and whether the control plane runs.')
  if (check === 'key') return failed(check, message, 'Log in with a valid key: tenantry login')
  return failed(check, message, 'See docs/operate/incidents.md.')
}

function ok(check: string, message: string): Finding {
  return { check, status: 'ok', message, advice: null }
}

function warning(check: string, message: string, advice: string): Finding {
  return { check, status: 'warning', message, advice }
}

function failed(check: string, message: string, advice: string): Finding {
  return { check, status: 'failed', message, advice }
}
