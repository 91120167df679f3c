// Fetches as a function does, from servers on this machine that record their requests.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { readNetworks } from '@tenantry/contract'
import { CallError } from '#tenant-runtime/functions/host/call-error.ts'
import { checkHost } from '#tenant-runtime/functions/host/http-hosts.ts'
import { fetchForFunction, type FetchDeps } from '#tenant-runtime/functions/host/http-fetch.ts'
import { RunEgress } from '#tenant-runtime/functions/host/run-egress.ts'
import { listen } from '#test/support/listen.ts'

export const none = readNetworks([])

interface ReceivedRequest {
  method: string | undefined
  url: string | undefined
  headers: IncomingMessage['headers']
  body: string
}

/** Starts a server on this machine that records its requests. */
export async function serve(
  t: Test,
  respond: (request: ReceivedRequest, response: ServerResponse) => void,
): Promise<{ port: number; seen: ReceivedRequest[]; server: Server }> {
  const seen: ReceivedRequest[] = []
  const server = createServer((request, response) => {
    let body = ''
    request
      .setEncoding('utf8')
      .on('data', (text: string) => (body += text))
      .once('end', () => {
        const one = { method: request.method, url: request.url, headers: request.headers, body }
        seen.push(one)
        respond(one, response)
      })
  })
  return { port: await listen(t, server), seen, server }
}

const loopback = readNetworks(['127.0.0.0/8'])

/** Fetches as a function does. Every name resolves to this machine unless `resolve` is given. */
export async function fetchFrom(
  request: object | string,
  {
    body = '',
    egress = new RunEgress(async () => undefined),
    hosts,
    signal = AbortSignal.timeout(10_000),
    ...deps
  }: Partial<FetchDeps> & { body?: string; hosts: string[]; egress?: RunEgress; signal?: AbortSignal },
) {
  const text = typeof request === 'string' ? request : JSON.stringify(request)
  try {
    const all = { resolve: async () => ['127.0.0.1'], hasWayOut: async () => true, reachable: loopback, ...deps }
    const parts = [Buffer.from(text), Buffer.from(body)]
    const response = await fetchForFunction(all, hosts.map(checkHost), parts, egress, signal)
    const end = response.indexOf('\n')
    const head = JSON.parse(response.toString('utf8', 0, end)) as { status: number; headers: Record<string, string> }
    return { code: '', message: '', ...head, body: response.subarray(end + 1) }
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    return { code: error.code, message: error.message, status: 0, headers: {}, body: Buffer.alloc(0) }
  }
}
