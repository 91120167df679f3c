// Commands that read, compare and write the schemas of a tenant with their policies.
import { readFile, writeFile } from 'node:fs/promises'
import { ApiError } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { CommandError, exitCodes, usageError } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { asObject, asObjects, isJsonObject, textOf, type JsonObject } from './json.ts'
import type { TenantClient } from './tenant-client.ts'

const defaultFile = 'schemas.json'
/** The members of a schema that a file has. The service assigns the others. */
const members = ['name', 'fields', 'rls_policy', 'events'] as const
const pageRows = 1000

/** A schema as the file has it. */
interface Schema extends JsonObject {
  readonly name: string
}

/** A difference between the file and the tenant. */
interface SchemaDifference {
  readonly schema: string
  readonly action: 'create' | 'update' | 'delete'
  /** The members that differ. */
  readonly members: readonly string[]
}

/** Adds the group `schemas`. */
export function addSchemaCommands(program: Command, terminal: Terminal): void {
  const schemas = program.command('schemas').description('read and write the schemas and policies of a tenant')
  schemas
    .command('pull [file]')
    .description(`write the tenant's schemas to a file; ${defaultFile} by default, \`-\` is standard output`)
    .action(action(terminal, pull))
  schemas
    .command('push [file]')
    .description("write a file's schemas to the tenant, and reload them")
    .option('--prune', 'delete schemas that the file does not have; their tables stay')
    .option('--confirm <change...>', 'changes that lose data, exactly as the reload has reported them')
    .action(action(terminal, push))
  schemas
    .command('diff [file]')
    .description('show what `push` would change')
    .option('--prune', 'also show schemas that the file does not have')
    .option('--exit-code', `exit with ${exitCodes.differences} if there are differences`)
    .action(action(terminal, diff))
}

async function pull(call: Call, file = defaultFile): Promise<void> {
  const schemas = await readSchemas(await call.tenant())
  const text = `${JSON.stringify(schemas, null, 2)}\n`
  if (file === '-') call.output.text(text)
  else {
    await writeFile(call.path(file), text)
    call.output.one({ file, schemas: schemas.length }, () => `Wrote ${schemas.length} schemas to ${file}.`)
  }
}

async function push(call: Call, file = defaultFile): Promise<void> {
  const client = await call.tenant()
  const wanted = await readSchemaFile(call, file)
  const differences = compare(wanted, await readSchemas(client), call.isSet('prune'))
  for (const difference of differences) {
    call.output.progress(describe(difference))
    await write(client, difference, wanted)
  }
  const confirmed = call.texts('confirm')
  try {
    const body = confirmed.length === 0 ? {} : { confirm: confirmed }
    const reloaded = await client.json('/admin/reload-schemas', { method: 'POST', json: body })
    call.output.one(asObject(reloaded, 'The response of the reload'))
  } catch (error) {
    const changes = error instanceof ApiError ? error.body?.changes : undefined
    if (Array.isArray(changes))
      for (const change of changes) call.output.progress(`To lose data: --confirm '${textOf(change)}'`)
    throw error
  }
}

async function diff(call: Call, file = defaultFile): Promise<void> {
  const wanted = await readSchemaFile(call, file)
  const differences = compare(wanted, await readSchemas(await call.tenant()), call.isSet('prune'))
  call.output.rows(
    differences,
    [
      { title: 'SCHEMA', value: ({ schema }) => schema },
      { title: 'ACTION', value: ({ action: kind }) => kind },
      { title: 'MEMBERS', value: (difference) => difference.members.join(', ') },
    ],
    'No differences.',
  )
  if (differences.length > 0 && call.isSet('exitCode'))
    throw new CommandError('There are differences.', exitCodes.differences)
}

async function readSchemas(client: TenantClient): Promise<Schema[]> {
  const schemas: Schema[] = []
  for (;;) {
    const path = `/rest/v1/schemas?order=name.asc&limit=${pageRows}&offset=${schemas.length}`
    const page = asObjects(await client.json(path), 'The response of /rest/v1/schemas').map(toSchema)
    schemas.push(...page)
    if (page.length < pageRows) return schemas
  }
}

async function readSchemaFile(call: Call, file: string): Promise<Schema[]> {
  let value: unknown
  try {
    value = JSON.parse(await readFile(call.path(file), 'utf8'))
  } catch (cause) {
    const isSyntax = cause instanceof SyntaxError
    throw usageError(isSyntax ? `The file ${file} is not valid JSON.` : `The file ${file} cannot be read.`, { cause })
  }
  if (!Array.isArray(value)) throw usageError(`The file ${file} must be a list of schemas.`)
  return value.map((entry: unknown, at) => {
    if (!isJsonObject(entry) || typeof entry.name !== 'string')
      throw usageError(`${file}: [${at}] must be a schema with a name.`)
    const unknown = Object.keys(entry).find((member) => !members.some((one) => one === member))
    if (unknown !== undefined)
      throw usageError(
        `${file}: [${at}] has the unknown member "${unknown.slice(0, 100)}". Allowed: ${members.join(', ')}.`,
      )
    return toSchema(entry)
  })
}

function toSchema(entry: JsonObject): Schema {
  const { name } = entry
  if (typeof name !== 'string') throw new Error('A schema of the tenant has no name.')
  return { ...Object.fromEntries(members.filter((one) => one in entry).map((one) => [one, entry[one]])), name }
}

function compare(wanted: readonly Schema[], present: readonly Schema[], withDeleted: boolean): SchemaDifference[] {
  const changed = wanted.flatMap((schema): SchemaDifference[] => {
    const now = present.find(({ name }) => name === schema.name)
    if (now === undefined) return [{ schema: schema.name, action: 'create', members: Object.keys(schema) }]
    const different = Object.keys(schema).filter((member) => canonical(schema[member]) !== canonical(now[member]))
    return different.length === 0 ? [] : [{ schema: schema.name, action: 'update', members: different }]
  })
  const deleted = present.filter(({ name }) => withDeleted && !wanted.some((schema) => schema.name === name))
  return [...changed, ...deleted.map(({ name }): SchemaDifference => ({ schema: name, action: 'delete', members: [] }))]
}

async function write(client: TenantClient, difference: SchemaDifference, wanted: readonly Schema[]): Promise<void> {
  const { schema: name, action: kind } = difference
  const schema = wanted.find((one) => one.name === name)
  const path = `/rest/v1/schemas?name=eq.${encodeURIComponent(name)}`
  if (kind === 'create') await client.send('/rest/v1/schemas', { method: 'POST', json: schema })
  else if (kind === 'delete') await client.send(path, { method: 'DELETE' })
  else {
    const changed = Object.fromEntries(difference.members.map((member) => [member, schema?.[member]]))
    await client.send(path, { method: 'PATCH', json: changed })
  }
}

function describe({ schema, action: kind, members: different }: SchemaDifference): string {
  return `${kind} ${schema}${kind === 'update' ? `: ${different.join(', ')}` : ''}`
}

/** Returns the JSON of a value with the members of objects in order. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (!isJsonObject(value)) return textOf(JSON.stringify(value))
  return `{${Object.keys(value)
    .toSorted()
    .map((member) => `${JSON.stringify(member)}:${canonical(value[member])}`)
    .join()}}`
}
