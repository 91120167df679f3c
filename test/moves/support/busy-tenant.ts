// A tenant that uses everything: REST, files, functions of all triggers, SQL through the gateway, events and channels. All HTTP
// requests of its users are noted, so that the metered ones can be compared.
import { randomBytes } from 'node:crypto'
import { compileSource } from '#examples/functions/compile.ts'
import { readAll } from '#test/functions/support/assemblyscript.ts'
import { deployFunction } from '#test/functions/support/deployed.ts'
import { request, sql, type Owner, type ServedPlatform } from './platform.ts'

/** The secret of the webhook function. */
export const webhookSecret = 'the secret of a webhook'

/** A function that records its run, its trigger and what started it in the table `runs`. */
const recorder = `${readAll}
import { query } from './tenantry.as'
const trigger = process.env.get('TENANTRY_TRIGGER')
const subject = trigger == 'database' ? process.env.get('TENANTRY_DELIVERY')
  : trigger == 'schedule' ? process.env.get('TENANTRY_PLANNED_AT')
  : trigger == 'webhook' ? process.env.get('TENANTRY_WEBHOOK_ID') : ''
query('insert into runs (trigger, subject, input) values ($1, $2, $3)',
  '["' + trigger + '","' + subject + '",' + readAll() + ']')
if (process.env.has('PAUSE')) query('select pg_sleep(' + process.env.get('PAUSE') + ')')
process.stdout.write('{}')
`

const schemas = ['notes', 'orders'].map((name) => ({
  name,
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'number', type: 'number', required: true },
    { name: 'text', type: 'string' },
  ],
  rls_policy: { type: 'service' },
  events: true,
}))

export interface BusyTenant extends Owner {
  platform: ServedPlatform
  publishableKey: string
  /** The address of the tenant at the gateway. */
  base: string
  /** Requests that the runtime has certainly completed, and all others that were sent. */
  requests: { acknowledged: number; uncertain: number }
  /** Sends a request over HTTP, and notes it. */
  send(method: string, path: string, init?: Init): Promise<{ status: number; bytes: Buffer }>
}

interface Init {
  body?: object | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
  /** Whether the request has no key. */
  isAnonymous?: boolean
}

const serverError = 500

/** Creates the tenant with its collections, its bucket and its functions. */
export async function createBusyTenant(platform: ServedPlatform, name: string): Promise<BusyTenant> {
  const { body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name, plan: 'Enterprise', region: 'local', isolation: 'schema-per-tenant' },
    { prefer: 'wait=30' },
  )
  if (body['status'] !== 'ready') throw new Error(JSON.stringify(body))
  const keys = body['keys'] as Record<'secret_key' | 'publishable_key', string>
  const requests = { acknowledged: 0, uncertain: 0 }
  const base = `${platform.gatewayUrl}/t/${name}`
  const key = keys.secret_key
  const send: BusyTenant['send'] = async (method, path, { body: sent, headers = {}, isAnonymous = false } = {}) => {
    const isBinary = sent instanceof Uint8Array
    try {
      const response = await fetch(`${base}${path}`, {
        method,
        headers: {
          ...(isAnonymous ? {} : { authorization: `Bearer ${key}` }),
          ...(sent === undefined ? {} : { 'content-type': isBinary ? 'application/octet-stream' : 'application/json' }),
          ...headers,
        },
        ...(sent === undefined ? {} : { body: isBinary ? sent : JSON.stringify(sent) }),
      })
      const bytes = Buffer.from(await response.arrayBuffer())
      if (response.status < serverError) requests.acknowledged++
      else requests.uncertain++
      return { status: response.status, bytes }
    } catch (error) {
      requests.uncertain++
      throw error
    }
  }
  const tenant: BusyTenant = {
    platform,
    id: String(body['tenant_id']),
    name,
    key,
    publishableKey: keys.publishable_key,
    url: String(body['database_url']),
    base,
    requests,
    send,
  }
  await prepare(tenant)
  return tenant
}

async function prepare(tenant: BusyTenant): Promise<void> {
  const must = async (path: string, body: object) => {
    const { status, bytes } = await tenant.send('POST', path, { body })
    if (status >= 300) throw new Error(`${path}: ${status} ${bytes.toString()}`)
  }
  for (const schema of schemas) await must('/rest/v1/schemas', schema)
  // Its group of requests is that of streams, too, which the users do not note.
  await request(tenant.platform, tenant, 'POST', '/admin/reload-schemas', {})
  await must('/storage/v1/bucket', { name: 'files', policy: 'private' })
  await sql(
    tenant.url,
    `create table runs (id bigint generated always as identity primary key, trigger text, subject text, input jsonb);
     create table transfers (number int, amount int);
     create table accounts (id int primary key, total int);
     insert into accounts values (1, 0)`,
  )
  const wasm = await compileSource(recorder)
  const config = { role: 'service_role', timeout: 5 }
  // This one is always in progress: the pause is as long as that between two changes.
  const slow = { ...config, environment: { PAUSE: '0.06' } }
  const deployer = {
    request: async (
      method: string,
      path: string,
      { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
    ) => {
      const sent = await tenant.send(method, path, { body: new Uint8Array(body as Buffer), headers })
      const text = sent.bytes.toString()
      return { status: sent.status, text, json: () => JSON.parse(text) as Record<string, unknown> }
    },
  } as Parameters<typeof deployFunction>[0]
  for (const [name, trigger] of [
    ['on-note', { Database: { table: 'notes', operation: 'Insert' } }],
    ['on-order', { Database: { table: 'orders', operation: 'Update' } }],
    ['each-minute', { Schedule: { cron: '* * * * *' } }],
    ['hook', { Webhook: { secret: webhookSecret } }],
    ['call', 'Http'],
  ] as const)
    await deployFunction(deployer, { name, wasm, trigger, config: name === 'on-order' ? slow : config })
}

/** Returns random bytes of a random size. */
export function randomContent(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(randomBytes(1 + (randomBytes(2).readUInt16BE() % 60_000)))
}
