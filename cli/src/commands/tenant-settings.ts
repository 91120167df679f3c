// The options of `tenants update`: the settings of a tenant that the API can change.
import type { TenantChange } from '@tenantry/client'
import type { Command } from 'commander'
import { isolations } from '../apply/manifest.ts'
import type { Call } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'

/** The word that resets a setting. */
const reset = 'default'

const driftPolicies = ['repair', 'report', 'ignore'] as const

/** Adds an option for each setting. */
export function addSettings(command: Command): Command {
  return command
    .option('--name <name>', 'another name')
    .option('--plan <plan>', 'another plan')
    .option('--isolation <model>', `another isolation, alone or with --region: ${isolations.join(', ')}`)
    .option('--region <region>', 'another region, alone or with --isolation')
    .option('--suspend-reason <text>', `the public reason of a suspension, or ${reset}`)
    .option('--drift-policy <policy>', 'repair, report or ignore')
    .option('--pause-after <seconds>', `seconds without a request until it is paused; 0 for never, or ${reset}`)
    .option('--backup-schedule <cron>', `five fields, UTC, or ${reset} for none`)
    .option('--backups-kept <number>', 'how many backups of the schedule are stored')
    .option('--archive-days <days>', `days of point-in-time recovery, or ${reset} for none`)
    .option('--rate-limit <rate>', `PER_SECOND/BURST such as 250/1000, unlimited, or ${reset} for the plan's`)
    .option('--set <json>', 'any settings of the API, as a JSON object')
}

/** Reads the settings of a command. @throws CommandError if a value is not valid or there is none */
export function readSettings(call: Call): TenantChange {
  const change: TenantChange = {
    ...readJson(call.text('set')),
    ...given('name', call.text('name')),
    ...given('plan', call.text('plan')),
    ...given('isolation', oneOf('isolation', call.text('isolation'), isolations)),
    ...given('region', call.text('region')),
    ...given('suspend_reason', orReset(call.text('suspendReason'))),
    ...given('drift_policy', oneOf('drift policy', call.text('driftPolicy'), driftPolicies)),
    ...given('pause_after_seconds', numberOrReset(call, 'pauseAfter')),
    ...given('backup_schedule', orReset(call.text('backupSchedule'))),
    ...given('backups_kept', call.integer('backupsKept', 1, 365)),
    ...given('archive_days', numberOrReset(call, 'archiveDays')),
    ...given('rate_limit', rateLimit(call.text('rateLimit'))),
  }
  if (Object.keys(change).length === 0) throw usageError('No setting is given. `--help` lists the options.')
  return change
}

/** Reads a setting that has one of some words. @throws CommandError for another word */
function oneOf<Word extends string>(
  what: string,
  text: string | undefined,
  allowed: readonly Word[],
): Word | undefined {
  if (text === undefined) return undefined
  const found = allowed.find((one) => one === text)
  if (found === undefined) throw usageError(`Invalid ${what} "${text.slice(0, 100)}". Allowed: ${allowed.join(', ')}.`)
  return found
}

function given<Name extends string, Value>(name: Name, value: Value | undefined) {
  return (value === undefined ? {} : { [name]: value }) as { [member in Name]?: Value }
}

function orReset(text: string | undefined): string | null | undefined {
  return text === reset ? null : text
}

function numberOrReset(call: Call, name: string): number | null | undefined {
  return call.text(name) === reset ? null : call.integer(name, 0, 2_592_000)
}

function rateLimit(text: string | undefined): TenantChange['rate_limit'] {
  if (text === undefined || text === 'unlimited') return text
  if (text === reset) return null
  const [, perSecond, burst] = /^(\d{1,7})\/(\d{1,7})$/.exec(text) ?? []
  if (perSecond === undefined || burst === undefined)
    throw usageError(`Invalid rate "${text.slice(0, 100)}". It must be like 250/1000, unlimited or ${reset}.`)
  return { per_second: Number(perSecond), burst: Number(burst) }
}

/** Reads settings as JSON. The API checks their names and values. */
function readJson(text: string | undefined): TenantChange {
  if (text === undefined) return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw usageError('The value of --set is not valid JSON.', { cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw usageError('The value of --set must be a JSON object, such as \'{"plan":"Pro"}\'.')
  return value
}
