// The commands about tenants' own services, against a control plane with a region whose engine is a double.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { until } from '#test/support/until.ts'
import { newName, startApi } from '#test/support/control-plane/api.ts'
import { documentedBodies } from './support/documented-bodies.ts'
import { cliOf, jsonLines } from './support/run-cli.ts'

const api = await startApi(t, { cloud: true })
const url = await api.app.listen({ host: '127.0.0.1', port: 0 })
const directory = await mkdtemp(join(tmpdir(), 'tenantry-cli-'))
t.teardown(() => rm(directory, { recursive: true, force: true }))
const cli = cliOf({
  env: { XDG_CONFIG_HOME: directory, TENANTRY_URL: url, TENANTRY_KEY: api.keys.admin },
  directory,
})
const document = (await api.call('GET', '/openapi.json', { key: null })).body
const errorsOf = documentedBodies(document as Parameters<typeof documentedBodies>[0])
const name = newName()
await api.create(name, { plan: 'Pro', region: 'cloud' })

t.test('A tenant is paused, woken and restarted', async (t) => {
  const states = { pause: 'paused', wake: 'ready', restart: 'ready' }
  for (const [command, status] of Object.entries(states)) {
    const ran = await cli(['tenants', command, name, '--json'])
    t.equal(ran.code, 0, ran.stderr)
    const [tenant] = jsonLines(ran)
    t.same(errorsOf(`POST /v1/tenants/{id}/${command}`, tenant), [])
    t.match(tenant, { status, operation: { kind: command, state: 'succeeded' } })
  }
})

t.test('The end of a log is shown, and new lines are followed until Ctrl-C', async (t) => {
  api.engine.write('2026-01-01T00:00:01.000000000Z', 'first')
  api.engine.write('2026-01-01T00:00:02.000000000Z', 'with a \u001b[31mcolour')
  const shown = await cli(['logs', name, '--tail', '2'])
  t.equal(shown.code, 0, shown.stderr)
  t.match(shown.stdout, /02\.0+Z with a \\u001b\[31mcolour\n$/)
  const lines = await cli(['logs', name, '--json', '--tail', '1'])
  for (const line of jsonLines(lines)) t.same(errorsOf('GET /v1/tenants/{id}/logs', line, 'lines'), [])

  const interruption = new AbortController()
  const following = cli(['logs', name, '-f', '--tail', '1', '--json'], {
    signal: interruption.signal,
    onData: (text) => {
      if (text.includes('colour')) api.engine.write('2026-01-01T00:00:03.000000000Z', 'third')
      if (text.includes('third')) interruption.abort()
    },
  })
  const followed = await following
  t.equal(followed.code, 130)
  t.same(
    jsonLines(followed).map(({ text }) => text),
    ['with a \u001b[31mcolour', 'third'],
  )
  t.match(await cli(['logs', name, '--component', 'cellar', '--json']), { code: 6, stderr: /INVALID_PARAMETER/ })
})

t.test('A followed log continues after each end of its stream, without gaps and duplicates', async (t) => {
  api.clock.later = 200
  t.teardown(() => (api.clock.later = Infinity))
  const interruption = new AbortController()
  let output = ''
  const following = cli(['logs', name, '-f', '--tail', '0', '--json'], {
    signal: interruption.signal,
    onData: (text) => (output += text),
  })
  const written = ['a', 'b', 'c', 'd']
  for (const [nth, text] of written.entries()) {
    await until(() => api.engine.followed === 1, 'the stream')
    await until(() => api.engine.followed === 0, 'its end')
    api.engine.write(`2026-01-01T00:01:0${nth}.000000000Z`, text)
    await until(() => output.includes(`"text":"${text}"`), text)
  }
  interruption.abort()
  t.same(
    jsonLines(await following).map(({ text }) => text),
    written,
  )
})

t.test('A followed log ends with an error when the key is revoked', async (t) => {
  api.clock.timeout = 100
  t.teardown(() => (api.clock.timeout = Infinity))
  const { id, key } = await api.newKey('read')
  const ran = await cli(['logs', name, '-f', '--tail', '1', '--json'], {
    env: { TENANTRY_KEY: key },
    onData: () => void api.call('DELETE', `/v1/keys/${id}`),
  })
  t.match(ran, { code: 7, stderr: /The platform key was revoked/ })
})

t.test('A rollout is started, shown and cancelled, and a wrong image is rejected', async (t) => {
  const start = (image: string) => [
    'rollouts',
    'start',
    '--region',
    'cloud',
    '--component',
    'runtime',
    '--image',
    image,
  ]
  t.match(await cli([...start('postgres:next'), '--json']), { code: 6, stderr: /WRONG_IMAGE/ })
  t.equal((await cli([...start('runtime:next'), '--wave-size', 'many'])).code, 2)
  t.equal((await cli(['rollouts', 'start', '--region', 'cloud', '--component', 'x', '--image', 'y'])).code, 2)
  const started = await cli([...start('runtime:next'), '--soak-seconds', '60', '--json'])
  const [rollout] = jsonLines(started)
  t.same(errorsOf('POST /v1/rollouts', rollout), [], started.stderr)
  const id = String(rollout?.id)
  t.match(started.stderr, `tenantry rollouts get ${id}`)
  for (const row of jsonLines(await cli(['rollouts', 'list', '--json'])))
    t.same(errorsOf('GET /v1/rollouts', row, 'rollouts'), [])
  t.same(errorsOf('GET /v1/rollouts/{id}', jsonLines(await cli(['rollouts', 'get', id, '--json']))[0]), [])
  const [cancelled] = jsonLines(await cli(['rollouts', 'cancel', id, '--json']))
  t.same(errorsOf('POST /v1/rollouts/{id}/cancel', cancelled), [])
})

t.test('Drift is listed, and is an exit code on request', async (t) => {
  const name = newName()
  const { tenant_id: id } = await api.create(name, { plan: 'Pro', region: 'cloud' })
  t.equal((await cli(['tenants', 'update', name, '--drift-policy', 'report'])).code, 0)
  t.match(await cli(['drift', name, '--exit-code']), { code: 0, stdout: '' })
  const container = api.engine.stacks.get(id)?.containers[0]
  t.ok(container)
  if (container !== undefined) container.state = 'exited'
  const ran = await cli(['drift', name, '--json', '--exit-code'])
  t.equal(ran.code, 9)
  const [drift] = jsonLines(ran)
  t.same(errorsOf('GET /v1/tenants/{id}/drift', drift), [])
  t.match(drift, { drifted: true, differences: [{ field: 'state', desired: 'running', observed: 'exited' }] })
  t.match((await cli(['drift', name])).stdout, /^COMPONENT +FIELD +DESIRED +OBSERVED +REPAIR\n/)
})

t.test('One field of the drift is repaired, and an interruption needs a confirmation', async (t) => {
  const name = newName()
  const { tenant_id: id } = await api.create(name, { plan: 'Pro', region: 'cloud' })
  t.equal((await cli(['tenants', 'update', name, '--drift-policy', 'report'])).code, 0)
  const [postgres, runtime] = api.engine.stacks.get(id)?.containers ?? []
  if (postgres === undefined || runtime === undefined) throw new Error('no containers')
  Object.assign(postgres, { restartPolicy: 'no', health: 'unhealthy' })
  Object.assign(runtime, { restartPolicy: 'no' })
  t.match(await cli(['drift', 'repair', name, '--field', 'restart_policy']), { code: 2, stderr: /several components/ })
  t.match(await cli(['drift', 'repair', name, '--field', 'memory_bytes']), { code: 2, stderr: /postgres:health/ })
  const repair = ['drift', 'repair', name, '--field', 'runtime:restart_policy', '--json']
  const ran = await cli(repair)
  t.equal(ran.code, 0, ran.stderr)
  const [repaired] = jsonLines(ran)
  t.same(errorsOf('POST /v1/tenants/{id}/drift/repair', repaired), [])
  t.match(repaired, { operation: { kind: 'repair', state: 'succeeded' } })
  t.match(
    (await cli(['drift', name])).stdout,
    /postgres +health +healthy +unhealthy +all of postgres, with 1 more, interrupts/,
  )
  t.match(await cli(['drift', 'repair', name, '--field', 'health']), { code: 2, stderr: /Use --yes/ })
  t.match(await cli(['drift', 'repair', name, '--field', 'health', '--yes']), {
    code: 0,
    stdout: /postgres:health of /,
  })
  t.match(await cli(['drift', 'repair', name]), { code: 0, stdout: /has no drift/ })
  t.match(await cli(['drift', 'repair', name, '--no-wait', '--json']), { code: 0, stdout: /"operation":null/ })
})
