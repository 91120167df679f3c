// Commands about backups of tenants.
import { bodyOf, type Backup, type ControlClient, type Operation, type ResponseBody } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'
import { prompt } from '../terminal/prompt.ts'
import type { Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { followOperation, isWaiting, withWaiting } from './follow-operation.ts'
import { readRows, withPaging } from './lists.ts'
import { findTenant, findTenantId } from './tenant-reference.ts'
import { showCreated } from './tenants.ts'

type ListedBackup = ResponseBody<'/v1/backups', 'get'>['backups'][number]

const columns: readonly Column<ListedBackup>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'TENANT', value: ({ tenant_id: tenant }) => tenant },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'BYTES', value: ({ bytes }) => bytes },
  { title: 'CREATED', value: ({ created }) => created },
  { title: 'VERIFIED', value: (backup) => ('verified' in backup ? backup.verified : null) },
]

/** Adds the group `backups`. */
export function addBackupCommands(program: Command, terminal: Terminal): void {
  const backups = program.command('backups').description('create, verify and restore backups')
  withPaging(backups.command('list [tenant]').description('list the backups of a tenant, or of all')).action(
    action(terminal, list),
  )
  backups
    .command('get <backup>')
    .description('show a backup with its copies')
    .action(action(terminal, async (call, id = '') => call.output.one(await readBackup(await call.control(), id))))
  withWaiting(backups.command('create <tenant>').description('take a backup of a tenant')).action(
    action(terminal, async (call, reference = '') => {
      const client = await call.control()
      const id = await findTenantId(client, reference)
      const taken = bodyOf(await client.POST('/v1/tenants/{id}/backups', { params: { path: { id } } }))
      call.output.one(await settle(call, client, taken))
    }),
  )
  withWaiting(
    backups.command('verify <backup>').description('restore a backup into a scratch home and compare'),
  ).action(
    action(terminal, async (call, id = '') => {
      const client = await call.control()
      const verified = bodyOf(await client.POST('/v1/backups/{id}/verify', { params: { path: { id } } }))
      call.output.one(await settle(call, client, verified))
    }),
  )
  withWaiting(backups.command('restore <backup>').description('restore a backup, into its own or a new tenant'))
    .option('--into <name>', 'name of a new tenant; by default its own tenant is replaced')
    .option('--plan <plan>', 'plan of the new tenant')
    .option('--confirm <name>', 'name of the tenant whose data is replaced; without a terminal, it is required')
    .action(action(terminal, restore))
  backups
    .command('delete <backup>')
    .description('remove a backup for good')
    .option('--confirm <backup>', 'the ID again; without a terminal, it is required')
    .action(
      action(terminal, async (call, id = '') => {
        await confirm(call, 'Type the ID of the backup to remove it', id)
        call.output.one(bodyOf(await (await call.control()).DELETE('/v1/backups/{id}', { params: { path: { id } } })))
      }),
    )
}

async function readBackup(client: ControlClient, id: string): Promise<Backup> {
  return bodyOf(await client.GET('/v1/backups/{id}', { params: { path: { id } } }))
}

async function list(call: Call, reference?: string): Promise<void> {
  const client = await call.control()
  const id = reference === undefined ? undefined : await findTenantId(client, reference)
  const rows = await readRows<{ backups: ListedBackup[]; next_cursor: string | null }, ListedBackup>(
    call,
    async (query) =>
      id === undefined
        ? bodyOf(await client.GET('/v1/backups', { params: { query } }))
        : bodyOf(await client.GET('/v1/tenants/{id}/backups', { params: { path: { id }, query } })),
    (page) => page.backups,
  )
  call.output.rows(rows, columns, 'No backups. Take one with: tenantry backups create TENANT')
}

async function restore(call: Call, id = ''): Promise<void> {
  const client = await call.control()
  const name = call.text('into')
  const plan = call.text('plan')
  if (name === undefined) {
    if (plan !== undefined) throw usageError('--plan needs --into, because the plan of a present tenant stays.')
    const { tenant_id: tenant } = await readBackup(client, id)
    const owner = tenant === null ? id : (await findTenant(client, tenant)).name
    await confirm(call, `Type the name of the tenant to replace its data (${owner})`, owner)
  }
  const into = name === undefined ? ('same' as const) : { name, ...(plan === undefined ? {} : { plan }) }
  const restored = bodyOf(await client.POST('/v1/backups/{id}/restore', { params: { path: { id } }, body: { into } }))
  if ('keys' in restored) await showCreated(call, client, restored)
  else call.output.one(await settle(call, client, restored))
}

/** Waits for the operation of a backup, and returns the backup as it is then. */
async function settle<Body extends { id: string; operation: Operation }>(
  call: Call,
  client: ControlClient,
  started: Body,
): Promise<Body> {
  if (!isWaiting(call)) return started
  const operation = await followOperation(call, client, started.operation.id)
  const now = await readBackup(client, started.id)
  const known = Object.fromEntries(Object.entries(now).filter(([member]) => member in started))
  return { ...started, ...known, operation }
}

async function confirm(call: Call, label: string, expected: string): Promise<void> {
  const given = call.text('confirm') ?? (await prompt(call.terminal, label, { instead: `Use --confirm ${expected}.` }))
  if (given !== expected) throw usageError(`The confirmation "${given.slice(0, 100)}" is not "${expected}".`)
}
