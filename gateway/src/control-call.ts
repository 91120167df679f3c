// Posts to the control plane's internal paths, and reads its answers.
import { internalTokenHeader } from '@tenantry/contract'
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'

export interface ControlPlane {
  controlUrl: string
  internalToken: string
  fetch: typeof globalThis.fetch
}

export interface ControlCall {
  /** Milliseconds. */
  timeout: number
  signal?: AbortSignal
  /** Sent as JSON. */
  body?: unknown
}

/** The control plane answered, but did not do what it was asked for. */
export class ControlRejected extends Error {
  readonly status: number
  /** The answer's `Date`, or an empty text. */
  readonly date: string

  constructor({ status, headers }: Response) {
    super(`the control plane answered ${status}`)
    this.status = status
    this.date = headers.get('date') ?? ''
  }
}

/** @returns an answer with a 2xx, whose body is the caller's @throws ControlRefused, or as fetch does */
export async function postToControl(
  { controlUrl, internalToken, fetch }: ControlPlane,
  path: string,
  { timeout, signal, body }: ControlCall,
): Promise<Response> {
  const timeLimit = AbortSignal.timeout(timeout)
  const response = await fetch(`${controlUrl}${path}`, {
    method: 'POST',
    headers: {
      [internalTokenHeader]: internalToken,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    redirect: 'error',
    signal: signal === undefined ? timeLimit : AbortSignal.any([signal, timeLimit]),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (response.ok) return response
  await response.body?.cancel()
  throw new ControlRejected(response)
}

/** @throws when the answer is not of that shape */
export async function respondAs<Schema extends TSchema>(schema: Schema, response: Response): Promise<Static<Schema>> {
  const result: unknown = await response.json()
  if (!Value.Check(schema, result)) throw new Error('the control plane gave an unreadable answer')
  return result
}
