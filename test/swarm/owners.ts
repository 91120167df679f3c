// Tenants with rows and files on three hosts, and what operators and clients see of all their data.
import { createHash, randomBytes } from 'node:crypto'
import { until } from '#test/support/docker.ts'
import { query } from '#test/support/postgres.ts'
import { month } from '../installation/support/billed-month.ts'
import type { StackPlatform } from './stack.ts'

/** A tenant. */
export interface Owner {
  id: string
  name: string
  key: string
  url: string
}

type Body = Record<string, unknown>

const files = { letter: 'text/plain', picture: 'image/png', empty: 'application/octet-stream' }
const hash = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')

/** Sends a request to the tenant's storage, by way of the first host's gateway. */
async function storage(
  { lab, gatewayPort }: StackPlatform,
  { name, key }: Owner,
  method: string,
  path: string,
  body?: string,
  type = 'application/json',
): Promise<Response> {
  return fetch(`http://${lab.hosts[0].address}:${gatewayPort}/t/${name}/storage/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': type }) },
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.timeout(30_000),
  })
}

function sql(platform: StackPlatform, { url }: Owner, text: string) {
  const found = new URL(url)
  found.host = `${platform.lab.hosts[0].address}:${platform.postgresPort}`
  return query(found.href, text)
}

async function succeeded(platform: StackPlatform, what: string, response: Promise<{ status: number; body: Body }>) {
  const { status, body } = await response
  if (status >= 300) throw new Error(`${what}: ${status} ${JSON.stringify(body)}\n${await platform.logs()}`)
  return body
}

/** Creates a tenant with rows and files. */
export async function createOwner(platform: StackPlatform, name: string, isolation: string): Promise<Owner> {
  const wanted = { name, plan: 'Free', region: 'local', isolation }
  const body = await succeeded(platform, `create ${name}`, platform.call('POST', '/v1/tenants', wanted))
  const { secret_key: key = '' } = body['keys'] as Record<string, string>
  const owner = { id: String(body['tenant_id']), name, key, url: String(body['database_url']) }
  await platform.until(owner.id, ({ status }) => status === 'ready')
  const send = async (path: string, text: string, type?: string) => {
    const response = await storage(platform, owner, 'POST', path, text, type)
    if (!response.ok) throw new Error(`${name}: POST ${path}: ${response.status} ${await response.text()}`)
  }
  await send('bucket', '{"name":"papers","policy":"private"}')
  for (const [file, type] of Object.entries(files))
    await send(`object/papers/${file}`, file === 'empty' ? '' : randomBytes(40_000).toString('base64'), type)
  await sql(
    platform,
    owner,
    `create table ledger (id bigint generated always as identity primary key, text text);
     insert into ledger (text) select md5('${name}' || n::text) from generate_series(1, 200) n`,
  )
  return owner
}

/** Takes a backup. */
export async function backUp(platform: StackPlatform, { id, name }: Owner): Promise<void> {
  const taken = platform.call('POST', `/v1/tenants/${id}/backups`)
  const path = `/v1/backups/${String((await succeeded(platform, `back up ${name}`, taken))['id'])}`
  let last: Body = {}
  const isComplete = async () => {
    const { body } = await platform.call('GET', path).catch((error: unknown) => ({ body: { error: String(error) } }))
    last = body
    return last['state'] === 'complete' ? true : undefined
  }
  await until(isComplete, 300).catch(async (cause: unknown) => {
    throw new Error(`The backup of ${name} is ${JSON.stringify(last)}\n${await platform.logs()}`, { cause })
  })
}

/** Suspends a tenant, or resumes it. */
export async function suspend(platform: StackPlatform, { id, name }: Owner, isSuspended: boolean): Promise<void> {
  const change = isSuspended ? { suspended: true, suspend_reason: 'The invoice is due.' } : { suspended: false }
  await succeeded(platform, `change ${name}`, platform.call('PATCH', `/v1/tenants/${id}`, change))
  await platform.until(id, ({ status }) => status === (isSuspended ? 'suspended' : 'ready'))
}

/** Returns what operators and clients see of the data of tenants that are served. Two results are equal if nothing was lost. */
export async function seen(platform: StackPlatform, owners: readonly Owner[]): Promise<Body> {
  const everything: Body = {}
  const read = (path: string) => succeeded(platform, `GET ${path}`, platform.call('GET', path))
  for (const owner of owners) {
    const { id, name } = owner
    const tenant = await platform.until(id, ({ status }) => status === 'ready')
    everything[`${name}: tenant`] = ['name', 'plan', 'region', 'isolation', 'status', 'created'].map(
      (field) => tenant[field],
    )
    for (const file of Object.keys(files)) everything[`${name}: ${file}`] = await seenFile(platform, owner, file)
    everything[`${name}: rows`] = await sql(
      platform,
      owner,
      "select count(*)::int as count, md5(string_agg(id || text, ',' order by id)) as content from ledger",
    )
    everything[`${name}: usage`] = await read(`/v1/tenants/${id}/usage/${month}`)
    everything[`${name}: invoices`] = (await read(`/v1/tenants/${id}/invoices`))['invoices']
    const backups = (await read(`/v1/tenants/${id}/backups`))['backups'] as Body[]
    everything[`${name}: backups`] = backups.map((backup) =>
      ['id', 'state', 'manifest_sha256', 'bytes'].map((field) => backup[field]),
    )
  }
  const keys = (await read('/v1/keys'))['keys'] as Body[]
  everything['keys'] = keys.filter(({ name }) => name !== 'recovery key')
  return everything
}

/** Returns type and content of a file. The gateway may not know a tenant that has just been restored. */
async function seenFile(platform: StackPlatform, owner: Owner, file: string): Promise<unknown> {
  let last = 'no response'
  const request = async () => {
    try {
      const response = await storage(platform, owner, 'GET', `object/papers/${file}`)
      const content = Buffer.from(await response.arrayBuffer())
      last = `${response.status} ${content.toString().slice(0, 300)}`
      return response.ok ? [response.headers.get('content-type'), content.length, hash(content)] : undefined
    } catch (error) {
      last = String(error)
      return undefined
    }
  }
  return until(request, 120).catch(async (cause: unknown) => {
    throw new Error(`${owner.name}: GET ${file}: ${last}\n${await platform.logs()}`, { cause })
  })
}
