// Commands that create, read, change and delete tenants.
import { bodyOf, type ControlClient, type CreatedTenant, type Operation, type Tenant } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'
import { prompt } from '../terminal/prompt.ts'
import type { Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { followOperation, isWaiting, withWaiting } from './follow-operation.ts'
import { readRows, withPaging } from './lists.ts'
import { addSettings, readSettings } from './tenant-settings.ts'
import { formatTenant } from './tenant-format.ts'
import { findTenant } from './tenant-reference.ts'

const columns: readonly Column<Tenant>[] = [
  { title: 'NAME', value: ({ name }) => name },
  { title: 'ID', value: ({ tenant_id: id }) => id },
  { title: 'PLAN', value: ({ plan }) => plan },
  { title: 'REGION', value: ({ region }) => region },
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'CREATED', value: ({ created_at: at }) => at },
]

const statuses = ['pending', 'ready', 'suspended', 'paused', 'deleting', 'failed'] as const
const isolations = ['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'] as const

/** Adds the group `tenants`. */
export function addTenantCommands(program: Command, terminal: Terminal): void {
  const tenants = program.command('tenants').description('create, list, change and delete tenants')

  withPaging(tenants.command('list').description('list tenants, oldest first'))
    .option('--plan <plan>', 'only tenants of this plan')
    .option('--region <region>', 'only tenants of this region')
    .option('--status <status>', `only tenants with this status: ${statuses.join(', ')}`)
    .option('--prefix <text>', 'only tenants whose names begin with the text')
    .action(action(terminal, list))
  withWaiting(tenants.command('create <name>').description('create a tenant; shows its keys, this once'))
    .requiredOption('--plan <plan>', 'the plan, such as Free')
    .requiredOption('--region <region>', 'the region, such as local')
    .option('--isolation <model>', isolations.join(', '))
    .action(action(terminal, create))
  tenants.command('get <tenant>').alias('show').description('show a tenant').action(action(terminal, get))
  addSettings(withWaiting(tenants.command('update <tenant>').alias('set').description('change a tenant'))).action(
    action(terminal, async (call, reference = '') => change(call, reference, readSettings(call))),
  )
  withWaiting(tenants.command('delete <tenant>').description('delete a tenant; its data stays for the grace time'))
    .option('--purge', 'destroy the data at once')
    .option('--confirm <name>', "the tenant's name; without a terminal, it is required")
    .action(action(terminal, remove))
  withWaiting(tenants.command('restore <tenant>').alias('undelete').description('revert a deletion')).action(
    action(terminal, (call, reference = '') => run(call, reference, 'undelete')),
  )
  withWaiting(tenants.command('suspend <tenant>').description('reject all requests of a tenant'))
    .option('--reason <text>', 'a public reason')
    .option('--payment-required', 'paying ends the suspension')
    .action(
      action(terminal, (call, reference = '') => {
        const reason = call.text('reason')
        return change(call, reference, {
          suspended: true,
          ...(reason === undefined ? {} : { suspend_reason: reason }),
          ...(call.isSet('paymentRequired') ? { payment_required: true } : {}),
        })
      }),
    )
  withWaiting(tenants.command('resume <tenant>').description('end a suspension')).action(
    action(terminal, (call, reference = '') => change(call, reference, { suspended: false })),
  )
  const runs = {
    pause: "stop a tenant's own services until its next request",
    wake: 'start the services of a paused tenant',
    restart: "create a tenant's own services again",
  } as const
  for (const name of ['pause', 'wake', 'restart'] as const)
    withWaiting(tenants.command(`${name} <tenant>`).description(runs[name])).action(
      action(terminal, (call, reference = '') => run(call, reference, name)),
    )
  withWaiting(
    tenants.command('move <tenant> <database>').description("move a tenant's home to another shared database"),
  ).action(action(terminal, move))
  withWaiting(
    tenants
      .command('move-revert <tenant>')
      .description("return a tenant's home to the database that its move has left"),
  ).action(action(terminal, revertMove))
}

async function move(call: Call, reference = '', database = ''): Promise<void> {
  const client = await call.control()
  const { tenant_id: id } = await findTenant(client, reference)
  const params = { path: { id } }
  const moved = bodyOf(await client.POST('/v1/tenants/{id}/move', { params, body: { database } }))
  showTenant(call, await settleIfWaiting(call, client, moved))
}

async function revertMove(call: Call, reference = ''): Promise<void> {
  const client = await call.control()
  const { tenant_id: id } = await findTenant(client, reference)
  const reverted = bodyOf(await client.POST('/v1/tenants/{id}/move/revert', { params: { path: { id } }, body: null }))
  showTenant(call, await settleIfWaiting(call, client, reverted))
}

async function list(call: Call): Promise<void> {
  const client = await call.control()
  const status = call.text('status')
  const known = statuses.find((one) => one === status)
  if (status !== undefined && known === undefined)
    throw usageError(`Invalid status "${status.slice(0, 100)}". Allowed: ${statuses.join(', ')}.`)
  const plan = call.text('plan')
  const region = call.text('region')
  const prefix = call.text('prefix')
  const filter = {
    ...(plan === undefined ? {} : { plan }),
    ...(region === undefined ? {} : { region }),
    ...(known === undefined ? {} : { status: known }),
    ...(prefix === undefined ? {} : { name_prefix: prefix }),
  }
  const rows = await readRows(
    call,
    async (page) => bodyOf(await client.GET('/v1/tenants', { params: { query: { ...filter, ...page } } })),
    (page) => page.tenants,
  )
  call.output.rows(
    rows,
    columns,
    'No tenants. Create one with: tenantry tenants create NAME --plan Free --region local',
  )
}

async function create(call: Call, name = ''): Promise<void> {
  const client = await call.control()
  const isolation = call.text('isolation')
  const model = isolations.find((one) => one === isolation)
  if (isolation !== undefined && model === undefined)
    throw usageError(`Invalid isolation "${isolation.slice(0, 100)}". Allowed: ${isolations.join(', ')}.`)
  const created = bodyOf(
    await client.POST('/v1/tenants', {
      body: {
        name,
        plan: call.text('plan') ?? '',
        region: call.text('region') ?? '',
        ...(model === undefined ? {} : { isolation: model }),
      },
    }),
  )
  await showCreated(call, client, created)
}

/** Waits for a new tenant and shows it with its keys, also if the user does not wait until it is ready. */
export async function showCreated(call: Call, client: ControlClient, created: CreatedTenant): Promise<void> {
  const settled = isWaiting(call)
    ? await settle(call, client, created).catch((error: unknown) => {
        showTenant(call, created)
        throw error
      })
    : created
  // Only the first response has the passwords.
  const { keys, database_url, read_only_database_url } = created
  showTenant(call, { ...settled, database_url, read_only_database_url, keys })
  call.output.progress('The keys and the database password are shown this once.')
}

function showTenant(call: Call, tenant: Parameters<typeof formatTenant>[0]): void {
  call.output.one(tenant, () => formatTenant(tenant))
}

async function get(call: Call, reference = ''): Promise<void> {
  showTenant(call, await findTenant(await call.control(), reference))
}

async function change(call: Call, reference: string, body: ReturnType<typeof readSettings>): Promise<void> {
  const client = await call.control()
  const { tenant_id: id } = await findTenant(client, reference)
  const changed = bodyOf(await client.PATCH('/v1/tenants/{id}', { params: { path: { id } }, body }))
  showTenant(call, await settleIfWaiting(call, client, changed))
}

async function remove(call: Call, reference = ''): Promise<void> {
  const client = await call.control()
  const tenant = await findTenant(client, reference)
  await confirm(call, tenant.name)
  const params = { path: { id: tenant.tenant_id }, query: { purge: call.isSet('purge') ? 'true' : 'false' } as const }
  const deleted = bodyOf(await client.DELETE('/v1/tenants/{id}', { params }))
  // With a grace time the operation ends only after it. Until then, wait until the tenant is no longer served.
  const isUnserved = async () => {
    const now = await findTenant(client, tenant.tenant_id).catch(() => undefined)
    return !call.isSet('purge') && now !== undefined && now.observed_generation >= now.generation
  }
  showTenant(call, await settleIfWaiting(call, client, deleted, isUnserved))
  if (deleted.purge_after !== null && !call.isSet('purge'))
    call.output.progress(
      `Until ${deleted.purge_after} you can revert this with: tenantry tenants restore ${tenant.name}`,
    )
}

async function confirm(call: Call, name: string): Promise<void> {
  const given =
    call.text('confirm') ??
    (await prompt(call.terminal, `Type the name of the tenant to delete it (${name})`, {
      instead: `Use --confirm ${name}.`,
    }))
  if (given !== name) throw usageError(`The confirmation "${given.slice(0, 100)}" is not the name "${name}".`)
}

async function run(call: Call, reference: string, name: 'pause' | 'wake' | 'restart' | 'undelete'): Promise<void> {
  const client = await call.control()
  const { tenant_id: id } = await findTenant(client, reference)
  const params = { path: { id } }
  const changed =
    name === 'restart'
      ? bodyOf(await client.POST('/v1/tenants/{id}/restart', { params, body: {} }))
      : bodyOf(await client.POST(`/v1/tenants/{id}/${name}`, { params, body: {} }))
  showTenant(call, await settleIfWaiting(call, client, changed))
}

type Write = Tenant & { operation: Operation | null }

function settleIfWaiting<Body extends Write>(
  call: Call,
  client: ControlClient,
  write: Body,
  isDone?: (operation: Operation) => Promise<boolean>,
): Promise<Body> {
  return isWaiting(call) ? settle(call, client, write, isDone) : Promise.resolve(write)
}

/** Waits until the operation of a write has ended. @returns the tenant as it is then, as far as it exists */
async function settle<Body extends Write>(
  call: Call,
  client: ControlClient,
  write: Body,
  isDone?: (operation: Operation) => Promise<boolean>,
): Promise<Body> {
  if (write.operation === null) return write
  const operation = await followOperation(call, client, write.operation.id, isDone)
  const tenant = await findTenant(client, write.tenant_id).catch(() => undefined)
  return { ...write, ...tenant, operation }
}
