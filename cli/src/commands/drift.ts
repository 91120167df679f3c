// `drift` shows the differences of a tenant's services, and `drift repair` ends them: all, or chosen ones.
import { bodyOf, type Drift } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { CommandError, exitCodes, usageError } from '../terminal/exit-codes.ts'
import { prompt } from '../terminal/prompt.ts'
import type { Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { followOperation, isWaiting, withWaiting } from './follow-operation.ts'
import { findTenant } from './tenant-reference.ts'

type Difference = Drift['differences'][number]

const columns: readonly Column<Difference>[] = [
  { title: 'COMPONENT', value: ({ component }) => component },
  { title: 'FIELD', value: ({ field }) => field },
  { title: 'DESIRED', value: ({ desired }) => desired },
  { title: 'OBSERVED', value: ({ observed }) => observed },
  { title: 'REPAIR', value: describeRepair },
]

/** Adds `drift` with its subcommand `repair`. */
export function addDriftCommands(program: Command, terminal: Terminal): void {
  const drift = program
    .command('drift <tenant>')
    .description('show the differences between what exists of a tenant and what should')
    .option('--exit-code', `exit with ${exitCodes.differences} if there are differences`)
    .action(action(terminal, show))
  withWaiting(drift.command('repair <tenant>').description('repair all differences of a tenant, or chosen ones'))
    .option('--field <field...>', 'only these, as COMPONENT:FIELD, or FIELD if one component has it')
    .option('--yes', 'without a confirmation if the repair interrupts the tenant')
    .action(action(terminal, repair))
}

async function show(call: Call, reference = ''): Promise<void> {
  const client = await call.control()
  const { tenant_id: id, name } = await findTenant(client, reference)
  const body = bodyOf(await client.GET('/v1/tenants/{id}/drift', { params: { path: { id } } }))
  if (call.output.isJson) call.output.one(body)
  else call.output.rows(body.differences, columns, `The tenant ${name} has no drift.`)
  if (body.drifted && call.isSet('exitCode')) throw new CommandError('There is drift.', exitCodes.differences)
}

async function repair(call: Call, reference = ''): Promise<void> {
  const client = await call.control()
  const { tenant_id: id, name } = await findTenant(client, reference)
  const params = { path: { id } }
  const { differences } = bodyOf(await client.GET('/v1/tenants/{id}/drift', { params }))
  const names = call.texts('field')
  const chosen = names.length === 0 ? differences : names.map((text) => named(differences, text))
  if (chosen.some((one) => one.repair.interrupts) && !call.isSet('yes')) await confirm(call, name)
  const fields = chosen.map(({ component, field }) => ({ component, field }))
  const body = names.length === 0 ? {} : { fields }
  const begun = bodyOf(await client.POST('/v1/tenants/{id}/drift/repair', { params, body }))
  if (begun.operation === null || !isWaiting(call)) {
    call.output.one(begun, () => (begun.operation === null ? `The tenant ${name} has no drift.` : begun.operation.id))
    return
  }
  const operation = await followOperation(call, client, begun.operation.id)
  const tenant = await findTenant(client, id)
  const what =
    names.length === 0 ? 'All differences' : fields.map(({ component, field }) => `${component}:${field}`).join(', ')
  call.output.one({ ...begun, ...tenant, operation }, () => `${what} of ${name}: repaired.`)
}

/** Returns the difference that a text names. @throws CommandError if none or several have this name */
function named(differences: readonly Difference[], text: string): Difference {
  const nameOf = ({ component, field }: Difference) => `${component}:${field}`
  const found = differences.filter((one) => nameOf(one) === text || one.field === text)
  const [first] = found
  if (first !== undefined && found.length === 1) return first
  const what = found.length === 0 ? 'does not differ' : 'differs in several components'
  const known = (found.length === 0 ? differences : found).map(nameOf).join(', ')
  throw usageError(
    `The field "${text.slice(0, 100)}" ${what}. ${known === '' ? 'Nothing differs.' : `Use one of: ${known}.`}`,
  )
}

async function confirm(call: Call, name: string): Promise<void> {
  const label = `The repair interrupts ${name}. Type yes to continue`
  const given = await prompt(call.terminal, label, { instead: 'The repair interrupts the tenant. Use --yes.' })
  if (given !== 'yes') throw usageError('The repair was not confirmed.')
}

function describeRepair({ repair: { scope, components, also, interrupts } }: Difference): string {
  const parts = [
    ...(scope === 'field' ? ['alone'] : [scope === 'tenant' ? 'everything' : `all of ${components.join(', ')}`]),
    ...(also.length === 0 ? [] : [`with ${also.length} more`]),
    ...(interrupts ? ['interrupts'] : []),
  ]
  return parts.join(', ')
}
