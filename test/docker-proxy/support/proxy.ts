// A Docker proxy in front of the test's Engine, and a host that connects only to the proxy.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { dockerHost, type DockerHost } from '#control-plane/engines/docker/docker-host.ts'
import { createProxy } from '#docker-proxy/proxy.ts'
import type { ProxyRules } from '#docker-proxy/proxy-rules.ts'
import { engineSocket as behind } from '#docker-proxy/engine-socket.ts'
import { parseRange } from '#control-plane/stacks/subnets.ts'
import { engineSocket, openScene, type Scene } from '#test/support/docker.ts'

export interface ProxyScene extends Scene {
  /** The host that connects to the proxy. */
  proxy: DockerHost
  /** Sends one call to the proxy, as any client could write it. */
  sendCall(method: string, path: string, body?: unknown): Promise<{ status: number; text: string }>
  /** The messages of rejected calls. */
  rejections: string[]
  socketPath: string
}

/** @param engine path of the socket that the proxy connects to */
export async function openProxy(
  t: Test,
  changes: Partial<ProxyRules> = {},
  engine = engineSocket(),
): Promise<ProxyScene> {
  const scene = openScene(t)
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-docker-proxy-'))
  const socketPath = join(directory, 'proxy.sock')
  const rules: ProxyRules = {
    installation: scene.installation,
    attachedContainers: [],
    images: ['debian'],
    networkRange: parseRange('10.0.0.0/8'),
    published: [],
    spansHosts: false,
    ...changes,
  }
  const rejections: string[] = []
  const log = { warn: (_fields: object, message: string) => void rejections.push(message) }
  const { server, close } = createProxy({ rules, engine: behind(engine), log })
  server.listen(socketPath)
  await once(server, 'listening')
  const proxy = dockerHost({ host: `unix://${socketPath}` })
  t.teardown(async () => {
    proxy.close()
    await close()
    await rm(directory, { recursive: true })
  })
  return {
    ...scene,
    proxy,
    rejections,
    socketPath,
    sendCall: (method, path, body) => sendCall(socketPath, method, path, body),
  }
}

async function sendCall(
  socketPath: string,
  method: string,
  path: string,
  body: unknown,
): Promise<{ status: number; text: string }> {
  const text = body === undefined ? undefined : JSON.stringify(body)
  const headers =
    text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
  const call = request({ socketPath, method, path, agent: false, headers })
  call.end(text)
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return { status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }
}
