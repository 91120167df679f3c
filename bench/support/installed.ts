// Helpers for benchmarks on an installation: tenants, tokens of their users, and addresses behind the gateway.
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Installation } from '#test/support/installation.ts'

export interface InstalledTenant {
  id: string
  name: string
  /** The path of the URL of its home's database. */
  database: string
  jwtSecret: string
  secretKey: string
}

/** Reads the region of an installation with one runtime. */
export async function readRegion(data: string) {
  const [region] = JSON.parse(await readFile(join(data, 'regions.json'), 'utf8')) as {
    postgres_url: string
    runtime_urls: string[]
  }[]
  if (region === undefined) throw new Error('The installation has no region')
  return {
    postgres: region.postgres_url,
    runtimePort: Number(new URL(region.runtime_urls[0] ?? '').port),
    homes: (database: string) => Object.assign(new URL(region.postgres_url), { pathname: database }).href,
  }
}

/** @param settings further members of the request's body, such as a rate limit */
export async function createTenant(
  installation: Installation,
  name: string,
  plan: string,
  settings: object = {},
): Promise<InstalledTenant> {
  const response = await fetch(`${installation.controlUrl}/v1/tenants`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${installation.platformKey}`,
      'content-type': 'application/json',
      prefer: 'wait=30',
    },
    body: JSON.stringify({ name, plan, region: 'local', ...settings }),
  })
  const body = (await response.json()) as {
    tenant_id: string
    name: string
    database_url: string
    keys: { jwt_secret: string; secret_key: string }
  }
  if (response.status !== 201)
    throw new Error(`The tenant could not be created: ${response.status} ${JSON.stringify(body)}`)
  return {
    id: body.tenant_id,
    name: body.name,
    database: new URL(body.database_url).pathname,
    jwtSecret: body.keys.jwt_secret,
    secretKey: body.keys.secret_key,
  }
}

/**
 * Deploys a function.
 * @param url that of the tenant, at the runtime or at the gateway
 * @throws Error when the runtime rejects the function
 */
export async function deployFunction(
  url: string,
  headers: Record<string, string>,
  name: string,
  wasm: Uint8Array<ArrayBuffer>,
  config: object = {},
): Promise<void> {
  const form = new FormData()
  form.set('name', name)
  form.set('config', JSON.stringify(config))
  form.set('wasm', new Blob([wasm]), 'module.wasm')
  const response = await fetch(`${url}/functions/v1/deploy`, { method: 'POST', headers, body: form })
  const text = await response.text()
  if (response.status !== 201) throw new Error(`The deployment of ${name} failed: ${response.status} ${text}`)
}

export function signToken(secret: string, userId: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ sub: userId, role: 'authenticated', exp: 4_102_444_800 })}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}
