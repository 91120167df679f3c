// The Docker Engine of a test run: which one is selected, and the error when there is none.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ensureEngine } from '#scripts/engine.ts'
import { engineDirectory } from '#scripts/engine/daemons.ts'

/** Listens on a socket as an engine with this version of the API. */
async function fakeEngine(t: Test, api: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-test-'))
  const socket = join(directory, 'docker.sock')
  const server = createServer((_request, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ ApiVersion: api, Version: 'x' })),
  )
  server.listen(socket)
  await once(server, 'listening')
  t.teardown(async () => {
    server.close()
    server.closeAllConnections()
    await rm(directory, { recursive: true })
  })
  return `unix://${socket}`
}

/** Sets the address of the engine, as if it were the only setting. */
function name(t: Test, host: string): void {
  const before = process.env['TENANTRY_DOCKER_HOST']
  process.env['TENANTRY_DOCKER_HOST'] = host
  t.teardown(() => {
    process.env['TENANTRY_DOCKER_HOST'] = before ?? ''
  })
}

t.test("The engine of the environment is used, and not stopped or restarted if it is not the project's", async (t) => {
  const host = await fakeEngine(t, '1.41')
  name(t, host)
  const engine = await ensureEngine()
  t.equal(engine.host, host)
  await t.rejects(engine.restart(), /is not the project's own engine/)
  await t.rejects(engine.kill(), /is not the project's own engine/)
  await engine.stop()
  t.equal((await engine.docker.version()).ApiVersion, '1.41')
})

t.test('An engine that is too old is rejected', async (t) => {
  for (const api of ['1.40', '1.9', '0.99']) {
    name(t, await fakeEngine(t, api))
    await t.rejects(ensureEngine(), new Error(`supports API ${api}. Required: 1.41 or later.`), api)
  }
  for (const api of ['1.41', '1.100', '2.0']) {
    name(t, await fakeEngine(t, api))
    await t.resolves(ensureEngine(), api)
  }
})

t.test('An engine that does not respond is an error, and never skips a test', async (t) => {
  name(t, 'unix:///nonexistent/docker.sock')
  await t.rejects(ensureEngine(), /No Docker Engine responds at unix:\/\/\/nonexistent\/docker\.sock/)
  name(t, 'tcp://127.0.0.1:2375')
  await t.rejects(ensureEngine(), /Invalid TENANTRY_DOCKER_HOST .*Allowed: unix:\/\/\/…\./)
})

t.test("Sockets of the engine fit into the kernel's limit, however long the path of the project is", async (t) => {
  t.equal(engineDirectory('/short/project'), '/short/project/.tenantry/engine')
  const long = `/${'long/'.repeat(30)}project`
  const directory = engineDirectory(long)
  t.ok(`${directory}/exec/libnetwork/0123456789ab.sock`.length < 107, directory)
  t.equal(engineDirectory(long), directory)
  t.not(engineDirectory(`${long}2`), directory)
})
