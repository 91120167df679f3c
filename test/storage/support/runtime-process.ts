// Starts the runtime as a separate process on a scene, so that a test can kill it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { internalPaths, type Route, type TenantManifest } from '@tenantry/contract'
import { freePort } from '#test/support/postgres.ts'
import { inheritedEnvironment } from '#test/support/service-environment.ts'
import { WatchSource } from '#test/support/watch-source.ts'
import { internalToken, type Request, type Scene } from './scene.ts'

const product = new URL('../../../tenant-runtime/src/main.ts', import.meta.url).pathname

export interface RuntimeProcess {
  request: Request
  pid: number
  /** Returns true once the process has exited. */
  dead(): boolean
  /** Kills the process with SIGKILL if it still runs, and returns when Postgres has ended its statements. */
  kill(): Promise<void>
  /** Stops the process with SIGTERM. */
  stop(): Promise<void>
}

export interface ProcessOptions {
  /** Armed failpoints, as `name=kill:count,…`. */
  failpoints?: string
  /** The program to start; the product's own by default. */
  main?: string
}

/** Starts the control plane double that gives the processes their tenant's manifest. */
export async function openControl(t: Test, { manifest, data }: Scene): Promise<WatchSource<Route, TenantManifest>> {
  await writeFile(join(data, 'token'), internalToken, { mode: 0o600 })
  const control = new WatchSource<Route, TenantManifest>(internalToken)
  await control.start()
  t.teardown(() => control.stop())
  control.manifests.put(manifest)
  return control
}

export async function startProcess(
  t: Test,
  scene: Scene,
  control: { url: string },
  { failpoints = '', main = product }: ProcessOptions,
): Promise<RuntimeProcess> {
  const { data, home } = scene
  const port = await freePort()
  const child = spawn(process.execPath, [main], {
    env: {
      ...process.env,
      ...inheritedEnvironment,
      TENANTRY_PORT: String(port),
      TENANTRY_CONTROL_URL: control.url,
      TENANTRY_INTERNAL_TOKEN_FILE: join(data, 'token'),
      TENANTRY_DATA: data,
      TENANTRY_LOG_LEVEL: 'warn',
      TENANTRY_FAILPOINTS: failpoints,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const gone = once(child, 'exit')
  const dead = () => child.exitCode !== null || child.signalCode !== null
  const kill = async () => {
    if (!dead()) child.kill('SIGKILL')
    await gone
  }
  t.teardown(kill)
  const request = scene.createRequest(port)
  let lastReport = 'nothing'
  await until(
    async () => {
      if (dead()) throw new Error('the runtime ended before it was ready')
      const health = await request('GET', internalPaths.tenantHealth(home.tenantId)).catch(
        (cause: unknown) => void (lastReport = String(cause)),
      )
      if (health !== undefined) lastReport = health.text
      return health?.status === 200 && health.json()['status'] === 'healthy'
    },
    () => `the runtime did not get ready; its last report: ${lastReport}`,
  )
  return {
    request,
    pid: child.pid ?? 0,
    dead,
    async stop() {
      child.kill('SIGTERM')
      await gone
    },
    async kill() {
      await kill()
      // A statement that Postgres has received continues without its client.
      await until(
        async () => {
          const [others] = await scene.rows(
            `select count(*)::int as n from pg_stat_activity where application_name = 'tenantry:${home.tenantId}' and state <> 'idle'`,
          )
          return others?.['n'] === 0
        },
        () => 'statements of a dead runtime did not end',
      )
    },
  }
}

async function until(holds: () => Promise<boolean>, otherwise: () => string): Promise<void> {
  const deadline = Date.now() + 240_000
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(otherwise())
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
