// `npm start -- --respawn`: the installation is started again when its supervisor is killed, and otherwise ends as it does.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { allProcesses } from '#local/process/process-identity.ts'
import { respawn, type ProcessEnd } from '#local/process/respawn.ts'
import { processesOf, removeInstallation, startInstallation, type Installation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'

const entry = new URL('../../local/src/start.ts', import.meta.url).pathname
const services = ['postgres', 'control-database', 'control-plane', 'runtime-0', 'gateway']
const killed: ProcessEnd = { code: null, signal: 'SIGKILL' }

/** Returns the process that holds the data directory: the supervisor. */
async function supervisorOf({ data }: Installation): Promise<number> {
  return (JSON.parse(await readFile(join(data, 'lock'), 'utf8')) as { pid: number }).pid
}

/** Runs `npm start` until it ends. */
async function run(args: string[], environment: Record<string, string> = {}) {
  const child = spawn(process.execPath, [entry, ...args], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [stderr] = await Promise.all([text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, signal: child.signalCode, stderr }
}

t.test('A killed process is started again with a growing delay, which is short again after 30 s', async (t) => {
  const runMilliseconds = [0, 0, 0, 0, 0, 0, 0, 0, 30_001, 0]
  const delays: number[] = []
  let at = 0
  const code = await respawn({
    run: () => {
      const milliseconds = runMilliseconds.shift()
      if (milliseconds === undefined) return Promise.resolve({ code: 3, signal: null })
      at += milliseconds
      return Promise.resolve(killed)
    },
    pause: (milliseconds) => Promise.resolve(void delays.push(milliseconds)),
    elapsed: () => at,
    report: () => undefined,
    isStopping: () => false,
  })
  t.equal(code, 3, 'a process that ends by itself is not started again')
  t.same(delays, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 100, 200])
})

t.test('A process that was asked to stop is not started again, even if it is killed', async (t) => {
  for (const when of ['run', 'pause']) {
    let isStopping = false
    let runs = 0
    const code = await respawn({
      run: () => {
        runs++
        isStopping ||= when === 'run'
        return Promise.resolve(killed)
      },
      pause: () => {
        isStopping ||= when === 'pause'
        return Promise.resolve()
      },
      elapsed: () => 0,
      report: () => undefined,
      isStopping: () => isStopping,
    })
    t.same([code, runs], [null, 1], `asked during the ${when}`)
  }
})

t.test('Exit codes of wrong options and settings are passed through, without another attempt', async (t) => {
  const parent = await mkdtemp(join(tmpdir(), 'tenantry-respawn-'))
  t.teardown(() => rm(parent, { recursive: true, force: true }))
  const wrongOption = await run(['--respawn', '--port', 'x'])
  t.equal(wrongOption.code, 2)
  t.equal(wrongOption.stderr.split('Invalid --port').length, 2, 'one attempt')
  const settings = { TENANTRY_UNKNOWN_SETTING: '1' }
  const wrongSetting = await run(['--respawn', '--data', join(parent, 'data')], settings)
  t.equal(wrongSetting.code, 78)
  t.equal(wrongSetting.stderr.split('TENANTRY_UNKNOWN_SETTING').length, 2, 'one attempt')
  t.same(await run(['--data', join(parent, 'data')], settings), wrongSetting, 'as without the option')
})

t.test('An installation with --respawn', { timeout: 240_000 }, async (t) => {
  const installation = await startInstallation({ respawn: true })
  const { data, supervisor: parent } = installation
  t.teardown(() => removeInstallation(installation))
  const starts = () => installation.output().stdout.split('\n').length - 1
  const created = await fetch(`${installation.controlUrl}/v1/tenants`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${installation.platformKey}`,
      'content-type': 'application/json',
      prefer: 'wait=30',
    },
    body: JSON.stringify({ name: 'acme', plan: 'Free', region: 'local' }),
  })
  t.equal(created.status, 201)
  const { keys } = (await created.json()) as { keys: { secret_key: string } }
  const buckets = async (method: string, body?: string) => {
    const headers = { authorization: `Bearer ${keys.secret_key}`, 'content-type': 'application/json' }
    const request = { method, headers, ...(body === undefined ? {} : { body }) }
    return (await fetch(`${installation.gatewayUrl}/t/acme/storage/v1/bucket`, request)).text()
  }
  await buckets('POST', '{"name":"pictures"}')

  t.test('is back with its tenants after kill -9 of the supervisor, and runs each service once', async (t) => {
    for (const round of [1, 2]) {
      const before = await Promise.all(services.map((service) => installation.pid(service)))
      const supervisor = await supervisorOf(installation)
      t.not(supervisor, parent.pid)
      process.kill(supervisor, 'SIGKILL')
      await until(() => starts() === round + 1, 'the installation is ready again')
      const groups = new Set((await allProcesses()).map(({ group }) => group))
      t.same(
        before.filter((pid) => groups.has(pid)),
        [],
        'no process of the killed run remains',
      )
      for (const service of services) t.ok(groups.has(await installation.pid(service)), `${service} runs`)
      t.match(await buckets('GET'), /"pictures"/)
    }
    t.match(installation.output().stderr, /"signal":"SIGKILL","delay":100,"msg":"The supervisor was killed/)
  })

  t.test('ends what a killed supervisor has left when it is asked to stop before the next start', async (t) => {
    process.kill(await supervisorOf(installation), 'SIGKILL')
    t.equal(await installation.stop(), 0)
    t.same(await processesOf(data), [], 'no process runs')
    t.same(await readdir(join(data, 'run')), [], 'no process is recorded as running')
  })
  t.test('stops in order, with its exit code, after SIGTERM to the parent', async (t) => {
    const again = await startInstallation({ dataDirectory: data, respawn: true })
    t.teardown(() => again.stop())
    t.equal(await again.stop(), 0)
    t.match(again.output().stderr, /The installation has stopped/)
    t.same(await processesOf(data), [], 'no process runs')
  })
})
