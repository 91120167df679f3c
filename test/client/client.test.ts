// The typed client against a control plane: its types are current, and its calls return bodies and throw errors.
import { readFile } from 'node:fs/promises'
import type { OpenAPI3 } from 'openapi-typescript'
import t from 'tap'
import { ApiError, bodyOf, ConnectionError, createControlClient, pages, type Tenant } from '@tenantry/client'
import { clientTypes, clientTypesFile } from '#scripts/client/client-types.ts'
import { startApi } from '#test/support/control-plane/api.ts'
import { freePort } from '#test/support/postgres.ts'

const api = await startApi(t)
const url = await api.app.listen({ port: 0, host: '127.0.0.1' })
const client = createControlClient({ url, key: api.keys.admin })

t.test('The committed types are those of the document; `npm run update:client` writes them', async (t) => {
  const document = (await api.call('GET', '/openapi.json', { key: null })).body as OpenAPI3
  t.equal(await readFile(clientTypesFile, 'utf8'), await clientTypes(document))
})

t.test('A call returns the body of the response, and a list is read to its end', async (t) => {
  const names = ['first', 'second', 'third']
  for (const name of names) {
    const created = bodyOf(await client.POST('/v1/tenants', { body: { name, plan: 'Free', region: 'local' } }))
    t.match(created.keys.secret_key, /^tn_secret_/)
  }
  const found: Tenant[] = []
  const read = async (cursor: string | undefined) =>
    bodyOf(
      await client.GET('/v1/tenants', {
        params: { query: { limit: '2', ...(cursor === undefined ? {} : { cursor }) } },
      }),
    )
  let count = 0
  for await (const page of pages(read)) {
    found.push(...page.tenants)
    count++
  }
  t.same(
    found.map(({ name }) => name),
    names,
  )
  t.equal(count, 2)
})

t.test('A response that reports an error is thrown with its status, code and message', async (t) => {
  const error = await client
    .GET('/v1/tenants/{id}', { params: { path: { id: 't_00000000000000000000' } } })
    .catch((thrown: unknown) => thrown)
  t.ok(error instanceof ApiError)
  t.match(error, { status: 404, code: 'TENANT_NOT_FOUND', message: 'There is no such tenant.' })
})

t.test('A control plane that cannot be reached is a ConnectionError that names it', async (t) => {
  const nowhere = `http://127.0.0.1:${await freePort()}`
  const error = await createControlClient({ url: nowhere, key: 'tnp_none' })
    .GET('/health')
    .catch((thrown: unknown) => thrown)
  t.ok(error instanceof ConnectionError)
  t.match(error, { message: `GET ${nowhere}/health failed: ECONNREFUSED.` })
})

t.test('A request ends after its time limit', async (t) => {
  const slow = createControlClient({
    url,
    timeoutMs: 1,
    fetch: ({ signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  })
  await t.rejects(slow.GET('/health'), { name: 'ConnectionError', message: /no response arrived in time/ })
})
