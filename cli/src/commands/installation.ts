// Commands about the whole installation: regions, plans, the audit log and blocked addresses.
import { bodyOf, type AuditEntry, type ControlClient, type Plan, type Region } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { CommandError, exitCodes } from '../terminal/exit-codes.ts'
import type { Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { maxPageRows, reportMore, rowLimit, withPaging } from './lists.ts'

const regionColumns: readonly Column<Region>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'ENGINE', value: ({ engine }) => engine },
  { title: 'DOMAIN', value: ({ domain }) => domain },
  { title: 'ISOLATION', value: ({ isolations }) => isolations.join(', ') },
  { title: 'CONDITIONS', value: ({ conditions }) => conditions.map(describe).join(', ') },
]

const planColumns: readonly Column<Plan>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'ISOLATION', value: ({ isolation }) => isolation },
  { title: 'DOCUMENTS', value: ({ quotas }) => bytes(quotas.documents_bytes) },
  { title: 'FILES', value: ({ quotas }) => bytes(quotas.files_bytes) },
  { title: 'REQUESTS', value: ({ quotas }) => quotas.api_requests_per_month ?? 'unlimited' },
  { title: 'CONNECTIONS', value: ({ quotas }) => quotas.realtime_connections ?? 'unlimited' },
]

const auditColumns: readonly Column<AuditEntry>[] = [
  { title: 'SEQ', value: ({ seq }) => seq },
  { title: 'AT', value: ({ at }) => at },
  { title: 'ACTOR', value: ({ actor }) => actor },
  { title: 'ACTION', value: ({ action: name }) => name },
  { title: 'TARGET', value: ({ target }) => target },
]

/** Adds `regions`, `plans` and the group `audit`. */
export function addInstallationCommands(program: Command, terminal: Terminal): void {
  program
    .command('regions')
    .description('list the regions and what was last observed of them')
    .action(
      action(terminal, async (call) => call.output.rows(await readRegions(await call.control()), regionColumns, '')),
    )
  program
    .command('plans')
    .description('list the plans with their quotas')
    .action(
      action(terminal, async (call) => {
        const { plans } = bodyOf(await (await call.control()).GET('/v1/plans'))
        call.output.rows(plans, planColumns, 'No plans.')
      }),
    )
  const audit = program.command('audit').description('read and verify the audit log')
  withPaging(audit.command('list').description('list entries, newest first'))
    .option('--before <seq>', 'only entries before this one')
    .action(action(terminal, listAudit))
  audit
    .command('verify')
    .description('compute the hashes of the log again')
    .action(
      action(terminal, async (call) => {
        const body = bodyOf(await (await call.control()).GET('/v1/audit/verify'))
        call.output.one(body)
        if (!body.whole) throw new CommandError('The audit log was changed.', exitCodes.failedOperation)
      }),
    )
}

/** Returns the regions of the installation. */
export async function readRegions(client: ControlClient): Promise<Region[]> {
  return bodyOf(await client.GET('/v1/regions')).regions
}

async function listAudit(call: Call): Promise<void> {
  const client = await call.control()
  const limit = rowLimit(call)
  let before = call.text('before')
  const entries: AuditEntry[] = []
  // One entry more than the limit shows that there are more.
  while (entries.length <= limit) {
    const size = Math.min(limit + 1 - entries.length, maxPageRows)
    const query = { limit: String(size), ...(before === undefined ? {} : { before }) }
    const page = bodyOf(await client.GET('/v1/audit', { params: { query } })).entries
    entries.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < size) break
    before = String(last.seq)
  }
  if (entries.length > limit) reportMore(call, limit)
  call.output.rows(entries.slice(0, limit), auditColumns, 'No entries.')
}

function describe({ type, status, reason }: Region['conditions'][number]): string {
  return `${type}=${status}${status === 'True' ? '' : ` (${reason})`}`
}

function bytes(value: number | null): string {
  return value === null ? 'unlimited' : `${value / 1e9} GB`
}
