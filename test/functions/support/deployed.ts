// Deploys and calls functions as a tenant's developer does, and finds the processes that run them.
import { readFile, readdir } from 'node:fs/promises'
import type { ApiResponse, TestTenant } from '#test/support/runtime.ts'
import { executorProgram } from '#tenant-runtime/functions/executor/executor-program.ts'

export type Requester = Pick<TestTenant, 'request'>

export interface Deployment {
  name: string
  wasm: Uint8Array<ArrayBuffer>
  trigger?: unknown
  config?: unknown
}

export function deploy(
  tenant: Requester,
  { name, wasm, trigger = 'Http', config = {} }: Deployment,
): Promise<ApiResponse> {
  return sendForm(tenant, 'POST', '/functions/v1/deploy', {
    name,
    trigger: JSON.stringify(trigger),
    config: JSON.stringify(config),
    wasm,
  })
}

/** @throws Error when the deployment is rejected */
export async function deployFunction(tenant: Requester, deployment: Deployment): Promise<string> {
  const response = await deploy(tenant, deployment)
  if (response.status !== 201) throw new Error(`the function was not deployed: ${response.text}`)
  return String(response.json()['id'])
}

/** Sends a form as the service, or as another role in `as`; undefined sends no token. Bytes are sent as files. */
export async function sendForm(
  tenant: Requester,
  method: string,
  path: string,
  parts: Record<string, string | Uint8Array<ArrayBuffer>>,
  { as }: { as: string | undefined } = { as: 'service' },
): Promise<ApiResponse> {
  const form = new FormData()
  for (const [name, value] of Object.entries(parts)) {
    if (typeof value === 'string') form.set(name, value)
    else form.set(name, new Blob([value]), `${name}.wasm`)
  }
  const encoded = new Response(form)
  return tenant.request(method, path, {
    as,
    headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
    body: Buffer.from(await encoded.arrayBuffer()),
  })
}

export function invoke(tenant: Requester, name: string, body: string | Buffer = '', as = 'ada'): Promise<ApiResponse> {
  return tenant.request('POST', `/functions/v1/invoke/${name}`, { as, body, headers: { 'content-type': 'text/plain' } })
}

/** Returns the IDs of the executors' processes that a runtime has started, as the runtime knows them. */
export async function executorsOf(runtime: number): Promise<number[]> {
  const read = (entry: string, file: string) => readFile(`/proc/${entry}/${file}`, 'utf8').catch(() => '')
  const program = executorProgram().file
  const pids: number[] = []
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = await read(entry, 'stat')
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
    if (parent === runtime && (await read(entry, 'cmdline')).includes(program)) pids.push(Number(entry))
  }
  return pids
}

/** Sends SIGKILL to processes. Ignores those that have ended. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
    }
  }
}

/** Returns the IDs of the processes in which modules run: the executors, or the last processes that these have started. */
export async function moduleProcessesOf(runtime: number): Promise<number[]> {
  const lastProcessOf = async (pid: number): Promise<number> => {
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
    return children.trim() === '' ? pid : lastProcessOf(Number(children.split(' ')[0]))
  }
  return Promise.all((await executorsOf(runtime)).map(lastProcessOf))
}
