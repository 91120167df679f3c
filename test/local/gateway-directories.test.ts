// The directories of the gateways of `npm start`.
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createGatewayDirectories, formerGateways, gatewayName } from '#local/gateway-directories.ts'

t.test('A further gateway begins with the routes of the first, and later has its own', async (t) => {
  const root = t.testdir({
    gateway: { 'routes.ndjson': '{"tenant_id":"a"}\n', 'leases.ndjson': 'x', journal: { 'a.journal': 'x' } },
  })
  await createGatewayDirectories(root, 1, undefined)
  await t.rejects(stat(join(root, 'gateway-1')), { code: 'ENOENT' }, 'one gateway')
  await createGatewayDirectories(root, 2, undefined)
  const file = join(root, gatewayName(1), 'routes.ndjson')
  t.equal(await readFile(file, 'utf8'), '{"tenant_id":"a"}\n')
  t.equal((await stat(file)).mode & 0o077, 0, 'no one else can read it')
  for (const own of ['leases.ndjson', 'journal'])
    await t.rejects(stat(join(root, 'gateway-1', own)), { code: 'ENOENT' }, `${own} belongs to the first gateway`)
  await writeFile(file, '{"tenant_id":"b"}\n')
  await createGatewayDirectories(root, 2, undefined)
  t.equal(await readFile(file, 'utf8'), '{"tenant_id":"b"}\n', 'it is not replaced')
})

t.test('Former gateways are those with a directory and a higher number', async (t) => {
  const root = t.testdir({ gateway: {}, 'gateway-1': {}, 'gateway-x': {}, runtime: {} })
  for (const number of [2, 10]) await mkdir(join(root, gatewayName(number)))
  t.same(await formerGateways(root, 1), [1, 2, 10])
  t.same(await formerGateways(root, 2), [2, 10])
  t.same(await formerGateways(root, 11), [])
})
