// Requests to a platform: to the operators' API, and to tenants' URLs.

export interface ApiResponse {
  status: number
  body: Record<string, unknown>
}

export interface TenantCall {
  key?: string
  body?: Uint8Array | string
  type?: string
  /** Further headers. */
  headers?: Record<string, string>
  /** Number of the gateway; the first is 0. */
  gateway?: number
}

/** Calls the operators' API. */
export type OperatorCall = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<ApiResponse>

/** Calls a tenant's URL. */
export type TenantCaller = (name: string, method: string, path: string, init?: TenantCall) => Promise<Response>

/** Returns calls of the operators' API with a platform key. */
export function operatorCalls(controlUrl: string, platformKey: string): OperatorCall {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(`${controlUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${platformKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> }
  }
}

/** Returns calls of tenants' URLs at the gateways, of which the first is the default. */
export function tenantCalls(gatewayUrls: readonly [string, ...string[]]): TenantCaller {
  return (name, method, path, { key, body, type, headers, gateway = 0 } = {}) =>
    fetch(`${gatewayUrls[gateway] ?? gatewayUrls[0]}/t/${name}${path}`, {
      method,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(type === undefined ? {} : { 'content-type': type }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    })
}
