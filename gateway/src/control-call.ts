// Calls of the control plane's internal paths.
import { internalTokenHeader, sentToken, type InternalToken } from '@tenantry/contract'
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'

export interface ControlPlane {
  controlUrl: string
  internalToken: InternalToken
  fetch: typeof globalThis.fetch
}

export interface ControlCall {
  /** Milliseconds. */
  timeoutMs: number
  signal?: AbortSignal
  /** The request's body, sent as JSON. */
  body?: unknown
}

/** The error of a call to which the control plane responded with a status other than 2xx. */
export class ControlStatusError extends Error {
  readonly status: number
  /** The response's `Date`, or an empty string. */
  readonly date: string

  constructor({ status, headers }: Response) {
    super(`The control plane responded with status ${status}.`)
    this.status = status
    this.date = headers.get('date') ?? ''
  }
}

/**
 * Posts to the control plane.
 * @returns a response with a 2xx status, whose body the caller must consume
 * @throws ControlStatusError for another status; otherwise the errors of fetch
 */
export async function postToControl(
  { controlUrl, internalToken, fetch }: ControlPlane,
  path: string,
  { timeoutMs, signal, body }: ControlCall,
): Promise<Response> {
  const timeLimit = AbortSignal.timeout(timeoutMs)
  const response = await fetch(`${controlUrl}${path}`, {
    method: 'POST',
    headers: {
      [internalTokenHeader]: sentToken(internalToken),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    redirect: 'error',
    signal: signal === undefined ? timeLimit : AbortSignal.any([signal, timeLimit]),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (response.ok) return response
  await response.body?.cancel()
  throw new ControlStatusError(response)
}

/**
 * Reads a response's body.
 * @throws Error when the body does not match the schema
 */
export async function readResponse<Schema extends TSchema>(
  schema: Schema,
  response: Response,
): Promise<Static<Schema>> {
  const result: unknown = await response.json()
  if (!Value.Check(schema, result))
    throw new Error('The body of the response from the control plane does not have the expected form.')
  return result
}
