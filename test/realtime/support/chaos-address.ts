// A tenant of the chaos test as its clients and its developer use it: by HTTP, and by SQL for its policies.
import { readFile } from 'node:fs/promises'
import pg from 'pg'

export interface TenantAddress {
  /** The tenant's address at the gateway. */
  url: string
  databaseUrl: string
  keys: { secret_key: string; publishable_key: string; jwt_secret: string }
}

/** Notes can be read by their owner, posts by all users. */
const policyOf = { notes: 'ownership', posts: 'public_read' } as const
export type Collection = keyof typeof policyOf
export const collections: readonly Collection[] = ['notes', 'posts']

const userId = "current_setting('app.user_id', true)"
/** Users receive in their team and in a topic of their own, and send to all topics of their team. */
const policies = `
  create policy receivers on realtime_messages for select
    using (realtime_topic() in ('user:' || ${userId}, 'team:' || split_part(${userId}, '.', 1)));
  create policy senders on realtime_messages for insert
    with check (realtime_topic() = 'team:' || split_part(${userId}, '.', 1)
      or realtime_topic() like 'user:' || split_part(${userId}, '.', 1) || '.%')`

/** Creates the tenant's collections, and its table of messages. */
export async function prepareTenant(address: TenantAddress): Promise<void> {
  const { databaseUrl, keys } = address
  for (const name of collections) {
    const fields = [
      { name: 'id', type: 'uuid', primary: true },
      { name: 'owner_id', type: 'string' },
      { name: 'message', type: 'string' },
    ]
    const schema = { name, fields, rls_policy: { type: policyOf[name], owner_field: 'owner_id' }, events: true }
    await fetchText(address, keys.secret_key, 'POST', '/rest/v1/schemas', schema)
  }
  await fetchText(address, keys.secret_key, 'POST', '/admin/reload-schemas', {})
  const sql = new pg.Client({ connectionString: databaseUrl })
  await sql.connect()
  await sql.query(await readFile(new URL('../../../examples/realtime/messages.sql', import.meta.url), 'utf8'))
  await sql.query(policies)
  await sql.end()
}

/** Reads the collections as far as the owner of the token may. @throws Error when they cannot be read */
export async function readCollections(address: TenantAddress, token: string) {
  const lists = await Promise.all(
    collections.map(async (collection) => {
      const text = await fetchText(address, token, 'GET', `/rest/v1/${collection}?select=id,owner_id,message`)
      const records = JSON.parse(text) as { id: string; owner_id: string; message: string }[]
      return records.map(({ id, owner_id: owner, message }) => ({ collection, id, owner, message }))
    }),
  )
  return lists.flat()
}

async function fetchText(
  address: TenantAddress,
  token: string,
  method: string,
  path: string,
  body?: object,
): Promise<string> {
  const response = await tryFetch(address, token, method, path, body)
  if (response === undefined || response.status >= 300)
    throw new Error(`${method} ${path}: ${response?.status ?? 'no response'} ${response?.text ?? ''}`)
  return response.text
}

/** Sends a request. Returns undefined when the connection ended before the response. */
export async function tryFetch(address: TenantAddress, token: string, method: string, path: string, body?: object) {
  try {
    const response = await fetch(`${address.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, text: await response.text() }
  } catch {
    // The connection ended before the response.
    return undefined
  }
}
