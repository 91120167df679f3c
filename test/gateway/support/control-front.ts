// A proxy before the double of the control plane. It serves what only a control plane with dedicated tenants serves: wake
// requests, and watches of one tenant's manifest.
import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { internalPaths, internalTokenHeader } from '@tenantry/contract'
import type { Test } from 'tap'
import { startSetting, token, type Setting } from './gateway.ts'
import type { GatewayOptions } from '#gateway/gateway.ts'

export interface ControlFront {
  url: string
  /** Tenants in the order of their wake requests, and the status of each response; `hang` sends none. */
  wakes: string[]
  wakeResponse: (tenantId: string) => number | 'hang'
  /** Tokens and paths of manifest watches, and the response to such a watch. */
  watchTokens: unknown[]
  watchPaths: string[]
  serveWatch: (response: ServerResponse) => void
  /** Token and path of each request for a tenant's own usage. */
  usageRequested: string[]
}

/** Starts a gateway that reaches its control plane through the front. */
export async function startFrontedSetting(
  t: Test,
  options: Partial<GatewayOptions> = {},
): Promise<Setting & { front: ControlFront }> {
  let behind = ''
  const front: ControlFront = {
    url: '',
    wakes: [],
    wakeResponse: () => 202,
    watchTokens: [],
    watchPaths: [],
    usageRequested: [],
    serveWatch: (response) =>
      response.writeHead(200, { 'content-type': 'application/x-ndjson' }).write('{"type":"synced"}\n'),
  }
  const server = createServer((request, response) => {
    const given = request.headers[internalTokenHeader]
    const [, woken] = /^\/internal\/v1\/tenants\/([^/]*)\/wake$/.exec(request.url ?? '') ?? []
    if (woken !== undefined && request.method === 'POST') {
      front.wakes.push(woken)
      const result = given === token ? front.wakeResponse(woken) : 403
      if (result !== 'hang') response.writeHead(result).end()
    } else if (request.url?.includes('/own-usage') === true) {
      front.usageRequested.push(`${String(given)} ${request.url}`)
      if (request.headers.accept === 'text/csv')
        response.writeHead(200, { 'content-type': 'text/csv; charset=utf-8' }).end('month\r\n2026-11\r\n')
      else response.writeHead(200, { 'content-type': 'application/json' }).end('{"month":"2026-11"}')
    } else if (request.url?.split('?')[0] === internalPaths.watchManifests) {
      front.watchTokens.push(given)
      front.watchPaths.push(request.url)
      front.serveWatch(response)
    } else if (behind === '') response.writeHead(503).end()
    else passOn(request, response, behind)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  front.url = `http://127.0.0.1:${address.port}`
  const setting = await startSetting(t, { ...options, controlUrl: front.url })
  behind = setting.control.url
  t.teardown(async () => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  })
  return Object.assign(setting, { front })
}

function passOn(request: IncomingMessage, response: ServerResponse, behind: string): void {
  const passed = httpRequest(
    `${behind}${request.url ?? ''}`,
    { method: request.method, headers: request.headers },
    (result) => {
      response.writeHead(result.statusCode ?? 502, result.headers)
      result.pipe(response)
      result.on('error', () => response.destroy())
    },
  )
  passed.on('error', () => response.destroy())
  response.on('close', () => passed.destroy())
  request.pipe(passed)
}
