// Deploying and calling functions as a tenant's developer does; and the processes that run them.
import { readFile, readdir } from 'node:fs/promises'
import type { ApiResponse, TestTenant } from '#test/support/runtime.ts'
import { executorProgram } from '#tenant-runtime/functions/executor/executor-program.ts'

export type Asker = Pick<TestTenant, 'request'>

export interface Deployment {
  name: string
  wasm: Uint8Array<ArrayBuffer>
  trigger?: unknown
  config?: unknown
}

export function deploy(tenant: Asker, { name, wasm, trigger = 'Http', config = {} }: Deployment): Promise<ApiResponse> {
  return sendForm(tenant, 'POST', '/functions/v1/deploy', {
    name,
    trigger: JSON.stringify(trigger),
    config: JSON.stringify(config),
    wasm,
  })
}

/** @throws Error when it is not taken */
export async function deployFunction(tenant: Asker, deployment: Deployment): Promise<string> {
  const response = await deploy(tenant, deployment)
  if (response.status !== 201) throw new Error(`the function was not deployed: ${response.text}`)
  return String(response.json()['id'])
}

/** As the service unless another is named; undefined is nobody. Bytes are sent as files. */
export async function sendForm(
  tenant: Asker,
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

export function invoke(tenant: Asker, name: string, body: string | Buffer = '', as = 'ada'): Promise<ApiResponse> {
  return tenant.request('POST', `/functions/v1/invoke/${name}`, { as, body, headers: { 'content-type': 'text/plain' } })
}

/** Pids of the executors that a runtime has started, as it knows them. */
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

/** By -9. One that has ended meanwhile is no matter. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
    }
  }
}

/** Pids of the processes in which guests run: the executors', or what these have started for it. */
export async function attachedContainersOf(runtime: number): Promise<number[]> {
  const attachedContainerOf = async (pid: number): Promise<number> => {
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
    return children.trim() === '' ? pid : attachedContainerOf(Number(children.split(' ')[0]))
  }
  return Promise.all((await executorsOf(runtime)).map(attachedContainerOf))
}
