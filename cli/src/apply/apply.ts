// `apply -f tenants.yaml` creates and changes tenants until they are as a file declares them. It never deletes one.
import { readFile } from 'node:fs/promises'
import { ApiError, bodyOf, type ControlClient, type CreatedTenant, type Tenant } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { followOperation, isWaiting, withWaiting } from '../commands/follow-operation.ts'
import { findTenant } from '../commands/tenant-reference.ts'
import { CommandError, exitCodes, usageError } from '../terminal/exit-codes.ts'
import { readStandardInput } from '../terminal/prompt.ts'
import { printable } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { stepFor, type FieldChange, type Step } from './difference.ts'
import { readManifest, type DeclaredTenant } from './manifest.ts'

/** The report of `apply` about one tenant. */
interface Applied {
  readonly tenant: string
  readonly tenant_id: string | null
  readonly action: Step['action']
  readonly changes: readonly FieldChange[]
  /** The reason why the tenant cannot become as declared. */
  readonly reason?: string
  /** Keys of a new tenant, which are shown this once. */
  readonly keys?: CreatedTenant['keys']
  /** Address of a new tenant's database with its password, which is shown this once. */
  readonly database_url?: string
}

/** Adds `apply`. */
export function addApplyCommand(program: Command, terminal: Terminal): void {
  withWaiting(program.command('apply').description('create and change tenants until they are as a file declares them'))
    .requiredOption('-f, --file <file>', 'YAML file; `-` is standard input')
    .option('--dry-run', 'only show the differences')
    .option('--exit-code', `with --dry-run, exit with ${exitCodes.differences} if there are differences`)
    .action(action(terminal, apply))
}

async function apply(call: Call): Promise<void> {
  const file = call.text('file') ?? ''
  const declared = readManifest(await readText(call, file), file === '-' ? 'standard input' : file)
  const client = await call.control()
  const steps: [DeclaredTenant, Step][] = []
  for (const one of declared) steps.push([one, stepFor(one, await present(client, one.name))])
  const isDryRun = call.isSet('dryRun')
  for (const [{ name }, step] of steps) {
    if (!isDryRun && step.action === 'create') await create(call, client, step.declared, step.changes)
    else {
      if (!isDryRun && step.action === 'update') await update(call, client, step)
      const id = 'tenant' in step ? step.tenant.tenant_id : null
      const { action: kind, changes } = step
      show(call, {
        tenant: name,
        tenant_id: id,
        action: kind,
        changes,
        ...(step.action === 'impossible' ? { reason: step.reason } : {}),
      })
    }
  }
  const count = (kind: Step['action']) => steps.filter(([, step]) => step.action === kind).length
  call.output.progress(
    `${isDryRun ? 'Differences' : 'Applied'}: ${count('create')} to create, ${count('update')} to change, ` +
      `${count('none')} unchanged.`,
  )
  if (count('impossible') > 0)
    throw new CommandError(`${count('impossible')} tenants cannot become as declared.`, exitCodes.conflict)
  if (isDryRun && call.isSet('exitCode') && count('create') + count('update') > 0)
    throw new CommandError('There are differences.', exitCodes.differences)
}

async function create(
  call: Call,
  client: ControlClient,
  { name, plan, region, isolation, settings }: DeclaredTenant,
  changes: readonly FieldChange[],
): Promise<void> {
  const body = { name, plan, region, ...(isolation === undefined ? {} : { isolation }) }
  const created = bodyOf(await client.POST('/v1/tenants', { body }))
  const { tenant_id: id, keys, database_url } = created
  // The keys are shown before anything else, because no other response has them.
  show(call, { tenant: name, tenant_id: id, action: 'create', changes, keys, database_url })
  const hasSettings = Object.keys(settings).length > 0
  if (isWaiting(call) || hasSettings) await followOperation(call, client, created.operation.id)
  if (!hasSettings) return
  const step = stepFor({ name, plan, region, settings }, await findTenant(client, id))
  if (step.action === 'update') await update(call, client, step)
}

async function update(call: Call, client: ControlClient, step: Extract<Step, { action: 'update' }>): Promise<void> {
  const { tenant, change } = step
  const changed = bodyOf(
    await client.PATCH('/v1/tenants/{id}', {
      // A tenant that has changed since it was compared is not changed.
      params: { path: { id: tenant.tenant_id } },
      headers: { 'if-match': `"${tenant.generation}"` },
      body: change,
    }),
  )
  if (isWaiting(call)) await followOperation(call, client, changed.operation.id)
}

async function present(client: ControlClient, name: string): Promise<Tenant | undefined> {
  return findTenant(client, name).catch((error: unknown) => {
    if (error instanceof CommandError && error.exitCode === exitCodes.notFound) return undefined
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  })
}

async function readText(call: Call, file: string): Promise<string> {
  if (file === '-') return readStandardInput(call.terminal, 'the file')
  try {
    return await readFile(call.path(file), 'utf8')
  } catch (cause) {
    throw usageError(`The file ${file} cannot be read.`, { cause })
  }
}

function show(call: Call, applied: Applied): void {
  call.output.one(applied, () => format(applied))
}

const signs = { create: '+', update: '~', none: '=', impossible: '!' } as const

function format({ tenant, action: kind, changes, reason, keys, database_url: database }: Applied): string {
  const lines = [
    `${signs[kind]} ${tenant}${reason === undefined ? '' : `: ${reason}`}`,
    ...changes.map(({ field, from, to }) =>
      kind === 'create'
        ? `    ${field}: ${JSON.stringify(to)}`
        : `    ${field}: ${JSON.stringify(from)} → ${JSON.stringify(to)}`,
    ),
    ...Object.entries(keys ?? {}).map(([name, key]) => `    ${name}: ${key}`),
    ...(database === undefined ? [] : [`    database_url: ${database}`]),
  ]
  return lines.map((line) => printable(line)).join('\n')
}
