// Commands about keys: platform keys of operators, and the keys of tenants.
import { bodyOf, type PlatformKey } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'
import type { Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { followOperation, isWaiting, withWaiting } from './follow-operation.ts'
import { findTenantId } from './tenant-reference.ts'

const scopes = ['admin', 'read', 'billing'] as const
const kinds = ['publishable_key', 'secret_key', 'jwt_secret', 'signing_secret'] as const
const maxOverlapSeconds = 2_592_000

const columns: readonly Column<PlatformKey>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'PREFIX', value: ({ prefix }) => prefix },
  { title: 'SCOPE', value: ({ scope }) => scope },
  { title: 'EXPIRES', value: ({ expires_at: at }) => at },
  { title: 'REVOKED', value: ({ revoked_at: at }) => at },
]

/** Adds the group `keys`. */
export function addKeyCommands(program: Command, terminal: Terminal): void {
  const keys = program.command('keys').description('manage platform keys, and rotate the keys of tenants')
  keys
    .command('list')
    .description('list platform keys, without their secrets')
    .action(
      action(terminal, async (call) => {
        const { keys: rows } = bodyOf(await (await call.control()).GET('/v1/keys'))
        call.output.rows(rows, columns, 'No keys.')
      }),
    )
  keys
    .command('create <name>')
    .description('create a platform key; shows it, this once')
    .requiredOption('--scope <scope>', scopes.join(', '))
    .action(action(terminal, create))
  keys
    .command('revoke <key>')
    .description('revoke a platform key, by its ID, at once')
    .action(
      action(terminal, async (call, id = '') => {
        call.output.one(bodyOf(await (await call.control()).DELETE('/v1/keys/{id}', { params: { path: { id } } })))
      }),
    )
  keys
    .command('rotate <key>')
    .description('create a successor of a platform key; shows it, this once')
    .option('--overlap <seconds>', 'how long the old key stays valid')
    .action(
      action(terminal, async (call, id = '') => {
        const client = await call.control()
        call.output.one(
          bodyOf(await client.POST('/v1/keys/{id}/rotate', { params: { path: { id } }, body: overlap(call) })),
        )
      }),
    )
  withWaiting(keys.command('rotate-tenant <tenant>').description("replace a tenant's keys; shows them, this once"))
    .option('--kind <kind...>', `only these: ${kinds.join(', ')}`)
    .option('--overlap <seconds>', 'how long the old ones stay valid')
    .action(action(terminal, rotateTenant))
  withWaiting(
    keys.command('rotate-database-password <tenant>').description('replace the password of `database_url`'),
  ).action(action(terminal, rotateDatabasePassword))
}

async function create(call: Call, name = ''): Promise<void> {
  const client = await call.control()
  const text = call.text('scope') ?? ''
  const scope = scopes.find((one) => one === text)
  if (scope === undefined) throw usageError(`Invalid scope "${text.slice(0, 100)}". Allowed: ${scopes.join(', ')}.`)
  call.output.one(bodyOf(await client.POST('/v1/keys', { body: { name, scope } })))
}

async function rotateTenant(call: Call, reference = ''): Promise<void> {
  const chosen = call.texts('kind').map((text) => {
    const kind = kinds.find((one) => one === text)
    if (kind === undefined) throw usageError(`Invalid kind "${text.slice(0, 100)}". Allowed: ${kinds.join(', ')}.`)
    return kind
  })
  const client = await call.control()
  const id = await findTenantId(client, reference)
  const body = { ...overlap(call), ...(chosen.length === 0 ? {} : { kinds: chosen }) }
  const rotated = bodyOf(await client.POST('/v1/tenants/{id}/keys/rotate', { params: { path: { id } }, body }))
  // The new keys are shown first, because no other response has them.
  call.output.one(rotated)
  if (isWaiting(call)) await followOperation(call, client, rotated.operation.id)
}

async function rotateDatabasePassword(call: Call, reference = ''): Promise<void> {
  const client = await call.control()
  const id = await findTenantId(client, reference)
  const params = { path: { id } }
  const rotated = bodyOf(await client.POST('/v1/tenants/{id}/database-password/rotate', { params, body: {} }))
  call.output.one(rotated)
  if (isWaiting(call)) await followOperation(call, client, rotated.operation.id)
}

function overlap(call: Call): { overlap_seconds?: number } {
  const seconds = call.integer('overlap', 0, maxOverlapSeconds)
  return seconds === undefined ? {} : { overlap_seconds: seconds }
}
