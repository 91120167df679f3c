// The scene of the functions' benchmark: an installation with a tenant that has functions and a neighbouring tenant that
// has a collection, and the bare server in front of the same executors.
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { internalTokenHeader, tenantHeader } from '@tenantry/contract'
import { compileFunction } from '#examples/functions/compile.ts'
import { startInstallation, type Installation } from '#test/support/installation.ts'
import { startChild } from './child.ts'
import { createTenant, deployFunction, readRegion, signToken, type InstalledTenant } from './installed.ts'
import { wire } from './load.ts'

export interface FunctionScene {
  installation: Installation
  tenant: InstalledTenant
  /** The token of one of the tenant's users. */
  token: string
  neighbour: InstalledTenant
  runtimePort: number
  /** Returns a command of 18 KB that reads JSON and writes JSON. Each call returns a different one. */
  command(): Uint8Array<ArrayBuffer>
  /** Returns a request to the runtime as bytes for the wire. */
  request(tenant: InstalledTenant, token: string, method: string, path: string, body?: string): Buffer
  send(
    tenant: InstalledTenant,
    token: string,
    method: string,
    path: string,
    body?: string,
  ): Promise<{ status: number; text: string }>
  /** @throws Error when the runtime rejects the function */
  deploy(name: string, wasm: Uint8Array<ArrayBuffer>, config?: object): Promise<void>
  /** @throws Error for any status but 200 */
  invoke(name: string): Promise<void>
  /** Starts the bare server, which runs until `stop`. */
  startBare(executors: number): Promise<{ port: number; stop(): Promise<void> }>
  runtimePid(): Promise<number>
  /** Lists the processes of the runtime's executors, without those that only wait for them. */
  executors(): Promise<number[]>
  /** Ends all executors and waits until none remains and the runtime has noticed. */
  endExecutors(): Promise<void>
  stop(): Promise<void>
}

export const event = '{"name":"Ada"}'
const commandBytes = 18 * 1024
/** The number of successive checks that must find no executor. */
const quietPolls = 8
const todos = {
  name: 'todos',
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'owner_id', type: 'string' },
    { name: 'title', type: 'string', required: true },
  ],
  rls_policy: { type: 'ownership', owner_field: 'owner_id' },
}

export async function openScene(directory: string): Promise<FunctionScene> {
  const data = join(directory, 'data')
  const greet = await compileFunction('greet')
  const installation = await startInstallation({ dataDirectory: data, runtimes: 1 })
  const { runtimePort } = await readRegion(data)
  const internal = (await readFile(join(data, 'secrets', 'internal-token'), 'utf8')).trim()
  const tenant = await createTenant(installation, 'acme', 'Enterprise')
  const neighbour = await createTenant(installation, 'neighbour', 'Enterprise')
  const token = signToken(tenant.jwtSecret, 'ada')
  const headersOf = (to: InstalledTenant, as: string) => ({
    authorization: `Bearer ${as}`,
    [internalTokenHeader]: internal,
    [tenantHeader]: to.id,
  })
  let made = 0
  const scene: FunctionScene = {
    installation,
    tenant,
    token,
    neighbour,
    runtimePort,
    command: () => filled(greet, made++),
    request(to, as, method, path, body) {
      const content =
        body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
      return Buffer.concat([wire(method, path, { ...headersOf(to, as), ...content }), Buffer.from(body ?? '')])
    },
    async send(to, as, method, path, body) {
      const response = await fetch(`http://127.0.0.1:${runtimePort}${path}`, {
        method,
        headers: { ...headersOf(to, as), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body }),
      })
      return { status: response.status, text: await response.text() }
    },
    deploy: (name, wasm, config) =>
      deployFunction(`http://127.0.0.1:${runtimePort}`, headersOf(tenant, tenant.secretKey), name, wasm, config),
    async invoke(name) {
      const { status, text } = await scene.send(tenant, token, 'POST', `/functions/v1/invoke/${name}`, event)
      if (status !== 200) throw new Error(`The invocation of ${name} failed: ${status} ${text}`)
    },
    async startBare(executors) {
      const file = join(directory, 'bare.wasm')
      await writeFile(file, filled(greet, 0))
      const bare = await startChild(new URL('./bare-functions.ts', import.meta.url).pathname, [file, String(executors)])
      return { port: Number(bare.firstOutput['port']), stop: () => bare.stop() }
    },
    runtimePid: () => installation.pid('runtime-0'),
    executors: async () => below(await installation.pid('runtime-0')),
    async endExecutors() {
      for (let quiet = 0; quiet < quietPolls;) {
        const pids = await scene.executors()
        for (const pid of pids) kill(pid)
        quiet = pids.length === 0 ? quiet + 1 : 0
        await new Promise((resolve) => setTimeout(resolve, 25))
      }
    },
    stop: async () => {
      await installation.stop()
    },
  }
  await untilServed(scene, tenant)
  await untilServed(scene, neighbour)
  await fill(scene)
  return scene
}

/** Pads the module to the size with a custom section that no engine reads. */
function filled(wasm: Uint8Array, mark: number): Uint8Array<ArrayBuffer> {
  const content = Buffer.alloc(Math.max(32, commandBytes - wasm.length), `${mark}.`)
  // The section's name has length 0. Its content is arbitrary.
  content[0] = 0
  const length = [(content.length & 0x7f) | 0x80, ((content.length >> 7) & 0x7f) | 0x80, content.length >> 14]
  return Uint8Array.from([...wasm, 0, ...length, ...content])
}

async function fill(scene: FunctionScene): Promise<void> {
  const { neighbour } = scene
  const rows = Array.from({ length: 1_000 }, (_, n) => ({ owner_id: 'ben', title: `todo ${n}` }))
  for (const [path, body, status] of [
    ['/rest/v1/schemas', todos, 201],
    ['/admin/reload-schemas', {}, 200],
    ['/rest/v1/todos', rows, 201],
  ] as const) {
    const response = await scene.send(neighbour, neighbour.secretKey, 'POST', path, JSON.stringify(body))
    if (response.status !== status) throw new Error(`${path}: ${response.status} ${response.text.slice(0, 500)}`)
  }
}

async function untilServed(scene: FunctionScene, tenant: InstalledTenant): Promise<void> {
  const deadline = performance.now() + 20_000
  for (;;) {
    const response = await scene.send(tenant, tenant.secretKey, 'GET', '/storage/v1/bucket').catch(() => undefined)
    if (response?.status === 200) return
    if (performance.now() > deadline) throw new Error(`The tenant was not served within 20 s: ${response?.status}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Lists the descendants of a process that have no children of their own. */
async function below(ancestor: number): Promise<number[]> {
  const parents = new Map<number, number>()
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => '')
    parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
  }
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid)
    return parent !== undefined && (parent === ancestor || isBelow(parent))
  }
  const withChildren = new Set(parents.values())
  return [...parents.keys()].filter((pid) => isBelow(pid) && !withChildren.has(pid))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process had already ended.
  }
}
