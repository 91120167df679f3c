// Requests a tenant's health from all of its runtimes. The control plane must not take a tenant for ready while one of them does
// not know the newest manifest, because requests go to each of them.
import { internalTokenHeader, TenantHealth } from '@tenantry/contract'
import { Value } from 'typebox/value'
import { request, type Dispatcher } from 'undici'

interface HealthCall {
  urls: readonly string[]
  token: string
  /** Milliseconds to the end of each response. */
  timeout: number
  signal: AbortSignal
}

/** A response of one runtime. */
interface RuntimeResponse {
  status: number
  body: string
}

const maxBytes = 64 * 1024

/** Returns the worst of the runtimes' responses. @throws Error if one of them does not respond */
export async function worstHealth(call: HealthCall, dispatcher: Dispatcher): Promise<RuntimeResponse> {
  const [first, ...others] = await Promise.all(call.urls.map((url) => responseOf(url, call, dispatcher)))
  if (first === undefined) throw new Error('The tenant has no runtime.')
  return others.reduce((one, other) => (rank(other) < rank(one) ? other : one), first)
}

async function responseOf(
  url: string,
  { token, timeout, signal }: HealthCall,
  dispatcher: Dispatcher,
): Promise<RuntimeResponse> {
  const { statusCode, body } = await request(url, {
    dispatcher,
    method: 'GET',
    headers: { [internalTokenHeader]: token },
    headersTimeout: timeout,
    bodyTimeout: timeout,
    signal,
  })
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error('The health of a runtime is too long.')
    chunks.push(chunk)
  }
  return { status: statusCode, body: Buffer.concat(chunks).toString('utf8') }
}

/** Orders responses: errors, then runtimes that are not healthy, then healthy ones by their generation. */
function rank({ status, body }: RuntimeResponse): number {
  if (status !== 200) return -2
  const health = parsed(body)
  if (!Value.Check(TenantHealth, health)) return -2
  return health.status === 'healthy' ? health.generation : -1
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
