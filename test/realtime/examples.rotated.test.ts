// Every example of the clients' documentation has its effect, with unmodified clients of two versions.
import * as newer from '@supabase/supabase-js'
import * as older from 'supabase-js-2-109'
import t from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { broadcasts } from './examples/broadcasts.ts'
import { changes, collections } from './examples/changes.ts'
import { connecting } from './examples/connecting.ts'
import { ExampleRun, type Example } from './examples/example.ts'
import { filters } from './examples/filters.ts'
import { presences } from './examples/presences.ts'
import { policies, privates, triggers } from './examples/privates.ts'
import { messagesSql, runSql } from './support/run-sql.ts'

const versions = { '2.119': newer, '2.109': older as unknown as typeof newer }
const examples: Record<string, readonly Example[]> = { connecting, broadcasts, presences, changes, filters, privates }

async function createCollections(tenant: TestTenant): Promise<void> {
  for (const [name, fields] of Object.entries(collections)) {
    const body = {
      name,
      fields: [
        { name: 'id', type: 'number', primary: true },
        ...Object.entries(fields).map(([field, type]) => ({ name: field, type })),
        { name: 'owner_id', type: 'string' },
      ],
      rls_policy: { type: 'public_read', owner_field: 'owner_id' },
      events: true,
    }
    const { status, text } = await tenant.request('POST', '/rest/v1/schemas', { as: 'service', body })
    if (status !== 201) throw new Error(`${name}: ${text}`)
  }
  const { status, text } = await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
  if (status !== 200) throw new Error(text)
}

t.test('Documented examples', { timeout: 600_000 }, async (t) => {
  const runtime = await startRuntime(t)

  for (const [version, client] of Object.entries(versions))
    t.test(`supabase-js ${version}`, async (t) => {
      const tenant = await runtime.addTenant()
      await createCollections(tenant)
      await runSql(tenant, await messagesSql(), policies, triggers)

      for (const [group, list] of Object.entries(examples))
        t.test(group, async (t) => {
          for (const { name, source, before, code, effect, expected } of list)
            await t.test(`${name} (${source})`, async (t) => {
              const clients: newer.SupabaseClient[] = []
              const connect = (key = tenant.publishableKey, options: object = {}) => {
                const auth = { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false }
                const connected = client.createClient(tenant.url, key, { auth, ...options })
                clients.push(connected)
                return connected
              }
              const run = new ExampleRun({ tenant, client, connect })
              t.teardown(async () => {
                for (const each of clients) await each.realtime.disconnect()
                await tenant.rows(
                  Object.keys(collections)
                    .map((table) => `delete from ${table}`)
                    .join(';'),
                )
              })
              await before?.(run)
              await code(run)
              t.same(await effect(run), expected)
            })
        })
    })

  t.test('Nothing of all this was logged as an error', async (t) => t.same(runtime.errors, []))
})
